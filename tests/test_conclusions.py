"""The page of all conclusions covers every chapter."""

import re
from pathlib import Path

import pytest

from companion.project.notebooks import Notebook
from companion.project.paths import Project

PROJECT = Project(Path(__file__).parents[1])
CONCLUSIONS = (PROJECT.book / "what_holds.md").read_text(encoding="utf-8")
# Its pictures read tables of other chapters and state no further result.
WITHOUT_RESULTS = {"laboratory"}


def references(name):
    """Return the ways in which a page can refer to a chapter: to the chapter, its figures or its theorem boxes."""
    notebook = Notebook.named(PROJECT, name)
    text = "\n".join(cell["source"] for cell in notebook.cells if cell["cell_type"] == "markdown")
    figures = {f"{{numref}}`fig-{figure.replace('_', '-')}`" for figure in notebook.figures}
    boxes = {f"{{prf:ref}}`{label}`" for label in re.findall(r"^:label: (\S+)$", text, re.MULTILINE)}
    return {f"{{doc}}`{name}`"} | figures | boxes


@pytest.mark.parametrize("name", sorted(set(PROJECT.notebooks()) - WITHOUT_RESULTS))
def test_every_chapter_is_referred_to(name):
    assert [reference for reference in references(name) if reference in CONCLUSIONS]
