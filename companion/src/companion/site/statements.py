"""The index of the statements of the papers that a book is about.

A YAML file (the entry `statements` of `[tool.companion]`) lists the statements: where each was read, where the book
states it, and which claims check it. A row names its boxes by their labels. A claim whose source is
`[PAPER, Lemma 2.1]` belongs to the first row with this number, preferably of this kind, unless a row names the claim. A
box or claim that cites a listed paper and has no row is a fault, because the index then does not record where its
wording was read.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from companion.figures.record import PublishedClaim
from companion.io.errors import UserError, did_you_mean
from companion.io.yaml import read_yaml
from companion.project.notebooks import Notebook
from companion.project.paths import Project, visible
from companion.project.theorem_blocks import Box, boxes

# Abbreviations of the kinds of numbered items.
WORDS = {"prop": "proposition", "thm": "theorem", "th": "theorem", "cor": "corollary", "eq": "equation"}
NUMBERED = re.compile(r"\b([A-Z][a-z]+)\.?[\s~]+([A-Z]?[0-9][0-9.]*|[A-Z]\.[0-9]+)")
# A box that cites a paper and contains these words states a result of the book.
DERIVED = re.compile(r"\bderived here\b", re.IGNORECASE)
# The source of a box: a paper, this book, or a heuristic argument.
BoxSource = Literal["paper", "derived", "heuristic"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Origin(_Strict):
    """A text in which statements were read; `second_hand` if it is not by the authors of the paper."""

    name: str
    second_hand: bool = False


class Paper(_Strict):
    """A paper whose statements are listed; `versions` names the version that the numbers refer to."""

    title: str
    versions: str


class Statement(_Strict):
    """A row of the index: one statement of a paper.

    `number` is the number in citations and `other` the number in another version of the paper. `read` are the letters
    of the origins. `compare` says what to compare with the full text, if that was not read. `not_covered` says which
    part the book leaves out, and why.
    """

    paper: str
    item: int
    kind: str
    title: str
    read: tuple[str, ...] = Field(min_length=1)
    number: str | None = None
    other: str | None = None
    remark: str | None = None
    compare: str | None = None
    pages: tuple[str, ...] = ()
    boxes: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    not_covered: str | None = None

    @property
    def anchor(self) -> str:
        """The anchor of the row on the page of the index."""
        return f"statement-{self.paper.lower()}-{self.item}"

    @property
    def called(self) -> str:
        """The number of the statement, or its title if it has no number."""
        return self.number or self.title


class Index(_Strict):
    """The content of the YAML file."""

    origins: dict[str, Origin]
    papers: dict[str, Paper]
    statements: tuple[Statement, ...]
    heuristic: tuple[str, ...] = Field((), description="the boxes that rest on a heuristic or on a condition")

    def second_hand(self, row: Statement) -> bool:
        """Return whether all origins of a row are second-hand."""
        return all(self.origins[letter].second_hand for letter in row.read)

    def read_in(self, row: Statement) -> str:
        """Return the names of the origins of a row, joined as in a sentence."""
        *most, last = (self.origins[letter].name for letter in row.read)
        return f"{', '.join(most)} and {last}" if most else last


class Statements:
    """The index joined with the boxes on the pages and the claims of the figures.

    Rows may also name `withheld` claims, which check nothing.
    """

    def __init__(
        self, index: Index, theorem_boxes: Sequence[Box], claims: Sequence[PublishedClaim], withheld: Iterable[str] = ()
    ):
        self.withheld = set(withheld)
        self.index, self.boxes, self.claims = index, {box.label: box for box in theorem_boxes}, list(claims)

    @classmethod
    def of(
        cls, project: Project, claims: Sequence[PublishedClaim], withheld: Iterable[str] = ()
    ) -> "Statements | None":
        """Return the statements of a book joined with `claims`, or None if the book has no index."""
        path = project.settings.statements
        return cls(read_index(project.root / path), boxes(project), claims, withheld) if path else None

    def rows_of_box(self, label: str) -> list[Statement]:
        """Return the rows that name a box."""
        return [row for row in self.index.statements if label in row.boxes]

    def rows_of_claim(self, identifier: str) -> list[Statement]:
        """Return the rows of a claim: those that name it, else those of the number it cites, else that of its box."""
        return self._rows_by_claim.get(identifier, [])

    def boxes_of(self, row: Statement) -> list[str]:
        """Return the labels of the boxes that state `row`."""
        return [label for label in self.boxes if label in row.boxes]

    def claims_of(self, row: Statement) -> list[PublishedClaim]:
        """Return the claims that check `row`, in the order of the book."""
        return [claim for claim in self.claims if row in self.rows_of_claim(claim.id)]

    def figures_of(self, row: Statement) -> list[str]:
        """Return the figures that show `row`: those that it names, and those of its claims."""
        return list(dict.fromkeys([*row.figures, *(claim.figure for claim in self.claims_of(row) if claim.figure)]))

    def numbers_by_page(self) -> Counter[tuple[str, str]]:
        """Return, by paper and page, how many statements of the paper the page states, shows or checks."""
        counts: Counter[tuple[str, str]] = Counter()
        for row in self.index.statements:
            pages = {*row.pages, *(self.boxes[label].page for label in self.boxes_of(row))}
            pages |= {claim.notebook for claim in self.claims_of(row)}
            counts.update((row.paper, page) for page in pages)
        return counts

    def box_cited(self, citation: str) -> str | None:
        """Return the label of the first box that states the statement `[PAPER, Lemma 2.1]`, or None."""
        rows = self._numbered(*_source(citation))
        return next((label for row in rows for label in self.boxes_of(row)), None)

    def cited_by(self, label: str) -> list[str]:
        """Return the listed papers that a box cites or that its label names."""
        box = self.boxes[label]
        return [paper for paper in self.index.papers if label.startswith(f"{paper.lower()}-") or box.cites(paper)]

    def stated_by(self, label: str) -> Statement | None:
        """Return the numbered row of the paper that a label such as `bb26-lemma-2-1` names, or None."""
        paper = next((paper for paper in self.index.papers if label.startswith(f"{paper.lower()}-")), None)
        if label not in self.boxes or paper is None:
            return None
        return next((row for row in self.rows_of_box(label) if row.paper == paper and row.number), None)

    def source_of(self, label: str) -> BoxSource:
        """Return the source of a box: heuristic if the index says so, the paper that it quotes, or else this book."""
        if label in self.index.heuristic:
            return "heuristic"
        quoted = self.cited_by(label) and not DERIVED.search(self.boxes[label].text)
        return "paper" if quoted or self.stated_by(label) else "derived"

    def cites_paper(self, claim: PublishedClaim) -> bool:
        """Return whether the source of a claim is a listed paper."""
        return _source(claim.source)[0] in self.index.papers

    @cached_property
    def _rows_by_claim(self) -> dict[str, list[Statement]]:
        rows: dict[str, list[Statement]] = {}
        for claim in self.claims:
            named = [row for row in self.index.statements if claim.id in row.claims]
            paper, numbers = _source(claim.source)
            of_claim = named or self._numbered(paper, numbers)
            if not of_claim and paper in self.index.papers and not numbers:
                of_claim = [row for row in self.rows_of_box(claim.box or "") if row.paper == paper][:1]
            rows[claim.id] = of_claim
        return rows

    def _numbered(self, paper: str, numbers: Iterable[tuple[str, str]]) -> list[Statement]:
        """Return the first row of the paper with each kind and number, preferably one whose `kind` is the same."""
        first_rows: list[Statement] = []
        for kind, number in dict.fromkeys(numbers):
            rows = [row for row in self.index.statements if row.paper == paper]
            rows = [row for row in rows if (kind, number) in numbered(row.number or "")]
            first_rows += [*(row for row in rows if row.kind == kind), *rows][:1]
        return first_rows

    def faults(self, project: Project) -> list[str]:
        """Return one sentence per fault of the index, each with its correction."""
        figures = {figure for name in project.notebooks() for figure in Notebook.named(project, name).figures}
        pages = {path.stem for path in visible(project.book, "*.*")}
        known = {"boxes": set(self.boxes), "figures": figures, "pages": pages}
        known["claims"] = {claim.id for claim in self.claims} | self.withheld
        sentences: list[str] = []
        for row in self.index.statements:
            statement = f"Statement {row.item} of {row.paper} ({row.called})"
            for part, names in known.items():
                sentences += [
                    f"{statement} lists {name!r} in `{part}`, which does not exist. {did_you_mean(name, names)}"
                    for name in getattr(row, part)
                    if name not in names
                ]
            if not (row.pages or self.boxes_of(row) or self.figures_of(row) or row.not_covered):
                sentences.append(
                    f"{statement} is stated nowhere: name a page or a box, or give the reason in `not_covered`."
                )
        sentences += [
            f"The list `heuristic` names {name!r}, which is no box. {did_you_mean(name, self.boxes)}"
            for name in self.index.heuristic
            if name not in self.boxes
        ]
        correction = "name it in a row of the index of statements, to record where it was read."
        for box in self.boxes.values():
            cited = self.cited_by(box.label)
            if cited and not self.rows_of_box(box.label):
                sentences.append(
                    f"Box {box.label!r} on {box.page} cites {', '.join(cited)} and has no row: {correction}"
                )
        for claim in self.claims:
            if self.cites_paper(claim) and not self.rows_of_claim(claim.id):
                sentences.append(f"Claim {claim.id!r} has the source {claim.source} and no row: {correction}")
        return sentences


def read_index(path: Path) -> Index:
    """Return the index in the YAML file `path`. Raise a `UserError` that names the first wrong row."""
    try:
        index = Index(**read_yaml(path))
    except (TypeError, ValidationError) as error:
        raise UserError(f"{path} is not an index of statements: {error}") from error
    items = [(row.paper, row.item) for row in index.statements]
    if repeated := sorted({f"{paper} {item}" for paper, item in items if items.count((paper, item)) > 1}):
        raise UserError(f"{path} has more than one row for {', '.join(repeated)}. Keep one row per statement.")
    for row in index.statements:
        for name, known in ((row.paper, index.papers), *((letter, index.origins) for letter in row.read)):
            if name not in known:
                raise UserError(f"{path}, {row.paper} {row.item}: {name!r} is unknown. {did_you_mean(name, known)}")
    return index


def numbered(text: str) -> list[tuple[str, str]]:
    """Return kind and number of the numbered items in a text; `Prop. 3.1` and `Proposition 3.1` are the same."""
    items: list[tuple[str, str]] = [(kind.lower(), number.rstrip(".")) for kind, number in NUMBERED.findall(text)]
    return [(WORDS.get(kind, kind), number) for kind, number in items]


def _source(source: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the paper and the numbered items of a claim's source `[PAPER, Prop. 3.1]`."""
    match = re.match(r"\[(\w+)(.*)\]", source)
    return (match[1], numbered(match[2])) if match else ("", [])
