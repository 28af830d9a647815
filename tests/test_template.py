"""Each chapter has the sections of the template, in order, with content of its own between them."""

from pathlib import Path

import pytest

from companion.figures import store
from companion.project import slicing
from companion.project.notebooks import TECHNICAL_TAG, Notebook
from companion.project.paths import Project

PROJECT = Project(Path(__file__).parents[1])
OPENING = ["The question", "A first guess", "Findings"]
CLOSING = ["Limits", "Sources", "Try it"]
# A collection of interactive figures, not a chapter with a question of its own.
COLLECTIONS = {"laboratory"}
CHAPTERS = [name for name in PROJECT.notebooks() if name not in COLLECTIONS]
# Largest number of published figures that a page shows unfolded. Schematics and interactive figures do not count.
MOST_UNFOLDED = 5


def sections(name):
    """Return the second-level headings of a notebook, in order."""
    cells = [cell["source"] for cell in Notebook.named(PROJECT, name).cells if cell["cell_type"] == "markdown"]
    return [line[3:].strip() for cell in cells for line in cell.splitlines() if line.startswith("## ")]


@pytest.mark.parametrize("name", CHAPTERS)
def test_sections_of_the_template_are_in_order(name):
    headings = sections(name)
    assert headings[: len(OPENING)] == OPENING
    assert headings[-len(CLOSING) :] == CLOSING
    assert len(headings) > len(OPENING) + len(CLOSING)


@pytest.mark.parametrize("name", CHAPTERS)
def test_there_are_three_findings_that_name_their_figures(name):
    text = "\n".join(cell["source"] for cell in Notebook.named(PROJECT, name).cells if cell["cell_type"] == "markdown")
    findings = text.split("## Findings\n")[1].split("\n## ")[0]
    bullets = [bullet for bullet in findings.split("\n- ")[1:]]
    assert len(bullets) == 3
    assert all("{numref}`fig-" in bullet for bullet in bullets)


def unfolded(name):
    """Return the published figures of a notebook with data that its page does not fold, in order."""
    cells = [cell for cell in Notebook.named(PROJECT, name).cells if cell["cell_type"] == "code"]
    shown = [cell["source"] for cell in cells if TECHNICAL_TAG not in cell["metadata"].get("tags", [])]
    figures, folder = slicing.published_figures(shown), PROJECT.published / name
    return [figure for figure in figures if not store.read_record(folder, figure).is_schematic]


@pytest.mark.parametrize("name", [name for name in PROJECT.notebooks() if name not in COLLECTIONS])
def test_at_most_five_published_figures_are_unfolded(name):
    assert 0 < len(unfolded(name)) <= MOST_UNFOLDED, unfolded(name)
