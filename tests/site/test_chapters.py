"""Every chapter in the smoke profile: claims, captions, outputs, and pictures redrawn from their data."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from companion.figures import store, table_io
from companion.figures.style import style
from companion.project.notebooks import Notebook
from companion.project.paths import Project

PROJECT = Project(Path(__file__).resolve().parents[2])
FIGURES = [(name, figure) for name in PROJECT.notebooks() for figure in Notebook.named(PROJECT, name).figures]


@pytest.fixture
def folder(site, request) -> Path:
    return PROJECT.build("smoke").figures / request.param


@pytest.mark.parametrize(("folder", "figure"), FIGURES, indirect=["folder"])
def test_claims_hold_and_would_fail_for_their_alternative(folder, figure):
    """Both verdicts are computed again from the recorded numbers."""
    for claim in store.read_record(folder, figure).claims:
        assert claim.accepts(claim.measured), claim
        assert not claim.accepts(claim.alternative.measured), claim


@pytest.mark.parametrize("name", PROJECT.notebooks())
def test_no_cell_prints(site, name):
    """Notebooks show figures and text that a step returns, but no warnings or other printed lines."""
    executed = json.loads((PROJECT.build("smoke").notebooks / f"{name}.ipynb").read_text(encoding="utf-8"))
    outputs = [output for cell in executed["cells"] for output in cell.get("outputs", [])]
    assert [output["text"] for output in outputs if output["output_type"] == "stream"] == []


@pytest.mark.parametrize(("folder", "figure"), FIGURES, indirect=["folder"])
def test_captions_and_alt_texts_have_a_useful_length(folder, figure):
    record = store.read_record(folder, figure)
    assert len(record.caption) > 200
    assert 100 < len(record.alt) < 600


@pytest.mark.parametrize(("folder", "figure"), FIGURES, indirect=["folder"])
def test_picture_can_be_drawn_from_the_published_files(folder, figure):
    """`draw` needs only the CSV file and the record; every visible axis contains data."""
    record = store.read_record(folder, figure)
    module = PROJECT.import_module(PROJECT.figure_module(folder.name, figure))
    with style():
        drawn = module.draw(table_io.read_csv(folder / f"{figure}.csv", record.columns))
        drawn.canvas.draw()
        plt.close(drawn)
    assert drawn.axes
    assert all(axes.has_data() for axes in drawn.axes if axes.axison)  # axes without a frame may hold a legend
