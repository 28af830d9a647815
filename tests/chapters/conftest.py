"""Chapters at smoke size: what the build left of them, or their cells run in this process with other parameters."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
import numpy as np
import pytest

from companion.authoring.publish import Publisher
from companion.build import cache_keys, execution
from companion.build.run_spec import RunSpec, Target
from companion.figures import store, table_io
from companion.figures.record import ClaimRecord
from companion.figures.schema import Column, Table
from companion.project import slicing
from companion.project.configuration import Settings
from companion.project.notebooks import PARAMETERS_TAG, Notebook
from companion.project.parameters import resolve
from companion.project.paths import Project

PROJECT = Project(Path(__file__).resolve().parents[2])


@dataclass
class Run:
    """What the cells of one notebook left: tables by figure, claims by id; its parameters, and names they defined.

    `withheld` are the reasons of withheld claims, by id.
    """

    tables: dict[str, Table] = field(default_factory=dict)
    claims: dict[str, ClaimRecord] = field(default_factory=dict)
    withheld: dict[str, str] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)

    @property
    def broken(self) -> list[str]:
        """Claims that do not hold, or would hold if their alternative were true."""
        return [
            name
            for name, claim in self.claims.items()
            if not claim.accepts(claim.measured) or claim.accepts(claim.alternative.measured)
        ]

    def assert_sound(self) -> None:
        """All claims are made, hold and could fail; every cell of every table is filled, with finite numbers."""
        assert self.claims
        assert self.broken == []
        assert not self.withheld
        for table in self.tables.values():
            assert not table.frame.isna().to_numpy().any()
            assert np.isfinite(table.frame.select_dtypes("number").to_numpy()).all()


def _run_cells(name: str, *, only: str | None = None, **overrides: Any) -> Run:
    """Run the notebook `name` at smoke size with `overrides`, or only the cells that lead to the figure `only`."""
    notebook, run = Notebook.named(PROJECT, name), Run()
    values = resolve(PROJECT, notebook, "smoke", overrides)

    def keep(self, figure, *outputs, **named):
        made, name = self._numbers(figure, outputs, named), figure.__name__.rpartition(".")[2]
        run.tables[name] = Table(table_io.plain(made.table.frame, name)[0], made.table.columns)
        run.claims |= {claim.id: ClaimRecord.of(claim) for claim in made.made}
        run.withheld |= {claim.id: claim.reason for claim in made.withheld}

    with (
        patch.object(Publisher, "__call__", keep),
        patch.object(Settings, "open_context", lambda self: None),
        jax.enable_x64(True),
    ):
        for cell in notebook.cells:
            if cell["cell_type"] == "code" and PARAMETERS_TAG in cell["metadata"].get("tags", []):
                run.names |= values
        for source in notebook.code if only is None else slicing.reduced_cells(notebook.code, only):
            exec(source, run.names)
    return run


def _built(name: str) -> Run:
    """What the smoke build of `name` left, which is made if it is not there; claims to six digits."""
    if not cache_keys.is_fresh(PROJECT, Target(name), "smoke"):
        execution.run(PROJECT, RunSpec(name, "smoke"))
    build, run = PROJECT.build("smoke"), Run(names=dict(resolve(PROJECT, Notebook.named(PROJECT, name), "smoke")))
    for figure in Notebook.named(PROJECT, name).figures:
        record = store.read_run_record(build.tables / name, figure)
        meanings = {
            column: Column(one.meaning, one.unit, one.std_error, one.absolute, one.moves_with)
            for column, one in record.columns.items()
        }
        table = table_io.read_csv(build.tables / name / f"{figure}{store.DATA}", record.columns)
        run.tables[figure] = Table(table, meanings)
        run.claims |= {claim.id: claim for claim in record.claims}
        run.withheld |= {claim.id: claim.reason for claim in record.withheld}
    return run


@pytest.fixture(scope="session")
def run_cells():
    """Run a notebook's cells at smoke size, with overrides: `run_cells(name, seed=1)`; raises what they raise."""
    return _run_cells


@pytest.fixture(scope="session")
def run_chapter():
    """What a notebook comes to at smoke size: the build's, where nothing is overridden; each once a session."""
    done: dict[str, Run] = {}

    def run(name, **overrides):
        key = repr((name, sorted(overrides.items())))
        if key not in done:
            done[key] = _run_cells(name, **overrides) if overrides else _built(name)
        return done[key]

    return run


@pytest.fixture(scope="module")
def run(request, run_chapter):
    """What the notebook that the test file is about, its NAME, comes to at smoke size."""
    return run_chapter(request.module.NAME)


@pytest.fixture(scope="session")
def smoke_parameters():
    """Of a notebook, what the smoke profile runs it with."""

    def of(name):
        return dict(resolve(PROJECT, Notebook.named(PROJECT, name), "smoke"))

    return of
