"""Every column of a table has a meaning, and the numbers of a figure are its table and claims."""

import numpy as np
import pandas as pd
import pytest

from companion import Claims, Column, Estimate, Numbers, Table

TWO = pd.DataFrame({"x": [1.0], "y": [2.0]})


X, Y = Column("abscissa"), Column("ordinate")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        *((columns, r"needs a meaning for every column.*Got columns \['x', 'y'\]") for columns in ({}, {"x": X})),
        ({"x": X, "y": Y, "z": Y}, "needs a meaning for every column"),
        ({"y": Y, "x": X}, "in order"),
        ({"x": Column("a", std_error="e"), "y": Y}, r"`Column\(std_error=\.\.\.\)` of 'x' must name a column.*'e'"),
        ({"x": Column("a", moves_with="e"), "y": Y}, r"`Column\(moves_with=\.\.\.\)` of 'x' must name a column.*'e'"),
        # with both, its comparison would be relaxed twice
        ({"x": Column("a", std_error="y", moves_with="y"), "y": Y}, r"'x'.* needs no `std_error`"),
        # neither would be checked
        ({"x": Column("a", moves_with="x"), "y": Y}, "compared by itself"),
        ({"x": Column("a", moves_with="y"), "y": Column("b", moves_with="x")}, "compared by itself"),
        ({"x": Estimate("mean output", std_error="y"), "y": Y}, "'y' is declared twice"),
    ],
)
def test_every_column_needs_one_description_that_refers_to_columns(columns, words):
    with pytest.raises(ValueError, match=words):
        Table(TWO, columns)


def test_claim_ids_are_unique():
    claim = Claims("a", source="ours")
    for name in ("slope", "bend", "slope"):
        claim.at_most(name, "It is small.", 0.5, 1, because="the lemma")
    with pytest.raises(ValueError, match=r"ids must differ.*\['a-slope'\]"):
        Numbers(Table(TWO, {"x": X, "y": Y}), claim)


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
        ([{"name": "a", "length": [1, 2], "y": [1.0, 2.0, 3.0]}], "same length"),
        ([{"name": "a", "length": 1, "y": 1.0}], "no group has the column 'y_std_error'"),
    ],
)
def test_invalid_groups_are_named(groups, words):
    with pytest.raises(ValueError, match=words):
        Table.of(groups, COLUMNS)
