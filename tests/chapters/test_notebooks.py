"""Every notebook at smoke size: cells run without output, claims hold and could fail, figures are drawn.

The cells run in the test process. One notebook goes through papermill and a kernel, as in a build.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from companion.build import execution
from companion.build.run_spec import RunSpec
from companion.figures import store, table_io
from companion.project.notebooks import BY_HAND_TAG, Notebook
from companion.project.paths import Project

PROJECT = Project(Path(__file__).resolve().parents[2])
FIGURES = [(name, figure) for name in PROJECT.notebooks() for figure in Notebook.named(PROJECT, name).figures]
SMALL = "measures"


@pytest.mark.parametrize("name", PROJECT.notebooks())
def test_the_cells_of_a_notebook_run(name, run_chapter):
    """Each figure is drawn (the fixture does it). Only by-hand cells print, one line each; a warning is a line, too."""
    run, notebook = run_chapter(name), Notebook.named(PROJECT, name)
    assert set(run.tables) == set(notebook.figures)
    assert run.broken == []
    by_hand = [cell for cell in notebook.cells if BY_HAND_TAG in cell["metadata"].get("tags", [])]
    printed = list(map(float, run.printed.splitlines()))
    assert len(printed) == len(by_hand)
    if by_hand:  # their numbers do not depend on the profile, and the pages quote them
        published = json.loads((PROJECT.published / name / "claims.json").read_text(encoding="utf-8"))["claims"]
        quoted = [claim["measured"] for claim in published if "-by-hand-" in claim["id"]]
        assert printed == pytest.approx(quoted, rel=1e-5, abs=1e-13)


def test_a_kernel_makes_the_same_figures(run_chapter):
    """The numbers of a build are those of the cells in this process; only by-hand cells print, one line each."""
    execution.run(PROJECT, RunSpec(SMALL, "smoke"))
    build, run = PROJECT.build("smoke"), run_chapter(SMALL)
    for figure, table in run.tables.items():
        record = store.read_record(build.figures / SMALL, figure)
        built = table_io.read_csv(build.figures / SMALL / f"{figure}.csv", record.columns)
        pd.testing.assert_frame_equal(built, table.frame, check_dtype=False, rtol=1e-5)
        for claim in record.claims:
            assert np.allclose(claim.measured, run.claims[claim.id].measured, rtol=1e-5, atol=1e-12), claim.id
    executed = json.loads((build.executed / f"{SMALL}.ipynb").read_text(encoding="utf-8"))
    outputs = [output for cell in executed["cells"] for output in cell.get("outputs", [])]
    printed = "".join("".join(output["text"]) for output in outputs if output["output_type"] == "stream")
    assert len(printed.splitlines()) == len(run.printed.splitlines()) > 0


@pytest.mark.daily
def test_all_notebooks_run_in_kernels():
    """The smoke build runs every notebook through papermill and assembles the site of their results."""
    subprocess.run([sys.executable, "-m", "companion", "build", "--profile", "smoke"], cwd=PROJECT.root, check=True)


@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_published_claims_hold_and_would_fail_for_their_alternative(name, figure):
    """Both verdicts are computed again from the recorded numbers; caption and alternative text have a useful length."""
    record = store.read_record(PROJECT.published / name, figure)
    for claim in record.claims:
        assert claim.accepts(claim.measured), claim
        assert not claim.accepts(claim.alternative.measured), claim
    assert len(record.caption) > 200
    assert 100 < len(record.alt) < 600
