"""Claims can fail, every column of a table has a meaning, and the numbers of a figure are its table and claims."""

from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest

from companion import Alternative, Claim, Column, Estimate, Numbers, Table
from companion.figures.schema import comparison_quantile

nan = float("nan")


def claim(measured=1.0, relation="=", tolerance=0.1, **changes):
    fields = {
        "id": "slope",
        "statement": "the slope is one",
        "source": "derived here",
        "measured": measured,
        "expected": 1.0,
        "tolerance": tolerance,
        "alternative": Alternative("the slope is two", 2.0),
        "relation": relation,
    }
    return Claim(**{**fields, **changes})


TWO = pd.DataFrame({"x": [1.0], "y": [2.0]})


def table(**changes):
    fields = {"frame": pd.DataFrame({"x": [1, 2]}), "columns": {"x": Column("abscissa")}}
    return Table(**{**fields, **changes})


@pytest.mark.parametrize(
    ("relation", "measured", "holds"),
    [
        ("=", 1.0, True),
        ("=", 1.09, True),
        ("=", 0.91, True),
        ("=", 1.11, False),
        ("=", 0.89, False),
        ("≤", -5.0, True),
        ("≤", 1.09, True),
        ("≤", 1.11, False),
        ("≥", 5.0, True),
        ("≥", 0.91, True),
        ("≥", 0.89, False),
    ],
)
def test_a_claim_holds_within_its_tolerance(relation, measured, holds):
    assert claim(measured, relation).holds is holds


@pytest.mark.parametrize("relation", ["=", "≤", "≥"])
def test_nan_never_holds(relation):
    assert not claim(nan, relation).holds
    assert not claim(1.0, relation, tolerance=nan).holds
    assert not claim(1.0, relation, expected=nan).holds


@pytest.mark.parametrize("relation", ["=", "≤"])
def test_a_claim_fails_under_its_alternative(relation):
    assert claim(relation=relation).catches_alternative
    assert not claim(relation=relation, alternative=Alternative("hardly different", 1.05)).catches_alternative


def test_a_lower_bound_fails_under_its_alternative():
    assert claim(relation="≥", alternative=Alternative("the slope is nought", 0.0)).catches_alternative
    assert not claim(relation="≥").catches_alternative


def test_a_claim_keeps_plain_numbers():
    """NumPy and JAX scalars become floats, so that the published JSON contains plain numbers."""
    numbers = claim(np.float64(1.0), tolerance=np.float64(0.1), expected=np.array(1.0))
    assert type(numbers.measured) is float
    assert type(numbers.tolerance) is float
    assert type(numbers.expected) is float


@pytest.mark.parametrize("name", ["id", "statement", "source"])
def test_a_claim_with_an_empty_text_is_refused(name):
    with pytest.raises(ValueError, match=rf"`Claim\({name}=\.\.\.\)` must not be empty"):
        claim(**{name: "  "})


def test_claim_ids_are_unique():
    with pytest.raises(ValueError, match=r"ids must differ.*\['slope'\]"):
        Numbers(table(), (claim(), claim(id="bend"), claim()))


def test_a_figure_may_have_no_claims():
    assert Numbers(table()).claims == ()


@pytest.mark.parametrize("columns", [{}, {"y": Column("ordinate")}, {"x": Column("a"), "y": Column("b")}])
def test_every_column_needs_a_meaning(columns):
    with pytest.raises(ValueError, match=r"needs a meaning for every column.*Got columns \['x'\]"):
        table(columns=columns)


def test_meanings_are_in_the_order_of_the_columns():
    frame = pd.DataFrame({"x": [1], "y": [2]})
    with pytest.raises(ValueError, match="in order"):
        table(frame=frame, columns={"y": Column("b"), "x": Column("a")})


@pytest.mark.parametrize("role", ["std_error", "moves_with"])
def test_columns_named_by_a_column_must_exist(role):
    """A column may name the column of its standard error, or the one that it moves with."""
    with pytest.raises(ValueError, match=rf"`Column\({role}=\.\.\.\)` of 'x' must name a column.*'x_error'"):
        table(columns={"x": Column("abscissa", **{role: "x_error"})})
    frame = pd.DataFrame({"x": [1.0], "x_error": [0.1]})
    table(frame=frame, columns={"x": Column("abscissa", **{role: "x_error"}), "x_error": Column("its error")})


