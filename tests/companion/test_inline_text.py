"""The text of a claim on the page of a figure: verdict, reason, and distance of the alternative."""

import pytest

from companion.figures.record import ClaimRecord
from companion.figures.schema import Alternative, Claim
from companion.site.sphinx.inline_text import explanation, verdict


def reason_text(claim: Claim) -> str:
    return "".join(node.astext() for node in explanation(ClaimRecord.of(claim)))


def test_the_reason_and_the_distance_of_the_alternative_are_shown():
    claim = Claim.equal(
        *("rate", "It falls.", 1.01, 1.0),
        **{"within": 0.02, "because": "four standard errors.", "source": "ours", "std_error": 0.005},
        alternative=Alternative("it rises", 3.0),
    )
    assert reason_text(claim) == (
        "Reason for the tolerance: four standard errors. "
        "Alternative: it rises, which gives 3, 100 tolerances from the expected value. "
        "The standard error is 0.005. "
    )
    assert verdict(ClaimRecord.of(claim)) == "1.01 measured; would fail more than 0.02 away from 1"


@pytest.mark.parametrize(
    ("within", "distance"), [(0.0, ""), (0.25, ", 4 tolerances beyond the bound"), (float("inf"), "")]
)
def test_a_bound_has_a_distance_if_it_has_a_tolerance(within, distance):
    claim = Claim.at_most(
        *("rate", "It falls.", 0.5, 1.0),
        **{"within": within, "because": "the lemma", "source": "ours"},
        alternative=Alternative("it rises", 2.0),
    )
    assert reason_text(claim) == f"Reason for the bound: the lemma. Alternative: it rises, which gives 2{distance}. "


def test_missing_parts_of_a_claim_are_left_out():
    """A claim of the plain constructor has no reason, and the alternative is optional."""
    claim = Claim("rate", "It falls.", "ours", 1.0, 1.0, 0.5, Alternative("it rises", 2.0))
    assert reason_text(claim) == "Alternative: it rises, which gives 2, 2 tolerances from the expected value. "
    assert reason_text(Claim("rate", "It falls.", "ours", 1.0, 1.0, 0.5)) == ""
