"""The tables of a figure as files: rounding, exact round trips, and the rule that decides whether a rebuild moved."""

from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from companion.figures import comparison, table_io
from companion.figures.record import SIGNIFICANT_DIGITS, ColumnRecord
from companion.figures.schema import Column


@pytest.fixture
def moved(tmp_path):
    """Return a function that publishes `old`, rebuilds it as `new`, and lists the columns that moved."""

    def compare(old, new, **columns):
        published, unrounded = tmp_path / "published.csv", tmp_path / "unrounded.csv"
        for path, frame, digits in (
            (published, pd.DataFrame(old), SIGNIFICANT_DIGITS),
            (unrounded, pd.DataFrame(new), table_io.EXACT_DIGITS),
        ):
            frame.insert(0, "row", range(len(frame)))
            table_io.write_csv(frame, path, digits)
        given = {name: columns.get(name, Column("x")) for name in ("row", *new)}
        declared = {name: ColumnRecord(**asdict(column), kind="number") for name, column in given.items()}
        result = comparison.movement(published, unrounded, declared)
        return [result.other_rows] if result.other_rows else [column.name for column in result.columns if column.by > 1]

    return compare


@pytest.mark.parametrize("value", [9.5, -9.5, 9.87654e-200, 9.87654e200, 950_000_000])
def test_exact_column_moved_by_two_millionths_is_found(moved, value):
    """Six digits resolve this change."""
    assert moved({"x": [1.0, value]}, {"x": [1.0, value * (1 + 2e-6)]}) == ["x"]


@pytest.mark.parametrize("value", [1.0, -9.5, 3.14159e-200, 12345.6])
def test_exact_column_may_move_by_half_a_millionth(moved, value):
    """Machines may round differently."""
    assert moved({"x": [value]}, {"x": [value * (1 + 5e-7)]}) == []


@pytest.mark.parametrize("value", [1.000005, 1.000015, 9.9999949999, 9.9999950001, 0.1234565, 999999.5, 1 / 3, 2 / 3e5])
def test_rounding_to_six_digits_is_no_move(moved, value):
    """This holds even halfway between two published numbers."""
    assert moved({"x": [value, -value]}, {"x": [value, -value]}) == []


@pytest.mark.parametrize(("shift", "expected"), [(4.9, []), (-4.9, []), (5.2, ["x"]), (-5.2, ["x"])])
def test_monte_carlo_column_may_move_by_five_standard_errors(moved, shift, expected):
    """A larger move is reported."""
    old, new = {"x": [2.0, 3.0], "se": [0.1, 0.1]}, {"x": [2.0, 3.0 + shift * 0.1], "se": [0.1, 0.1]}
    assert moved(old, new, x=Column("x", std_error="se"), se=Column("se", std_error="se")) == expected


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nonfinite_value_must_stay_the_same(moved, value):
    """It equals only itself."""
    assert moved({"x": [1.0, value]}, {"x": [1.0, value]}) == []
    assert moved({"x": [1.0, value]}, {"x": [1.0, 2.0]}) == ["x"]
    assert moved({"x": [1.0, 2.0]}, {"x": [1.0, value]}) == ["x"]
    assert moved({"x": [1.0, value]}, {"x": [1.0, -value if np.isinf(value) else np.inf]}) == ["x"]


def test_published_csv_is_reproducible(tmp_path):
    """It has six digits, no index and Unix line ends."""
    frame = pd.DataFrame({"L": [10, 1_000_000_007], "x": [1 / 3, 2e-300], "law": ["a", "b"], "z": [np.nan, np.inf]})
    for _ in range(2):
        table_io.write_csv(frame, tmp_path / "x.csv", SIGNIFICANT_DIGITS)
        assert (tmp_path / "x.csv").read_bytes() == b"L,x,law,z\n10,0.333333,a,\n1000000007,2e-300,b,inf\n"


