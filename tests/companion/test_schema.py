"""Claims can fail, tables explain themselves, and a figure's numbers are the two together."""

import numpy as np
import pandas as pd
import pytest

from companion import Alternative, Claim, Column, Numbers, Table

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
    """NumPy and JAX scalars become floats, so that the published json is the number and nothing else."""
    numbers = claim(np.float64(1.0), tolerance=np.float64(0.1), expected=np.array(1.0))
    assert type(numbers.measured) is float
    assert type(numbers.tolerance) is float
    assert type(numbers.expected) is float


@pytest.mark.parametrize("name", ["id", "statement", "source"])
def test_a_claim_leaves_nothing_blank(name):
    with pytest.raises(ValueError, match=rf"`Claim\({name}=\.\.\.\)` must not be empty"):
        claim(**{name: "  "})


def test_claim_ids_differ():
    with pytest.raises(ValueError, match=r"ids must differ.*\['slope'\]"):
        Numbers(table(), (claim(), claim(id="bend"), claim()))


def test_a_figure_need_not_claim_anything():
    assert Numbers(table()).claims == ()


@pytest.mark.parametrize("columns", [{}, {"y": Column("ordinate")}, {"x": Column("a"), "y": Column("b")}])
def test_every_column_has_a_meaning(columns):
    with pytest.raises(ValueError, match=r"needs a meaning for every column.*Got columns \['x'\]"):
        table(columns=columns)


def test_meanings_stand_in_the_order_of_the_columns():
    frame = pd.DataFrame({"x": [1], "y": [2]})
    with pytest.raises(ValueError, match="in order"):
        table(frame=frame, columns={"y": Column("b"), "x": Column("a")})


@pytest.mark.parametrize("role", ["std_error", "moves_with"])
def test_a_standard_error_is_a_column_too(role):
    """And so is what a column moves with."""
    with pytest.raises(ValueError, match=rf"`Column\({role}=\.\.\.\)` of 'x' must name a column.*'x_error'"):
        table(columns={"x": Column("abscissa", **{role: "x_error"})})
    frame = pd.DataFrame({"x": [1.0], "x_error": [0.1]})
    table(frame=frame, columns={"x": Column("abscissa", **{role: "x_error"}), "x_error": Column("its error")})


def test_a_column_has_its_own_error_or_moves_with_another():
    """One that had both could excuse itself twice."""
    with pytest.raises(ValueError, match=r"'x'.*not both"):
        table(frame=TWO, columns={"x": Column("a", std_error="y", moves_with="y"), "y": Column("b")})


def test_a_column_moves_with_one_that_is_compared():
    """Not with itself, nor with another that only moves along: nobody would look at either."""
    for other in ("x", "y"):
        columns = {"x": Column("a", moves_with=other), "y": Column("b", moves_with="x" if other == "y" else None)}
        with pytest.raises(ValueError, match="compared by itself"):
            table(frame=TWO, columns=columns)
