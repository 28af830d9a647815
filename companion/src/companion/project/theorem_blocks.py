"""Read the theorem boxes of a book from the sources of its pages and notebooks."""

import re
from dataclasses import dataclass
from pathlib import Path

from companion.project.notebooks import Notebook
from companion.project.paths import Project, visible

BOX = re.compile(r"^(`{3,}|:{3,})\{prf:(\w+)\}([^\n]*)\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
LABEL = re.compile(r"^:label: ([a-z0-9-]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Box:
    """A theorem box with a label: a definition, lemma, theorem, …"""

    label: str
    kind: str
    title: str
    page: str
    text: str

    def cites(self, paper: str) -> bool:
        """Return whether the title or the text cites the paper."""
        return re.search(rf"\{{cite:?\w*\}}`[^`]*\b{paper}\b|\[{paper}\b", f"{self.title}\n{self.text}") is not None


def boxes(project: Project) -> list[Box]:
    """Return the boxes with a label, those of notebooks first, in the order of the book."""
    return [box for page in pages(project) for box in _boxes_in(page.stem, prose(page))]


def pages_quoting(project: Project, claim: str) -> list[str]:
    """Return the pages whose text quotes a claim by a role, such as `` {claim}`ID` ``, in the order of the book."""
    role = re.compile(rf"\{{claim[\w-]*\}}`{re.escape(claim)}`")
    return [page.name for page in pages(project) if role.search(prose(page))]


def pages(project: Project) -> list[Path]:
    """Return the files of the pages of the book: notebooks in its order, then Markdown files."""
    return [*(project.notebook(name) for name in project.notebooks()), *visible(project.book, "*.md")]


def _boxes_in(page: str, text: str) -> list[Box]:
    labelled = []
    for _, kind, title, body in BOX.findall(text):
        if label := LABEL.search(body):
            labelled.append(Box(label[1], kind, title.strip(), page, body))
    return labelled


def prose(path: Path) -> str:
    """Return the Markdown text of a page or a notebook."""
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    cells = Notebook(path).cells
    return "\n\n".join(cell["source"] for cell in cells if cell["cell_type"] == "markdown")
