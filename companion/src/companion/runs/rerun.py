"""Rerun one figure from Python, with the notebook's parameters except those that are given."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from companion.build.run_spec import RunSpec
from companion.figures import store, table_io
from companion.figures.record import Claim
from companion.project.paths import Project
from companion.runs.run_custom import run_custom


@dataclass(frozen=True)
class Rerun:
    """The result of `rerun`: the unrounded numbers, the claims, which may fail, and the page of the run."""

    table: pd.DataFrame
    claims: tuple[Claim, ...]
    page: Path


def rerun(notebook: str, figure: str, /, **parameters: Any) -> Rerun:
    """Return the result of `companion run NOTEBOOK --figure FIGURE -p NAME=VALUE`; a fresh result is not recomputed.

    The run has a separate kernel. It uses the checkout around the working folder, or else the installed one.

    Raises:
      companion.UserError: if a name or a value is not allowed, or the notebook cannot be run.
    """
    project = Project.here()
    build = run_custom(project, RunSpec(notebook, parameters=parameters, figure=figure)).build
    record = store.read_record(build.figures / notebook, figure)
    table = table_io.read_csv(build.tables / notebook / f"{figure}{store.DATA}", record.columns)
    return Rerun(table, record.claims, build.page)
