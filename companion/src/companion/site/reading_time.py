"""How long a page takes to read: its words, formulas and figures, without proofs, folded parts and code."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from companion.figures import store
from companion.io.errors import UserError, did_you_mean
from companion.project import slicing
from companion.project.notebooks import TECHNICAL_TAG, Notebook
from companion.project.paths import Project
from companion.project.theorem_blocks import pages, prose

# Words per minute in prose and in mathematics, which are the statement boxes and the displayed formulas.
PROSE, MATHEMATICS = 180, 90
# The words that take as long to read as a displayed formula.
FORMULA = 15
FENCE = re.compile(r"\s*(?P<mark>`{3,}|:{3,})(?:\{(?P<kind>[\w:-]+)\})?(?P<title>.*)")
OPTION = re.compile(r"\s*:[\w-]+:")
CODE, DROPDOWN = "code-block", "dropdown"
FOLDS = (CODE, DROPDOWN, "prf:proof", "literalinclude")
PICTURES = ("companion-live", "companion-picture")
DISPLAYED = re.compile(r"\$\$.*?\$\$(?: \([\w-]+\))?", re.DOTALL)
INLINE = re.compile(r"\$[^$]*\$|\{[\w:-]+\}`[^`]*`")


@dataclass(frozen=True)
class ReadingTime:
    """What a reader of a page reads without opening a fold."""

    prose: int = 0
    mathematics: int = 0
    formulas: int = 0
    figures: int = 0

    @property
    def words(self) -> int:
        """The number of words, captions included; an inline formula and a link count as one word each."""
        return self.prose + self.mathematics

    @property
    def minutes(self) -> float:
        """The minutes for all words, formulas and figures, not rounded."""
        return self.prose / PROSE + (self.mathematics + FORMULA * self.formulas) / MATHEMATICS + self.figures


def of_page(project: Project, name: str) -> ReadingTime:
    """Return the reading time of a page of the book: a notebook with its published figures, or a Markdown page."""
    path = page_file(project, name)
    read = of_text(prose(path))
    if path.suffix != ".ipynb":
        return read
    shown = unfolded_figures(project, name)
    captions = sum(_words(store.read_record(project.published / name, figure).caption) for figure in shown)
    return replace(read, prose=read.prose + captions, figures=read.figures + len(shown))


def of_section(project: Project, name: str, title: str) -> ReadingTime:
    """Return the reading time of the text of a second-level section of a page, without the figures of its code cells.

    Raises:
      UserError: if the page has no such section.
    """
    text = prose(page_file(project, name))
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if found is None:
        raise UserError(f"The page {name!r} has no section {title!r}.")
    return of_text(found[1])


def page_file(project: Project, name: str) -> Path:
    """Return the notebook or the Markdown file of a page.

    Raises:
      UserError: if the book has no such page.
    """
    files = {path.stem: path for path in pages(project)}
    if name not in files:
        raise UserError(f"There is no page {name!r}. {did_you_mean(name, files)}")
    return files[name]


def unfolded_figures(project: Project, name: str) -> list[str]:
    """Return the figures of a notebook that its page does not fold, schematics included, in order."""
    cells = [cell for cell in Notebook.named(project, name).cells if cell["cell_type"] == "code"]
    shown = [cell["source"] for cell in cells if TECHNICAL_TAG not in cell["metadata"].get("tags", [])]
    return slicing.published_figures(shown)


def of_text(text: str) -> ReadingTime:
    """Return the reading time of MyST Markdown without its folds and its code."""
    plain: list[str] = []
    mathematics: list[str] = []
    pictures = 0
    for kinds, line, is_opening in _lines(text):
        if any(kind in FOLDS for kind in kinds):
            continue
        pictures += is_opening and kinds[-1] in PICTURES
        in_box = any(kind.startswith("prf:") for kind in kinds)
        (mathematics if in_box else plain).append(line)
    outside, inside = "\n".join(plain), "\n".join(mathematics)
    formulas = len(DISPLAYED.findall(outside)) + len(DISPLAYED.findall(inside))
    return ReadingTime(_words(outside), _words(inside), formulas, pictures)


def _lines(text: str) -> Iterator[tuple[list[str], str, bool]]:
    """Yield each line with the kinds of the fences around it; the line of an opening fence is its title.

    A fence with the class `dropdown` is of that kind, and a fence without a directive is code. Options are left out.
    """
    fences: list[tuple[str, str]] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        fence = FENCE.fullmatch(line)
        if fence is None:
            if not (number and _is_option(lines, number)):
                yield [kind for _, kind in fences], line, False
        elif fences and fence["kind"] is None and not fence["title"].strip() and fence["mark"] == fences[-1][0]:
            fences.pop()
        else:
            kind = fence["kind"] or CODE
            is_fold = any(_is_option(lines, at) and "dropdown" in lines[at] for at in range(number + 1, number + 4))
            fences.append((fence["mark"], DROPDOWN if is_fold else kind))
            yield [kind for _, kind in fences], fence["title"], True


def _is_option(lines: list[str], number: int) -> bool:
    """Return whether a line is an option of a directive: it follows the opening fence or another option."""
    if number >= len(lines) or not OPTION.match(lines[number]):
        return False
    before = lines[number - 1]
    return FENCE.fullmatch(before) is not None or _is_option(lines, number - 1)


def _words(text: str) -> int:
    """Return the number of words; a displayed formula has none, an inline formula or a role is one."""
    return len(INLINE.sub("X", DISPLAYED.sub(" ", text)).split())