def test_unrounded_csv_keeps_every_bit(tmp_path):
    """The comparison reads exactly the computed numbers."""
    values = np.random.default_rng(0).standard_normal(1000) * 10.0 ** np.arange(-300, 300, 0.6)
    table_io.write_csv(pd.DataFrame({"x": values}), tmp_path / "x.csv", table_io.EXACT_DIGITS)
    read = pd.read_csv(tmp_path / "x.csv")["x"].to_numpy()
    np.testing.assert_array_equal(read, values)


FRAME = pd.DataFrame(
    {
        "number": [1 / 3, -0.0, 5e-324, 1.7976931348623157e308, np.nan, np.inf, -np.inf],
        "integer": [0, -1, 2**63 - 1, -(2**63), 10**15, 7, 8],
        "flag": [True, False, True, True, False, False, True],
        "text": ["a", "", None, "nan", "True", 'with "quotes", commas', "two\nlines é"],
    }
)
KINDS = {name: name for name in FRAME}


def test_plain_table_returns_the_kinds_of_its_columns():
    """Smaller dtypes and categories have the same kinds."""
    assert table_io.plain(FRAME, "here")[1] == KINDS
    variants = {
        "number": FRAME["number"].iloc[:3].astype(np.float32),
        "integer": FRAME["integer"].iloc[:2].astype(np.int8),
        "flag": FRAME["flag"].to_numpy(bool)[:2],
        "text": FRAME["text"].iloc[:2].astype("category"),
    }
    assert {
        kind: table_io.plain(pd.DataFrame({kind: column}), "here")[1][kind] for kind, column in variants.items()
    } == KINDS


def test_plain_table_keeps_every_bit():
    """This holds for numbers, integers and flags; missing and empty text becomes None."""
    frame, _ = table_io.plain(FRAME, "here")
    for name in ("number", "integer", "flag"):
        assert frame[name].dtype == FRAME[name].dtype
        np.testing.assert_array_equal(frame[name], FRAME[name])
    assert np.signbit(frame["number"][1])
    assert list(frame["text"]) == ["a", None, None, "nan", "True", 'with "quotes", commas', "two\nlines é"]


def test_plain_table_equals_its_file_read_back(tmp_path):
    """Drawing at once and drawing later thus give the same picture; a second round trip changes nothing."""
    frame, kinds = table_io.plain(FRAME, "here")
    columns = {name: ColumnRecord(meaning="x", kind=kind) for name, kind in kinds.items()}
    for _ in range(2):
        table_io.write_csv(frame, tmp_path / "x.csv", table_io.EXACT_DIGITS)
        read = table_io.read_csv(tmp_path / "x.csv", columns)
        pd.testing.assert_frame_equal(read, frame, check_exact=True)
        frame = table_io.plain(read, "here")[0]


def test_published_table_is_read_with_its_rounded_numbers(tmp_path):
    """Integers, flags, text and missing values are exact."""
    frame, kinds = table_io.plain(FRAME, "here")
    columns = {name: ColumnRecord(meaning="x", kind=kind) for name, kind in kinds.items()}
    table_io.write_csv(frame, tmp_path / "x.csv", SIGNIFICANT_DIGITS)
    read = table_io.read_csv(tmp_path / "x.csv", columns)
    assert read["number"][0] == 0.333333
    pd.testing.assert_frame_equal(read.drop(columns="number"), frame.drop(columns="number"))


def test_table_without_rows_keeps_its_columns(tmp_path):
    """The kinds of its columns are kept too."""
    frame, kinds = table_io.plain(FRAME.iloc[:0], "here")
    assert list(frame.columns) == list(FRAME.columns)
    assert len(frame) == 0
    assert kinds["integer"] == "integer"


UNSUPPORTED = [[1, 2], {"a": 1}, 1j, np.datetime64("2026-01-01"), np.array(1.0), object()]


@pytest.mark.parametrize("value", UNSUPPORTED, ids=lambda value: type(value).__name__)
def test_unsupported_values_are_refused(value):
    """The error names the figure, the column and the value."""
    column = pd.Series(["a", value], dtype=object)
    with pytest.raises(TypeError, match=r"here: column 'x' must hold numbers.*Got "):
        table_io.plain(pd.DataFrame({"x": column}), "here")
