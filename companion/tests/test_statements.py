"""The list of a paper's statements: each row is joined with its boxes and claims, and faults are reported."""

import json
import re
from types import SimpleNamespace

import pytest

from companion.io.errors import UserError
from companion.project.paths import Project
from companion.site.statements import Statements, numbered, read_index

LIST = """\
origins:
  P: {name: the paper}
  T: {name: hearsay, second_hand: true}
papers:
  W05: {title: Walks, versions: the first}
statements:
  - {paper: W05, item: 4, kind: hypotheses, number: Lemma 1.2, title: Independent steps, read: [P], pages: [page]}
  - {paper: W05, item: 1, kind: lemma, number: Lemma 1.2, title: First half, read: [P], boxes: [a-lemma]}
  - {paper: W05, item: 2, kind: lemma, number: Lemma 1.2, title: Second half, read: [T], claims: [second-half]}
  - {paper: W05, item: 3, kind: theorem, number: Theorem B.1, title: Recurrence, read: [P, T], boxes: [recurrence]}
"""
LEMMA = "```{prf:lemma} A lemma\n:label: a-lemma\n\nIt is so. This is Lemma 1.2 of {cite:t}`W05`.\n```\n"
RECURRENCE = ":::{prf:theorem}\n:label: recurrence\n\nIt returns.\n:::\n"


def claim(identifier, source, box=None):
    return SimpleNamespace(id=identifier, source=source, box=box, figure="returns")


CLAIMS = [
    claim("first-half", "[W05, Lemma 1.2]"),
    claim("second-half", "[W05, Lemma 1.2]"),
    claim("returns", "[W05]", "recurrence"),
    claim("ours", "derived here", "recurrence"),
]


@pytest.fixture
def project(tmp_path):
    """A book with one page and a list of statements."""
    (tmp_path / "book").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.companion]\nchapters = "episodes"\nstatements = "list.yml"\n')
    (tmp_path / "list.yml").write_text(LIST)
    (tmp_path / "_toc.yml").write_text("root: book/page\nchapters:\n- file: book/walks\n")
    (tmp_path / "book/page.md").write_text(f"# Page\n\n{LEMMA}\n{RECURRENCE}")
    return Project(tmp_path)


def joined(project, claims=CLAIMS):
    return Statements.of(project, claims)


def test_rows_are_joined_with_boxes_and_claims(project):
    """The first row with a number gets the claims that no row names; a bare citation is joined by its box.

    A second-hand statement was not read in the paper.
    """
    statements = joined(project)
    _, first, second, third = statements.index.statements
    assert [statements.boxes_of(row) for row in (first, second, third)] == [["a-lemma"], [], ["recurrence"]]
    claims = [[claim.id for claim in statements.claims_of(row)] for row in (first, second, third)]
    assert claims == [["first-half"], ["second-half"], ["returns"]]
    assert statements.figures_of(third) == ["returns"]
    assert [statements.index.second_hand(row) for row in statements.index.statements] == [False, False, True, False]
    assert statements.faults(project) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (":label: a-lemma", ":label: b-lemma", "Box 'b-lemma' on page cites W05 and has no row"),
        (":label: recurrence", ":label: w05-recurrence", "Box 'w05-recurrence' on page cites W05 and has no row"),
        ("It returns.", "It returns {cite:p}`W05`, Lemma 1.2.", None),
    ],
    ids=["not named", "named after the paper", "named by a row"],
)
def test_a_box_that_cites_needs_a_row(project, old, new, fault):
    page = project.book / "page.md"
    page.write_text(page.read_text().replace(old, new))
    faults = joined(project).faults(project)
    assert any(fault in message for message in faults) if fault else faults == []


