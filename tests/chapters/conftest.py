"""Chapters run in this process: the cells of a notebook at smoke size, their numbers kept instead of published."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax
import numpy as np
import pytest

from companion.house import House
from companion.notebooks import PARAMETERS_TAG, Notebook
from companion.parameters import resolve
from companion.publishing import Publisher
from companion.records import Claim, Table
from companion.settings import Settings

HOUSE = House(Path(__file__).resolve().parents[2])


@dataclass
class Run:
    """What the cells of one notebook left: tables by figure, claims by id, and every name they defined."""

    tables: dict[str, Table] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)

    @property
    def broken(self) -> list[str]:
        """Claims that do not hold, or would hold if their alternative were true."""
        return [name for name, claim in self.claims.items() if not (claim.holds and claim.catches_alternative)]

    def assert_sound(self) -> None:
        """All claims hold and could fail, and every cell of every table is filled, with a finite number if any."""
        assert self.claims
        assert self.broken == []
        for table in self.tables.values():
            assert not table.frame.isna().to_numpy().any()
            assert np.isfinite(table.frame.select_dtypes("number").to_numpy()).all()


def _run_cells(name: str, **overrides: Any) -> Run:
    """Run the notebook `name` at smoke size, with `overrides`; raises what its cells raise."""
    notebook, run = Notebook.named(HOUSE, name), Run()
    values = resolve(HOUSE, notebook, "smoke", overrides)

    def keep(self, figure, *outputs, **named):
        numbers = self._numbers(figure, outputs, named)
        run.tables[figure.__name__.rpartition(".")[2]] = numbers.table
        run.claims |= {claim.id: claim for claim in numbers.claims}

    with (
        patch.object(Publisher, "__call__", keep),
        patch.object(Settings, "open_context", lambda self: None),
        jax.enable_x64(True),
    ):
        for cell in notebook.cells:
            if cell["cell_type"] == "code" and PARAMETERS_TAG in cell["metadata"].get("tags", []):
                run.names |= values
        for source in notebook.code:
            exec(source, run.names)
    return run


@pytest.fixture(scope="session")
def run_cells():
    """Run a notebook's cells at smoke size, with overrides: `run_cells(name, seed=1)`; raises what they raise."""
    return _run_cells


@pytest.fixture(scope="session")
def run_chapter():
    """The same, each combination of arguments once a session."""
    done: dict[str, Run] = {}

    def run(name, **overrides):
        key = repr((name, sorted(overrides.items())))
        if key not in done:
            done[key] = _run_cells(name, **overrides)
        return done[key]

    return run


@pytest.fixture(scope="session")
def smoke_parameters():
    """Of a notebook, what the smoke profile runs it with."""

    def of(name):
        return dict(resolve(HOUSE, Notebook.named(HOUSE, name), "smoke"))

    return of
