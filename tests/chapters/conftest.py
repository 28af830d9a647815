"""Chapters at smoke size: their cells run in this process, so that notebooks share imports and compiled programs."""

import contextlib
import io
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from filelock import FileLock

from companion.authoring.publish import Publisher
from companion.figures import table_io
from companion.figures.record import Claim
from companion.figures.schema import Numbers, Table
from companion.figures.style import style
from companion.project import slicing
from companion.project.configuration import Settings
from companion.project.notebooks import PARAMETERS_TAG, Notebook
from companion.project.parameters import resolve
from companion.project.paths import Project

PROJECT = Project(Path(__file__).resolve().parents[2])


@dataclass
class Run:
    """The results of the cells of one notebook.

    Attributes:
      tables: the tables as they would be published, by figure.
      claims: the claims, by id.
      withheld: the reasons of withheld claims, by id.
      names: the parameters and, if parameters were overridden, the other names that the cells defined.
      printed: what the cells wrote to standard output and standard error.
    """

    tables: dict[str, Table] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    withheld: dict[str, str] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)
    printed: str = ""

    @property
    def broken(self) -> list[str]:
        """Claims that do not hold, or would hold if their alternative were true."""
        return [
            name
            for name, claim in self.claims.items()
            if not claim.accepts(claim.measured) or claim.accepts(claim.alternative.measured)
        ]

    def assert_sound(self, *may_be_withheld: str) -> None:
        """All claims but those that `may_be_withheld` are made, hold and could fail; all cells have finite numbers."""
        assert self.claims
        assert self.broken == []
        assert set(self.withheld) <= set(may_be_withheld)
        for table in self.tables.values():
            assert not table.frame.isna().to_numpy().any()
            assert np.isfinite(table.frame.select_dtypes("number").to_numpy()).all()


def _run_cells(name: str, *, only: str | None = None, draws: bool = False, **overrides: Any) -> Run:
    """Run the notebook `name` at smoke size with `overrides`, or only the cells that lead to the figure `only`.

    With `draws`, each figure is drawn once from its table, and an axis without data is an error.
    """
    notebook, run, printed = Notebook.named(PROJECT, name), Run(), io.StringIO()
    values = resolve(PROJECT, notebook, "smoke", overrides)

    def keep(self, figure, *outputs, **named):
        made, name = self._numbers(figure, outputs, named), figure.__name__.rpartition(".")[2]
        run.tables[name] = Table(table_io.plain(made.table.frame, name)[0], made.table.columns)
        run.claims |= {claim.id: claim for claim in made.made}
        run.withheld |= {claim.id: claim.reason for claim in made.withheld}
        if draws:
            _draw(figure, run.tables[name])

    def keep_claims(self, claims):
        made = Numbers(Table(pd.DataFrame(), {}), claims)
        run.claims |= {claim.id: claim for claim in made.made}
        run.withheld |= {claim.id: claim.reason for claim in made.withheld}

    with (
        patch.object(Publisher, "__call__", keep),
        patch.object(Publisher, "claims", keep_claims),
        patch.object(Settings, "open_context", lambda self: None),
        jax.enable_x64(True),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        for cell in notebook.cells:
            if cell["cell_type"] == "code" and PARAMETERS_TAG in cell["metadata"].get("tags", []):
                run.names |= values
        for source in notebook.code if only is None else slicing.reduced_cells(notebook.code, only):
            exec(source, run.names)
    run.printed = printed.getvalue()
    return run


def _draw(figure, table: Table) -> None:
    """Draw a figure from its table; every visible axis must contain data. `companion` renders what is published."""
    with style():
        drawn = figure.draw(table.frame)
        plt.close(drawn)
    assert drawn.axes
    assert all(axes.has_data() for axes in drawn.axes if axes.axison)  # axes without a frame may hold a legend


def _run_once(name: str, folder: Path) -> Run:
    """Return the run of the whole notebook. The first test process that needs it writes it to `folder`."""
    kept = folder / f"{name}.pickle"
    with FileLock(kept.with_suffix(".lock")):
        if not kept.exists():
            run = _run_cells(name, draws=True)
            run.names = dict(resolve(PROJECT, Notebook.named(PROJECT, name), "smoke"))
            kept.write_bytes(pickle.dumps(run))
    return pickle.loads(kept.read_bytes())


@pytest.fixture(scope="module", autouse=True)
def _as_in_a_notebook(unchecked):
    """Chapters call `lib` without run-time checks of types."""


@pytest.fixture(scope="session")
def run_cells():
    """Run a notebook's cells at smoke size, with overrides: `run_cells(name, seed=1)`; raises what they raise."""
    return _run_cells


@pytest.fixture(scope="session")
def run_chapter(tmp_path_factory, worker_id):
    """Return the run of a notebook at smoke size, with or without overrides; each is made once."""
    temporary = tmp_path_factory.getbasetemp()
    folder = (temporary if worker_id == "master" else temporary.parent) / "runs"
    folder.mkdir(exist_ok=True)
    done: dict[str, Run] = {}

    def run(name, **overrides):
        key = repr((name, sorted(overrides.items())))
        if key not in done:
            done[key] = _run_cells(name, **overrides) if overrides else _run_once(name, folder)
        return done[key]

    return run


@pytest.fixture(scope="module")
def run(request, run_chapter):
    """Return the run at smoke size of the notebook NAME of the test file."""
    return run_chapter(request.module.NAME)


@pytest.fixture(scope="session")
def smoke_parameters():
    """Return the parameters of a notebook at smoke size."""

    def of(name):
        return dict(resolve(PROJECT, Notebook.named(PROJECT, name), "smoke"))

    return of
