"""Claims can fail; each form of the builder adds one claim with the reason of its bound and a verdict."""

from statistics import NormalDist

import numpy as np
import pytest

from companion import Claims
from companion.figures.claims import comparison_quantile
from companion.figures.record import Alternative, Claim, WithheldClaim

nan = float("nan")
TWICE = ("the slope is two", 2.0)


def only(form, *arguments, **options):
    """Return the claim that this form of the builder adds."""
    claims = Claims("slopes", source="derived here", box="slopes")
    getattr(claims, form)("slope", "the slope is one", *arguments, **options)
    (claim,) = claims
    return claim


@pytest.mark.parametrize(
    ("form", "measured", "holds"),
    [
        ("equal", 1.0, True),
        ("equal", 1.09, True),
        ("equal", 0.91, True),
        ("equal", 1.11, False),
        ("equal", 0.89, False),
        ("at_most", -5.0, True),
        ("at_most", 1.09, True),
        ("at_most", 1.11, False),
        ("at_least", 5.0, True),
        ("at_least", 0.91, True),
        ("at_least", 0.89, False),
        *((form, nan, False) for form in ("equal", "at_most", "at_least")),
    ],
)
def test_a_claim_holds_within_its_tolerance(form, measured, holds):
    """NaN is no number within a tolerance."""
    assert only(form, measured, 1.0, within=0.1, because="noise").holds is holds
    assert not only(form, 1.0, nan, within=0.1, because="noise").holds


def test_a_claim_has_all_given_parts_with_six_digits():
    """Scalars of NumPy become plain numbers; the verdict is that of the unrounded numbers."""
    numbers = {"within": np.array(1 / 3), "std_error": 1 / 15, "count": (np.int64(3), 4), "comparisons": np.int64(2)}
    claim = only("equal", np.float64(4 / 3), 1, because="five standard errors", rejects=TWICE, **numbers)
    texts = {"id": "slopes-slope", "statement": "the slope is one", "source": "derived here", "box": "slopes"}
    numbers = {"measured": 1.33333, "expected": 1.0, "tolerance": 0.333333, "std_error": 0.0666667}
    counts = {"successes": 3, "trials": 4, "comparisons": 2}
    assert claim == Claim(
        **texts,
        **numbers,
        **counts,
        relation="=",
        reason="five standard errors",
        alternative=Alternative(theory="the slope is two", measured=2.0),
        holds=True,
        catches_alternative=True,
    )


def test_source_and_box_of_one_claim_replace_those_of_all():
    claim = only("at_most", 0.5, 1, because="the lemma", source="[A, Lemma 1]", box=None)
    assert (claim.source, claim.box) == ("[A, Lemma 1]", None)


@pytest.mark.parametrize(("form", "value", "other"), [("at_most", 0.9, 1.1), ("at_least", 1.1, 0.9)])
def test_a_bound_is_exact_and_rejects_its_alternative(form, value, other):
    claim = only(form, value, 1.0, because="the lemma", rejects=("the other way", other))
    assert (claim.tolerance, claim.reason, claim.holds, claim.catches_alternative) == (0.0, "the lemma", True, True)
    assert not only(form, value, 1.0, within=0.2, because="noise", rejects=("hardly", other)).catches_alternative
    assert only(form, value, 1.0, because="the lemma").catches_alternative is None


def test_an_estimate_equals_a_value_up_to_a_quantile_of_its_standard_error():
    """The reason of the tolerance names the quantile."""
    claim = only("equal", 1.02, 1.0, std_error=0.01)
    assert claim.tolerance == pytest.approx(0.01 * comparison_quantile(1), rel=1e-5)
    assert claim.reason == "99.9 % quantile of one standard normal deviation, times the standard error"
    wider = only("equal", 1.02, 1.0, std_error=0.01, comparisons=7)
    assert wider.tolerance == pytest.approx(0.01 * comparison_quantile(7), rel=1e-5)


@pytest.mark.parametrize("comparisons", [1, 2, 61, 10**6, 10**12])
def test_the_quantile_is_that_of_the_largest_normal_variable(comparisons):
    quantile = -NormalDist().inv_cdf(-np.expm1(np.log(0.999) / comparisons) / 2)
    assert comparison_quantile(comparisons) == pytest.approx(quantile, rel=1e-12)


