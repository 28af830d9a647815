"""The text of a claim on the page of a figure: verdict, and the lines by which it is judged."""

import pytest

from companion.figures.claims import Claims
from companion.figures.record import Claim
from companion.site.sphinx.inline_text import evidence, verdict


def lines(claim: Claim) -> dict[str, str]:
    return dict((field[0].astext(), field[1].astext()) for field in evidence(claim))


def only(form: str, *numbers: float, **options: object) -> Claim:
    """Return a claim of this form of the builder."""
    claims = Claims("a", source="ours")
    getattr(claims, form)("rate", "It falls.", *numbers, **options)
    (claim,) = claims
    return claim


def test_the_lines_have_the_reason_and_the_distance_of_the_alternative():
    reason = "four standard errors."
    claim = only("equal", 1.01, 1.0, within=0.02, because=reason, std_error=0.005, rejects=("it rises", 3.0))
    assert lines(claim) == {
        "Measured": "1.01, standard error 0.005",
        "Expected": "1",
        "Tolerance": "0.02; four standard errors",
        "Alternative": "it rises; this gives 3 (100 tolerances from the expected value)",
    }
    assert verdict(claim) == "1.01 measured; would fail more than 0.02 away from 1"


@pytest.mark.parametrize(
    ("within", "expected", "tolerance", "distance"),
    [
        (0.0, "at most 1; the lemma", "none", ""),
        (0.25, "at most 1", "0.25; the lemma", " (4 tolerances beyond the bound)"),
        (1e-9, "at most 1", "10⁻⁹; the lemma", " (more than 1,000 tolerances beyond the bound)"),
        (float("inf"), "at most 1", "∞; the lemma", ""),
    ],
)
def test_a_bound_has_a_distance_if_it_has_a_tolerance(within, expected, tolerance, distance):
    assert lines(only("at_most", 0.5, 1.0, within=within, because="the lemma", rejects=("it rises", 2.0))) == {
        "Measured": "0.5",
        "Expected": expected,
        "Tolerance": tolerance,
        "Alternative": f"it rises; this gives 2{distance}",
    }


def test_missing_parts_of_a_claim_are_left_out():
    """A record may lack a reason, and the alternative is optional."""
    numbers = {"relation": "=", "measured": 1.0, "expected": 1.0, "tolerance": 0.5}
    texts = {"id": "rate", "statement": "It falls.", "source": "ours"}
    shown = lines(Claim.judged(**numbers, **texts, alternative=None, std_error=None))
    assert shown == {"Measured": "1", "Expected": "1", "Tolerance": "0.5"}
