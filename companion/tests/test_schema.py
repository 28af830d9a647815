"""Every column of a table has a meaning, and the numbers of a figure are its table and claims."""

import numpy as np
import pandas as pd
import pytest

from companion import Claims, Column, Estimate, Numbers, Table


def claims(*names):
    """Return one claim per name."""
    claim = Claims("a", source="ours")
    for name in names:
        claim.at_most(name, "It is small.", 0.5, 1, because="the lemma")
    return claim


TWO = pd.DataFrame({"x": [1.0], "y": [2.0]})


def table(**changes):
    fields = {"frame": pd.DataFrame({"x": [1, 2]}), "columns": {"x": Column("abscissa")}}
    return Table(**{**fields, **changes})


def test_claim_ids_are_unique():
    with pytest.raises(ValueError, match=r"ids must differ.*\['a-slope'\]"):
        Numbers(table(), claims("slope", "bend", "slope"))


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