@pytest.mark.parametrize("shape", [(61,), (), (3, 4)])
def test_agreement_is_judged_by_the_largest_of_all_deviations(shape):
    """The statement names the test; the alternative is measured by its largest deviation, too."""
    quantile = comparison_quantile(int(np.prod(shape)))
    for factor, holds in ((0.999, True), (1.001, False)):
        deviations = np.zeros(shape)
        deviations[(0,) * len(shape)] = -factor * quantile
        claim = only("agree", deviations, rejects=("others", -9 * np.ones(3)))
        assert claim.holds is holds
        assert claim.comparisons == deviations.size
        assert claim.alternative == Alternative(theory="others", measured=9.0)
    words = "deviation" if shape == () else f"largest of {deviations.size} deviations"
    numbers = f"{1.001 * quantile:.1f} standard errors, allowed {quantile:.1f}"
    assert claim.statement == f"the slope is one ({words} {numbers})."


def test_another_bound_of_agreement_has_a_reason():
    """With standard errors from few samples the quantile is that of Student's distribution. NaN never agrees."""
    claim = only("agree", [5.0], within=6.0, because="Student's distribution")
    assert (claim.holds, claim.tolerance, claim.reason) == (True, 6.0, "Student's distribution")
    assert not only("agree", [0.1, nan]).holds


@pytest.mark.parametrize(
    ("options", "relation", "expected", "holds"),
    [
        ({}, "=", 4.0, False),
        ({"at_least": 3}, "≥", 3.0, True),
        ({"at_most": 2, "because": "one fails"}, "≤", 2.0, False),
    ],
)
def test_a_count_is_all_trials_unless_it_has_a_bound(options, relation, expected, holds):
    claim = only("count", 3, 4, **options)
    assert (claim.relation, claim.measured, claim.expected, claim.holds) == (relation, 3.0, expected, holds)
    assert (claim.successes, claim.trials, claim.tolerance) == (3, 4, 0.0)


def test_a_count_has_one_bound():
    with pytest.raises(ValueError, match="`at_least` or `at_most`, not both"):
        only("count", 3, 4, at_least=1, at_most=2)


def test_a_claim_is_withheld_with_a_reason():
    """The number of a withheld claim is not recorded; the text of an agreement then names no test."""
    words = {"id": "slopes-slope", "source": "derived here", "reason": "the run is short", "box": "slopes"}
    withheld = WithheldClaim(**words, statement="the slope is one")
    assert only("at_most", 2, 1, because="the lemma", requires=(False, "the run is short")) == withheld
    assert only("at_most", 2, 1, because="the lemma", requires=(np.True_, "the run is short")).measured == 2.0
    assert only("withheld", because="the run is short") == withheld
    assert only("agree", [1.0], requires=(False, "the run is short")).statement == "the slope is one."


@pytest.mark.parametrize(
    ("form", "arguments", "options", "words"),
    [
        ("equal", (1, 1), {"within": -0.1, "because": "so"}, r"`within` must be at least 0\. Got -0\.1"),
        ("equal", (1, 1), {"within": nan, "because": "so"}, r"must be at least 0\. Got nan"),
        ("equal", (1, 1), {"within": 0.1}, "`because` must not be empty"),
        ("equal", (1, 1), {}, "needs the tolerance `within`, or `std_error`"),
        ("at_most", (1, 1), {"because": " "}, "`because` must not be empty"),
        ("at_most", (1, 1), {"because": "so", "source": ""}, "`source` must not be empty"),
        ("at_most", (1, 1), {"because": "so", "requires": (False, "")}, "`requires` must not be empty"),
        ("withheld", (), {"because": ""}, "`because` must not be empty"),
        ("agree", ([1],), {"within": 3}, "`because` must not be empty"),
        ("agree", ([],), {}, "`comparisons` must be at least 1"),
    ],
)
def test_invalid_arguments_of_a_claim_are_named(form, arguments, options, words):
    with pytest.raises(ValueError, match=words):
        only(form, *arguments, **options)
