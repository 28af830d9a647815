"""The statements of the papers a book is about: where each was read, where the book states it, what checks it.

One data file lists them (its place is `statements` in `[tool.companion]`), in words that are shown as they are written.
What a row need not say is found: a theorem box whose text cites "Lemma 2.1 of" a paper, and a claim whose source is
`[PAPER, Lemma 2.1]`, belong to the first row that has this number, and this kind where one has, unless a row names
them. A box or claim that cites a listed paper and has no row is a fault: then nobody has said where its wording was
read.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from companion.io.errors import UserError, did_you_mean
from companion.io.yaml import read_yaml
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.project.theorem_blocks import Box, boxes

# How the kinds of numbered items are abbreviated.
WORDS = {"prop": "proposition", "thm": "theorem", "th": "theorem", "cor": "corollary", "eq": "equation"}
NUMBERED = re.compile(r"\b([A-Z][a-z]+)\.?[\s~]+([A-Z]?[0-9][0-9.]*|[A-Z]\.[0-9]+)")
# How near to its citation, in characters, the number of an item stands in a box.
BEFORE, AFTER = 60, 40


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Origin(_Strict):
    """A kind of text that was read; `second_hand` if it is not by the authors of the paper."""

    name: str
    second_hand: bool = False


class Paper(_Strict):
    """A paper whose statements are listed; `versions` says which version their numbers are of."""

    title: str
    versions: str


class Statement(_Strict):
    """A row. `number` is as cited, `other` its number in another version; `read` are letters of origins."""

    paper: str
    item: int
    kind: str
    title: str
    read: tuple[str, ...] = Field(min_length=1)
    number: str | None = None
    other: str | None = None
    remark: str | None = None
    pages: tuple[str, ...] = ()
    boxes: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    not_covered: str | None = None

    @property
    def anchor(self) -> str:
        """Its place on the page of the index."""
        return f"statement-{self.paper.lower()}-{self.item}"

    @property
    def called(self) -> str:
        """Its number, or else its title."""
        return self.number or self.title


class Index(_Strict):
    """The data file as it is written."""

    origins: dict[str, Origin]
    papers: dict[str, Paper]
    statements: tuple[Statement, ...]

    def second_hand(self, row: Statement) -> bool:
        """Whether nothing by the authors was read for this row."""
        return all(self.origins[letter].second_hand for letter in row.read)

    def read_in(self, row: Statement) -> str:
        """Where its wording was read, in words."""
        *most, last = (self.origins[letter].name for letter in row.read)
        return f"{', '.join(most)} and {last}" if most else last


class Claim(Protocol):
    """What the index uses of a claim."""

    @property
    def id(self) -> str:
        """Return its identifier."""
        ...

    @property
    def source(self) -> str:
        """Return its citation."""
        ...

    @property
    def box(self) -> str | None:
        """Return the label of the box that states it."""
        ...

    @property
    def figure(self) -> str:
        """Return the figure that publishes it."""
        ...


AnyClaim = TypeVar("AnyClaim", bound=Claim)


class Statements(Generic[AnyClaim]):
    """The index joined with the boxes on the pages and the claims of the figures."""

    def __init__(self, index: Index, found: Sequence[Box], claims: Sequence[AnyClaim]):
        self.index, self.boxes, self.claims = index, {box.label: box for box in found}, list(claims)

    @classmethod
    def of(cls, project: Project, claims: Sequence[AnyClaim]) -> "Statements[AnyClaim] | None":
        """Those of the book, or None if it lists none."""
        place = project.settings.statements
        return cls(read_index(project.root / place), boxes(project), claims) if place else None

    def rows_of_box(self, label: str) -> list[Statement]:
        """The statements a box belongs to: those that name it, else the first with the number it cites."""
        return self._rows_by_box.get(label, [])

    def rows_of_claim(self, identifier: str) -> list[Statement]:
        """The statements a claim belongs to: those that name it, else by the number its source cites, else its box."""
        return self._rows_by_claim.get(identifier, [])

    def boxes_of(self, row: Statement) -> list[str]:
        """The labels of the boxes that state it."""
        return [label for label in self.boxes if row in self.rows_of_box(label)]

    def claims_of(self, row: Statement) -> list[AnyClaim]:
        """The claims that check it, in the order of the book."""
        return [claim for claim in self.claims if row in self.rows_of_claim(claim.id)]

    def figures_of(self, row: Statement) -> list[str]:
        """The figures that show it: those it names, and those its claims belong to."""
        return list(dict.fromkeys([*row.figures, *(claim.figure for claim in self.claims_of(row))]))

    def box_cited(self, citation: str) -> str | None:
        """The label of the box that states what `[PAPER, Lemma 2.1]` cites; None if none does."""
        rows = self._numbered(*_source(citation))
        return next((label for row in rows for label in self.boxes_of(row)), None)

    def cited_by(self, label: str) -> list[str]:
        """The listed papers that a box cites, or is named after."""
        box = self.boxes[label]
        return [paper for paper in self.index.papers if label.startswith(f"{paper.lower()}-") or box.cites(paper)]

    def stated_by(self, label: str) -> Statement | None:
        """The numbered statement of the paper that a box, `bb26-lemma-2-1`, is named after; None for one of our own."""
        named = next((paper for paper in self.index.papers if label.startswith(f"{paper.lower()}-")), None)
        if label not in self.boxes or named is None:
            return None
        return next((row for row in self.rows_of_box(label) if row.paper == named and row.number), None)

    def cites_paper(self, claim: Claim) -> bool:
        """Whether a claim's source is a listed paper."""
        return _source(claim.source)[0] in self.index.papers

    @cached_property
    def _rows_by_box(self) -> dict[str, list[Statement]]:
        rows: dict[str, list[Statement]] = {}
        for box in self.boxes.values():
            named = [row for row in self.index.statements if box.label in row.boxes]
            cited = self.cited_by(box.label)
            rows[box.label] = named or [row for paper in cited for row in self._numbered(paper, _near(box, paper))]
        return rows

    @cached_property
    def _rows_by_claim(self) -> dict[str, list[Statement]]:
        rows: dict[str, list[Statement]] = {}
        for claim in self.claims:
            named = [row for row in self.index.statements if claim.id in row.claims]
            paper, numbers = _source(claim.source)
            found = named or self._numbered(paper, numbers)
            if not found and paper in self.index.papers and not numbers:
                found = [row for row in self.rows_of_box(claim.box or "") if row.paper == paper][:1]
            rows[claim.id] = found
        return rows

    def _numbered(self, paper: str, numbers: Iterable[tuple[str, str]]) -> list[Statement]:
        """For each number the first row of the paper that has it, of the kind that the number says if there is one."""
        found = []
        for kind, place in dict.fromkeys(numbers):
            rows = [row for row in self.index.statements if row.paper == paper]
            rows = [row for row in rows if (kind, place) in numbered(row.number or "")]
            found += [*(row for row in rows if row.kind == kind), *rows][:1]
        return found

    def faults(self, project: Project) -> list[str]:
        """What is wrong, each in a sentence that says what to do."""
        figures = {figure for name in project.notebooks() for figure in Notebook.named(project, name).figures}
        pages = {path.stem for path in project.book.glob("*.*")}
        known = {"boxes": set(self.boxes), "figures": figures, "pages": pages}
        known["claims"] = {claim.id for claim in self.claims}
        wrong = []
        for row in self.index.statements:
            place = f"Statement {row.item} of {row.paper} ({row.called})"
            for part, names in known.items():
                wrong += [
                    f"{place} names {name!r} among its {part}, which does not exist. {did_you_mean(name, names)}"
                    for name in getattr(row, part)
                    if name not in names
                ]
            if not (row.pages or self.boxes_of(row) or self.figures_of(row) or row.not_covered):
                wrong.append(f"{place} is stated nowhere: name a page or a box, or say in `not_covered` why.")
        need = "give it a row, or an existing row's number, in the list of statements: where was it read?"
        for box in self.boxes.values():
            cited = self.cited_by(box.label)
            if cited and not self.rows_of_box(box.label):
                wrong.append(f"Box {box.label!r} on {box.page} cites {', '.join(cited)} and has no row: {need}")
        for claim in self.claims:
            if self.cites_paper(claim) and not self.rows_of_claim(claim.id):
                wrong.append(f"Claim {claim.id!r} has the source {claim.source} and no row: {need}")
        return wrong


