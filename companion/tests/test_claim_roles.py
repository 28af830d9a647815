"""The roles that quote a claim in prose print its value in their form, or report why the claim has no such form."""

import pytest

from companion.figures.claims import Claims
from companion.site.sphinx.claim_roles import FORMS


def printed(role: str, form: str, *arguments, **options) -> str:
    """Return the text of a role for a claim of this form of the builder."""
    claims = Claims("a", source="derived here")
    getattr(claims, form)("rate", "It falls.", *arguments, **options)
    (claim,) = claims
    return FORMS[role](claim)


def test_the_number_is_printed():
    assert printed("claim", "at_most", 0.25, 1.0, because="a bound") == "0.25"


def test_counts_are_printed():
    assert printed("claim-count", "at_least", 8 / 24, 0.1, count=(8, 24), because="a bound") == "8 of 24"


def test_a_fraction_is_printed_in_percent():
    assert printed("claim-percent", "at_most", 0.125, 1.0, because="a bound") == "12.5 %"


def test_agreement_is_printed_in_standard_errors():
    words = "agree (largest of 61 deviations 2.3 standard errors, allowed 4.3)"
    assert printed("claim-agree", "agree", [2.34, *[0.5] * 60]) == words


def test_the_quiet_role_prints_no_number():
    assert printed("claim-quiet", "at_most", 0.25, 1.0, because="a bound") == ""


@pytest.mark.parametrize(
    ("role", "reason"),
    [("claim-count", "successes"), ("claim-agree", "`agree`"), ("claim-percent", "between 0 and 1")],
)
def test_a_claim_without_the_form_is_an_error(role, reason):
    with pytest.raises(ValueError, match=reason):
        printed(role, "at_most", 1.5, 2.0, because="a bound")
