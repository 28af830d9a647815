"""The list of the papers' statements is complete, and agrees with boxes, figures and claims."""

import re
from pathlib import Path

import pytest

from companion.build.publication_policy import published_claims
from companion.project.paths import Project
from companion.project.theorem_blocks import boxes, prose
from companion.site.statements import Statements

PROJECT = Project(Path(__file__).parents[1])
# The number of items of each paper, counted when the list was written.
ITEMS = {"BB26": 32, "D26": 25, "Do25": 5, "Ch24": 6, "GBB26": 26, "Go26": 5, "He25": 16}


@pytest.fixture(scope="module")
def statements() -> Statements:
    statements = Statements.of(PROJECT, published_claims(PROJECT))
    assert statements is not None
    return statements


def test_every_box_and_claim_that_cites_a_paper_has_a_row(statements):
    """Every row names existing boxes, pages, figures and claims, or a reason why there are none."""
    assert statements.faults(PROJECT) == []


@pytest.mark.parametrize("paper", ITEMS)
def test_the_items_of_a_paper_are_complete(statements, paper):
    assert [row.item for row in statements.index.statements if row.paper == paper] == [*range(1, ITEMS[paper] + 1)]


def test_only_sources_by_third_parties_are_second_hand(statements):
    """Poster, abstract, code, blog post and text are by the authors; audit, reviews and notes are not."""
    second_hand = {letter: origin.second_hand for letter, origin in statements.index.origins.items()}
    assert second_hand == {
        "S": False,
        "B": False,
        "C": False,
        "W": False,
        "T": False,
        "P": False,
        "A": True,
        "R": True,
        "N": True,
    }


def test_second_hand_statements_say_what_to_compare_with_the_full_text(statements):
    index = statements.index
    assert [row.called for row in index.statements if index.second_hand(row) and not row.compare] == []


def test_the_papers_theorems_are_checked(statements):
    """Each numbered lemma, proposition, theorem, corollary and result has a box or a claim."""
    kinds = {"lemma", "proposition", "theorem", "corollary", "result"}
    rows = [row for row in statements.index.statements if row.number and row.kind in kinds]
    assert len(rows) > 10
    assert [row.called for row in rows if not statements.boxes_of(row) and not statements.claims_of(row)] == []


@pytest.mark.parametrize(
    "page",
    [
        "new_results.md",
        "what_holds.md",
        "needle_in_a_long_prompt.ipynb",
        "threshold_in_temperature.ipynb",
        "single_location_training.ipynb",
    ],
)
def test_the_softmax_threshold_is_credited(page):
    """Pages about the threshold 2 ln L, or about softmax trained from any start, cite its first source."""
    assert "{cite:t}`Do25`" in (PROJECT.book / page).read_text(encoding="utf-8")


def test_the_box_on_freezing_cites_the_random_energy_argument_for_attention(statements):
    assert "Do25" in statements.cited_by("hay-freezes")


@pytest.mark.parametrize("label", ["frozen-participation", "risk-in-temperature"])
def test_claims_on_frozen_weights_agree_with_the_theorem(statements, label):
    """The boxes on frozen weights are proved, so neither they nor the claims that check them are heuristic."""
    assert statements.source_of(label) == "derived"
    sources = {claim.source for claim in statements.claims if claim.box == label}
    assert sources == {"derived here"}


# A proof that follows directly, on the page or folded.
PROOF = re.compile(r"\s*(?:````\{dropdown\}[^\n]*\n)?```\{prf:proof\}\n(.*?)\n```\n", re.DOTALL)


@pytest.mark.parametrize(
    "label",
    [
        "mean-fluctuation",
        "score-error-bound",
        "four-constants",
        "optimal-transport",
        "frozen-participation",
        "power-law-edges",
    ],
)
def test_statements_that_other_pages_use_have_a_proof(label):
    """Proofs, claims and exercises rest on these boxes."""
    (box,) = [box for box in boxes(PROJECT) if box.label == label]
    assert box.kind in {"theorem", "lemma", "proposition", "remark"}
    after = prose(PROJECT.notebook(box.page)).split(f":label: {label}\n")[1].partition("\n```\n")[2]
    proof = PROOF.match(after)
    assert proof
    assert len(proof[1]) > 300


def test_the_proof_of_the_best_factor_names_the_bound_that_it_needs():
    text = prose(PROJECT.notebook("trained_at_other_lengths")).split(":label: best-factor\n")[1]
    assert "{prf:ref}`score-error-bound`" in text.split("```{prf:proof}")[1].split("\n```")[0]