def read_index(path: Path) -> Index:
    """The data file, or a `UserError` that says what is wrong with it."""
    try:
        index = Index(**read_yaml(path))
    except (TypeError, ValidationError) as error:
        raise UserError(f"{path} is no list of statements: {error}") from error
    places = [(row.paper, row.item) for row in index.statements]
    twice = sorted({f"{paper} {item}" for paper, item in places if places.count((paper, item)) > 1})
    if twice:
        raise UserError(f"{path} has more than one row for {', '.join(twice)}.")
    for row in index.statements:
        for name, known in ((row.paper, index.papers), *((letter, index.origins) for letter in row.read)):
            if name not in known:
                raise UserError(f"{path}, {row.paper} {row.item}: there is no {name!r}. {did_you_mean(name, known)}")
    return index


def numbered(text: str) -> list[tuple[str, str]]:
    """Numbered items in a text, however they are abbreviated: `Prop. 3.1` and `Proposition 3.1` are the same."""
    found: list[tuple[str, str]] = [(kind.lower(), number.rstrip(".")) for kind, number in NUMBERED.findall(text)]
    return [(WORDS.get(kind, kind), number) for kind, number in found]


def _source(source: str) -> tuple[str, list[tuple[str, str]]]:
    """Paper and numbers of a claim's source `[PAPER, Prop. 3.1]`."""
    match = re.match(r"\[(\w+)(.*)\]", source)
    return (match[1], numbered(match[2])) if match else ("", [])


def _near(box: Box, paper: str) -> list[tuple[str, str]]:
    """The numbers that stand beside a citation of the paper in a box."""
    return [
        number
        for cited in re.finditer(rf"\{{cite:?\w*\}}`{paper}`|\[{paper}\b", box.text)
        for number in numbered(box.text[max(cited.start() - BEFORE, 0) : cited.end() + AFTER])
    ]