def test_a_column_has_an_error_or_moves_with_another():
    """With both, its comparison would be relaxed twice."""
    with pytest.raises(ValueError, match=r"'x'.* must not have both"):
        table(frame=TWO, columns={"x": Column("a", std_error="y", moves_with="y"), "y": Column("b")})


def test_a_column_moves_with_a_compared_column():
    """If it named itself, or a column that is not compared either, neither would be checked."""
    for target in ("x", "y"):
        columns = {"x": Column("a", moves_with=target), "y": Column("b", moves_with="x" if target == "y" else None)}
        with pytest.raises(ValueError, match="compared by itself"):
            table(frame=TWO, columns=columns)


TWICE = Alternative("the slope is two", 2.0)


def test_an_equality_has_all_given_fields():
    """They include the reason of the tolerance."""
    equality = Claim.equal(
        "slope",
        "the slope is one",
        1.02,
        1.0,
        within=0.1,
        because="five standard errors",
        source="derived here",
        std_error=0.02,
        alternative=TWICE,
        box="slopes",
    )
    expected = claim(1.02, std_error=0.02, box="slopes", reason="five standard errors")
    assert equality == expected
    assert equality.holds
    assert equality.catches_alternative


@pytest.mark.parametrize(
    ("constructor", "relation", "value"), [(Claim.at_most, "≤", 0.9), (Claim.at_least, "≥", 1.1)], ids=["most", "least"]
)
def test_a_bound_has_a_reason(constructor, relation, value):
    """The bound is exact unless `within` is given."""
    alternative = Alternative("the other way", 2.0 - value)
    bound = constructor("slope", "it is", value, 1.0, because="the lemma", source="ours", alternative=alternative)
    assert (bound.relation, bound.expected, bound.tolerance, bound.reason) == (relation, 1.0, 0.0, "the lemma")
    assert bound.holds
    assert bound.catches_alternative
    beyond = constructor("slope", "it is", 2.0 - value, 1.0, because="the lemma", source="ours")
    assert not beyond.holds
    assert constructor("slope", "it is", 2.0 - value, 1.0, within=0.11, because="noise", source="ours").holds


@pytest.mark.parametrize("comparisons", [1, 2, 61, 10**6, 10**12])
def test_many_comparisons_are_consistent_up_to_a_quantile(comparisons):
    """The bound is the 99.9 % quantile of the largest absolute value of that many normal variables."""
    quantile = -NormalDist().inv_cdf(-np.expm1(np.log(0.999) / comparisons) / 2)
    assert comparison_quantile(comparisons) == pytest.approx(quantile, rel=1e-12)
    for factor, holds in ((0.999, True), (1.001, False)):
        consistent = Claim.consistent("all", "they agree", factor * quantile, comparisons=comparisons, source="ours")
        assert consistent.holds is holds
        assert consistent.comparisons == comparisons
        assert f"{comparisons} standard" in str(consistent.reason) or comparisons == 1


def test_the_quantile_equals_that_of_lib():
    """Chapters may use either function."""
    statistics = pytest.importorskip("lib.statistics")
    for comparisons in (1, 7, 4000):
        assert comparison_quantile(comparisons) == pytest.approx(statistics.comparison_quantile(comparisons), rel=1e-9)


def test_a_claim_may_have_no_alternative():
    """`catches_alternative` is None then; a book may require an alternative."""
    bound = Claim.at_most("slope", "it is small", 0.5, 1.0, because="the lemma", source="ours")
    assert bound.alternative is None
    assert bound.catches_alternative is None


def test_a_frequency_has_its_counts():
    frequency = Claim.at_least(
        "most", "most do", 0.75, 0.5, because="a majority", source="ours", successes=np.int64(3), trials=4
    )
    assert (frequency.successes, frequency.trials) == (3, 4)
    assert type(frequency.successes) is int


