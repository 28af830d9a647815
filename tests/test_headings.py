"""Every heading of the book is followed by content before the next heading of its level."""

import re
from pathlib import Path

import pytest

from companion.project.notebooks import BOOTSTRAP_TAG, PARAMETERS_TAG, Notebook
from companion.project.paths import Project

PROJECT = Project(Path(__file__).parents[1])
PAGES = sorted(path for path in PROJECT.book.iterdir() if path.suffix in (".md", ".ipynb"))
# Tags of cells that a page does not show.
UNSEEN = {BOOTSTRAP_TAG, PARAMETERS_TAG, "remove-cell"}
HEADING = re.compile(r"(#{1,6}) +(\S.*)")
FENCE = re.compile(r"\s*(`{3,}|~{3,}|:{3,})")


def blocks(path):
    """Yield the headings of the page as (level, title), and all other visible content as None, in order."""
    if path.suffix == ".md":
        yield from _of_markdown(path.read_text(encoding="utf-8"))
        return
    for cell in Notebook(path).cells:
        if cell["cell_type"] == "markdown":
            yield from _of_markdown(cell["source"])
        elif not UNSEEN & set(cell["metadata"].get("tags", [])) and cell["source"].strip() != "":
            yield None


def _of_markdown(text):
    """Yield the blocks of a Markdown text; lines that begin with # inside a fence are not headings."""
    fence = None
    for line in text.splitlines():
        opened = FENCE.match(line)
        if fence is None and (heading := HEADING.fullmatch(line.rstrip())):
            yield len(heading[1]), heading[2]
        elif line.strip():
            yield None
        if opened and fence is None:
            fence = opened[1]
        elif opened and opened[1].startswith(fence) and line.strip() == opened[1]:
            fence = None


def empty_headings(path):
    """Return the titles of headings without content before the next heading of their level or above."""
    empty, last = [], None
    for block in [*blocks(path), (1, "the page's end")]:
        if last is not None and block is not None and block[0] <= last[0]:
            empty.append(last[1])
        last = block
    return empty


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_heading_has_content(path):
    assert empty_headings(path) == []


SECTIONS = {
    "# Title\n\ntext\n\n## Empty\n\n## Next\n\ntext": ["Empty"],
    "# Title\n\n## Full\n\n```\n# a comment\n\n## another\n```\n": [],
    "# Title\n\n## Parent\n\n### Child\n\ntext\n\n### Last\n": ["Last"],
    "# Title\n\n## One\n\n### Two\n\n## Three\n\ntext": ["Two"],
    "# Title\n\n## Cards\n\n:::::{container}\n\n::::{card}\n:alt: x\n::::\n\n:::::\n": [],
}


@pytest.mark.parametrize("text", SECTIONS)
def test_a_heading_without_content_is_found(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    assert empty_headings(page) == SECTIONS[text]
