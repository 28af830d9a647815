"""The tables of a figure as files: rounding, exact round trips, and the rule that decides whether a rebuild moved."""

from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from companion.figures import comparison, table_io
from companion.figures.record import SIGNIFICANT_DIGITS, ColumnRecord
from companion.figures.schema import Column


def moved(folder, old, new, **columns):
    """Publish one row of values, rebuild it, and return the columns that moved beyond their tolerance."""
    published, rebuilt = folder / "published.csv", folder / "rebuilt.csv"
    for path, row, digits in ((published, old, SIGNIFICANT_DIGITS), (rebuilt, new, table_io.EXACT_DIGITS)):
        table_io.write_csv(pd.DataFrame([{"row": 0} | row]), path, digits)
    declared = {"row": Column("row"), **columns}
    records = {name: ColumnRecord(**asdict(column), kind="number") for name, column in declared.items()}
    result = comparison.movement(published, rebuilt, records)
    assert not result.other_rows
    return {column.name for column in result.columns if column.by > 1}


EXACT = [9.5, -9.5, 9.87654e-200, 9.87654e200, 950_000_000]
# Some are halfway between two published numbers.
ROUNDED = [1.000005, 1.000015, 9.9999949999, 9.9999950001, 0.1234565, 999999.5, 1 / 3, 2 / 3e5]
INFINITE = [np.nan, np.inf, -np.inf]


@pytest.mark.parametrize(
    ("old", "new", "moves"),
    [
        *((value, value * (1 + 2e-6), True) for value in EXACT),  # six digits resolve this
        *((value, value * (1 + 5e-7), False) for value in EXACT[:3]),  # machines may round differently
        *((value, value, False) for value in [*ROUNDED, *INFINITE]),
        *((value, 2.0, True) for value in INFINITE),
        *((2.0, value, True) for value in INFINITE),
        *((np.inf, value, True) for value in (np.nan, -np.inf)),
    ],
)
def test_a_published_number_moves_by_more_than_rounding(tmp_path, old, new, moves):
    """One that is not finite equals only itself."""
    assert moved(tmp_path, {"x": old}, {"x": new}, x=Column("x")) == ({"x"} if moves else set())


@pytest.mark.parametrize(("shift", "columns"), [(4.9, set()), (-4.9, set()), (5.2, {"x"}), (-5.2, {"x"})])
def test_monte_carlo_column_may_move_by_five_standard_errors(tmp_path, shift, columns):
    declared = {"x": Column("x", std_error="se"), "se": Column("its error", moves_with="x")}
    assert moved(tmp_path, {"x": 3.0, "se": 0.1}, {"x": 3.0 + shift * 0.1, "se": 0.1}, **declared) == columns


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
    """Smaller dtypes, categories and tables without rows have the same kinds."""
    small = {"number": np.float32, "integer": np.int8, "flag": bool, "text": "category"}
    assert table_io.plain(FRAME, "here")[1] == KINDS
    assert table_io.plain(FRAME.iloc[:2].astype(small), "here")[1] == KINDS
    frame, kinds = table_io.plain(FRAME.iloc[:0], "here")
    assert (list(frame.columns), len(frame), kinds) == (list(FRAME.columns), 0, KINDS)


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


UNSUPPORTED = [[1, 2], {"a": 1}, 1j, np.datetime64("2026-01-01"), np.array(1.0), object()]


@pytest.mark.parametrize("value", UNSUPPORTED, ids=lambda value: type(value).__name__)
def test_unsupported_values_are_refused(value):
    """The error names the figure, the column and the value."""
    column = pd.Series(["a", value], dtype=object)
    with pytest.raises(TypeError, match=r"here: column 'x' must hold numbers.*Got "):
        table_io.plain(pd.DataFrame({"x": column}), "here")
