"""The theorem boxes of a book, read from its pages and notebooks as people edit them."""

import re
from dataclasses import dataclass
from pathlib import Path

from companion.project.notebooks import Notebook
from companion.project.paths import Project

BOX = re.compile(r"^(`{3,}|:{3,})\{prf:(\w+)\}([^\n]*)\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
LABEL = re.compile(r"^:label: ([a-z0-9-]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Box:
    """A definition, lemma, theorem, … that can be linked to."""

    label: str
    kind: str
    title: str
    page: str
    text: str

    def cites(self, paper: str) -> bool:
        """Whether title or text cites the paper."""
        return re.search(rf"\{{cite:?\w*\}}`[^`]*\b{paper}\b|\[{paper}\b", f"{self.title}\n{self.text}") is not None


def boxes(project: Project) -> list[Box]:
    """All that have a label, in the order of the book: notebooks first, then pages."""
    pages = [*(project.notebook(name) for name in project.notebooks()), *sorted(project.book.glob("*.md"))]
    return [box for page in pages for box in _in(page.stem, prose(page))]


def _in(page: str, text: str) -> list[Box]:
    found = []
    for _, kind, title, body in BOX.findall(text):
        if label := LABEL.search(body):
            found.append(Box(label[1], kind, title.strip(), page, body))
    return found


def prose(path: Path) -> str:
    """The prose of a page or a notebook."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    cells = Notebook(path).cells
    return "\n\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
