"""Every chapter at the smoke profile, as built: claims, captions, and pictures drawn anew from their data."""

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
def test_claims_hold_and_fail_with_the_number_of_their_alternative(folder, figure):
    """What the record says of itself is not believed, but worked out again."""
    for claim in store.read_record(folder, figure).claims:
        assert claim.accepts(claim.measured), claim
        assert not claim.accepts(claim.alternative.measured), claim


@pytest.mark.parametrize("name", PROJECT.notebooks())
def test_no_cell_prints_a_warning(site, name):
    """Readers see figures, and sentences that a step means to say; nothing that slipped out."""
    executed = json.loads((PROJECT.build("smoke").notebooks / f"{name}.ipynb").read_text(encoding="utf-8"))
    outputs = [output for cell in executed["cells"] for output in cell.get("outputs", [])]
    assert [output["text"] for output in outputs if output["output_type"] == "stream"] == []


@pytest.mark.parametrize(("folder", "figure"), FIGURES, indirect=["folder"])
def test_captions_say_what_to_see_and_alt_texts_what_is_drawn(folder, figure):
    record = store.read_record(folder, figure)
    assert len(record.caption) > 200
    assert 100 < len(record.alt) < 600


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("folder", "figure"), FIGURES, indirect=["folder"])
def test_picture_can_be_drawn_from_what_a_reader_downloads(folder, figure, theme):
    """The CSV of six digits, and the record; nothing else is needed. Every axis holds something."""
    record = store.read_record(folder, figure)
    module = PROJECT.import_module(f"chapters.{folder.name}.{figure}")
    with style(theme):
        drawn = module.draw(table_io.read_csv(folder / f"{figure}.csv", record.columns))
        drawn.canvas.draw()
        plt.close(drawn)
    assert drawn.axes
    assert all(axes.has_data() for axes in drawn.axes if axes.axison)  # one may hold the legend