def test_a_box_has_one_source(project):
    """A box that cites a paper is from it unless it says that it is derived; the list `heuristic` decides over both."""
    derived = "```{prf:lemma}\n:label: ours\n\nAs in Lemma 1.2 of {cite:t}`W05`. Derived here.\n```\n"
    page = project.book / "page.md"
    page.write_text(f"{page.read_text()}\n{derived}")
    labels = ("a-lemma", "recurrence", "ours")
    assert [joined(project).source_of(label) for label in labels] == ["paper", "derived", "derived"]
    (project.root / "list.yml").write_text(f"{LIST}heuristic: [recurrence, a-lemma, recurence]\n")
    statements = joined(project)
    assert [statements.source_of(label) for label in labels] == ["heuristic", "heuristic", "derived"]
    fault, _ = statements.faults(project)  # and no row names `ours`
    assert "'recurence', which is no box. Did you mean 'recurrence'?" in fault


def test_a_claim_that_cites_needs_a_row(project):
    """Citations of papers without a list need no row."""
    claims = [*CLAIMS, claim("third", "[W05, Thm 9]"), claim("bare", "[W05]"), claim("other", "[V, Thm 9]")]
    faults = joined(project, claims).faults(project)
    assert [fault.split()[1] for fault in faults] == ["'third'", "'bare'"]


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ("boxes: [recurence]", "lists 'recurence' in `boxes`, which does not exist. Did you mean 'recurrence'?"),
        ("claims: [nothing]", "lists 'nothing' in `claims`"),
        ("figures: [nothing]", "lists 'nothing' in `figures`"),
        ("pages: [nothing]", "lists 'nothing' in `pages`"),
        ("remark: nothing", "is stated nowhere"),
        ("not_covered: too hard", None),
    ],
)
def test_a_row_refers_to_existing_objects_or_gives_a_reason(project, entry, fault):
    path = project.root / "list.yml"
    path.write_text(f"{LIST}  - {{paper: W05, item: 5, kind: remark, title: More, read: [T], {entry}}}\n")
    faults = joined(project).faults(project)
    assert any(fault in message for message in faults) if fault else faults == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("read: [T], claims", "read: [X], claims", "'X' is unknown. Known: P, T"),
        ("read: [T], claims", "read: [], claims", "is not an index of statements"),
        ("paper: W05, item: 3", "paper: V05, item: 3", "'V05' is unknown. Did you mean 'W05'?"),
        ("item: 2", "item: 1", "more than one row for W05 1"),
        ("kind: theorem", "sort: theorem", "is not an index of statements"),
    ],
)
def test_an_invalid_list_is_reported(project, old, new, message):
    assert old in LIST
    (project.root / "list.yml").write_text(LIST.replace(old, new))
    with pytest.raises(UserError, match=re.escape(message)):
        joined(project)


def test_a_book_may_have_no_list(project):
    (project.root / "pyproject.toml").write_text('[tool.companion]\nchapters = "episodes"\n')
    assert joined(project) is None


def test_boxes_in_notebooks_are_found(project):
    cell = {"cell_type": "markdown", "metadata": {}, "source": LEMMA.replace("a-lemma", "b-lemma").splitlines(True)}
    (project.book / "walks.ipynb").write_text(json.dumps({"cells": [cell]}))
    assert "b-lemma" in joined(project).boxes


def test_abbreviated_numbers_are_recognised():
    numbers = numbered("Prop. 3.1 and Proposition 3.1, Thm~4.3, Corollary D.3. Cor. D.3; Eq. 9, as in Lemma E.1.")
    expected = [("proposition", "3.1")] * 2 + [("theorem", "4.3")] + [("corollary", "D.3")] * 2
    assert numbers == [*expected, ("equation", "9"), ("lemma", "E.1")]


def test_a_missing_list_is_reported_by_its_file_name(tmp_path):
    with pytest.raises(UserError, match=r"list\.yml"):
        read_index(tmp_path / "list.yml")


def test_a_row_may_name_a_withheld_claim(project):
    """Otherwise the row would seem to name a claim that does not exist."""
    made = [claim for claim in CLAIMS if claim.id != "second-half"]
    for withheld, names_it in ([], True), (["second-half"], False):
        faults = Statements.of(project, made, withheld).faults(project)
        assert any("'second-half'" in fault for fault in faults) == names_it
