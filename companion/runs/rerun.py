"""Rerun one figure from Python, with the notebook's parameters except those that are given."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from companion.build import execution
from companion.figures import store, table_io
from companion.figures.record import ClaimRecord
from companion.io.errors import ClaimsFailed
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Project


@dataclass(frozen=True)
class Rerun:
    """What came of it: the numbers drawn, unrounded; the claims, whether they hold or not; the run's page."""

    table: pd.DataFrame
    claims: tuple[ClaimRecord, ...]
    page: Path


def rerun(notebook: str, figure: str, /, **parameters: Any) -> Rerun:
    """What `companion run NOTEBOOK --figure FIGURE -p NAME=VALUE` leaves; what is there already is not computed again.

    It runs in a separate kernel, from the checkout around the working folder, else from the installed one. Raises
    `UserError` for a name or a value that is not allowed.
    """
    project = Project.here()
    Notebook.named(project, notebook).require_figure(figure)
    with suppress(ClaimsFailed):  # the results are kept, and say so
        execution.run(project, notebook, DEFAULT_PROFILE, parameters, figure)
    build = execution.own_build(project, notebook, DEFAULT_PROFILE, parameters, figure)
    record = store.read_record(build.figures / notebook, figure)
    table = table_io.read_csv(build.tables / notebook / f"{figure}{store.DATA}", record.columns)
    return Rerun(table, record.claims, build.page)