@pytest.mark.parametrize(
    ("invalid", "words"),
    [
        ({"within": -0.1}, r"`Claim\.equal\(within=\.\.\.\)` must be at least 0\. Got -0\.1"),
        ({"within": nan}, r"must be at least 0\. Got nan"),
        ({"because": " "}, "`because` must not be empty"),
        ({"successes": 5, "trials": 4}, "between 0 and `trials`. Got 5 of 4"),
        ({"successes": 5}, "need each other"),
    ],
)
def test_invalid_arguments_of_a_claim_are_named(invalid, words):
    valid = {"within": 0.1, "because": "so", "source": "ours"}
    with pytest.raises(ValueError, match=words):
        Claim.equal("slope", "the slope is one", 1.0, 1.0, **{**valid, **invalid})


def test_zero_comparisons_are_refused():
    with pytest.raises(ValueError, match="`comparisons` must be at least 1"):
        Claim.consistent("none", "they agree", 0.0, comparisons=0, source="ours")


def test_an_estimate_declares_two_columns():
    """The standard error moves with its column, and has the same unit."""
    frame = pd.DataFrame({"x": [1.0], "y": [2.0], "y_std_error": [0.1], "z": [3.0], "error": [0.1]})
    columns = {"x": Column("abscissa"), "y": Estimate("mean output", "bits"), "z": Estimate("other", std_error="error")}
    assert Table(frame, columns).columns == {
        "x": Column("abscissa"),
        "y": Column("mean output", "bits", std_error="y_std_error"),
        "y_std_error": Column("Standard error of y", "bits", moves_with="y"),
        "z": Column("other", std_error="error"),
        "error": Column("Standard error of z", moves_with="z"),
    }


def test_a_column_declared_twice_is_refused():
    columns = {"y": Estimate("mean output"), "y_std_error": Column("its error")}
    with pytest.raises(ValueError, match="'y_std_error' is declared twice"):
        Table(pd.DataFrame({"y": [1.0], "y_std_error": [0.1]}), columns)


COLUMNS = {"name": Column("which"), "length": Column("how long"), "y": Estimate("mean output")}


def test_groups_of_rows_become_one_table():
    """Scalars are repeated for all rows of their group, keys may be in any order, and dtypes are kept."""
    groups = [
        {"y": np.array([1.0, 2.0]), "length": np.array([1, 2]), "name": "exact", "y_std_error": 0.0},
        {"name": "one", "length": 3, "y": 3.0, "y_std_error": 0.1},
        pd.DataFrame({"name": ["frame"], "length": [4], "y": [4.0], "y_std_error": [0.2]}),
    ]
    combined = Table.of(groups, COLUMNS)
    expected = pd.DataFrame(
        {
            "name": ["exact", "exact", "one", "frame"],
            "length": [1, 2, 3, 4],
            "y": [1.0, 2.0, 3.0, 4.0],
            "y_std_error": [0.0, 0.0, 0.1, 0.2],
        }
    )
    pd.testing.assert_frame_equal(combined.frame, expected)
    assert combined.columns == Table(expected, COLUMNS).columns


def test_values_of_a_column_missing_in_a_group_are_nan():
    combined = Table.of([{"name": "a", "length": 1, "y": 1.0}, {"name": "b", "length": 2, "y_std_error": 0.1}], COLUMNS)
    assert combined.frame["y"].isna().tolist() == [False, True]
    assert combined.frame["y_std_error"].isna().tolist() == [True, False]


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([], "at least one group"),
        ([{"name": "a", "lenght": 1}], r"group 0: column 'lenght' has no description\. Did you mean 'length'"),
        ([{"name": "a", "length": [1, 2], "y": [1.0, 2.0, 3.0]}], r"one length\. Got \{'length': 2, 'y': 3\}"),
        ([{"name": "a", "length": [[1, 2]]}], r"'length' must be a vector or a scalar\. Got shape \(1, 2\)"),
        ([{"name": "a", "length": 1, "y": 1.0}], "no group has the column 'y_std_error'"),
    ],
)
def test_invalid_groups_are_named(groups, words):
    with pytest.raises(ValueError, match=words):
        Table.of(groups, COLUMNS)
