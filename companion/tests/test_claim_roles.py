"""The roles that quote a claim in prose print its value in their form, or report why the claim has no such form."""

import pytest

from companion.figures.record import ClaimRecord
from companion.figures.schema import Claim
from companion.site.sphinx.claim_roles import FORMS

BOUND = {"because": "a bound", "source": "derived here"}


def printed(role: str, claim: Claim) -> str:
    return FORMS[role](ClaimRecord.of(claim))


def test_the_number_is_printed():
    assert printed("claim", Claim.at_most("rate", "It falls.", 0.25, 1.0, **BOUND)) == "0.25"


def test_counts_are_printed():
    claim = Claim.at_least("starts", "Most arrive.", 8 / 24, 0.1, successes=8, trials=24, **BOUND)
    assert printed("claim-count", claim) == "8 of 24"


def test_a_fraction_is_printed_in_percent():
    assert printed("claim-percent", Claim.at_most("share", "It is small.", 0.125, 1.0, **BOUND)) == "12.5 %"


def test_agreement_is_printed_in_standard_errors():
    claim = Claim.consistent("curve", "They agree.", 2.34, comparisons=61, source="derived here")
    assert printed("claim-agree", claim) == "agree within 2.3 standard errors"


def test_the_quiet_role_prints_no_number():
    assert printed("claim-quiet", Claim.at_most("rate", "It falls.", 0.25, 1.0, **BOUND)) == ""


@pytest.mark.parametrize(
    ("role", "reason"),
    [("claim-count", "successes"), ("claim-agree", "Claim.consistent"), ("claim-percent", "between 0 and 1")],
)
def test_a_claim_without_the_form_is_an_error(role, reason):
    with pytest.raises(ValueError, match=reason):
        printed(role, Claim.at_most("rate", "It falls.", 1.5, 2.0, **BOUND))
