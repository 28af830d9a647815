"""The movement of a table in units of its tolerance: it exceeds 1 exactly if a rebuild replaces the figure."""

import math

import pytest

from companion.figures.comparison import movement
from companion.figures.record import ColumnRecord

COLUMNS = {
    "law": ColumnRecord(meaning="", kind="text"),
    "length": ColumnRecord(meaning="", kind="integer"),
    "error": ColumnRecord(meaning="", kind="number", std_error="std_error"),
    "std_error": ColumnRecord(meaning="", kind="number", moves_with="error"),
    "bound": ColumnRecord(meaning="", kind="number", absolute=1e-9),
}
TABLE = "law,length,error,std_error,bound\na,10,0.5,0.02,0\nb,100,0.25,0.01,3.14159\n"

# The changes, and the columns that move beyond their tolerance.
CHANGES = {
    "nothing": ([], []),
    "another seed": ([("0.5,", "0.55,"), ("0.25,", "0.26,")], []),
    "beyond five standard errors": ([("0.25,", "0.31,")], ["error"]),
    "the larger of the two standard errors counts": ([("0.25,0.01", "0.31,0.02")], []),
    "rounding for publication": ([("3.14159", "3.1415926535")], []),
    "an exact number": ([("3.14159", "3.1416")], ["bound"]),
    "zero, within the absolute tolerance": ([("0\n", "9e-10\n")], []),
    "zero, beyond the absolute tolerance": ([("0\n", "2e-9\n")], ["bound"]),
    "a number is lost": ([("3.14159", "nan")], ["bound"]),
    "a standard error moves with its column": ([("0.02", "0.03")], []),
    "a standard error is lost": ([("0.02", "nan")], ["std_error"]),
    "infinite on both sides": ([("3.14159", "inf")], ["bound"]),
}


@pytest.fixture
def compared(tmp_path):
    """Return a function that compares two tables of these columns."""

    def compare(old, new, columns=COLUMNS):
        paths = tmp_path / "old.csv", tmp_path / "new.csv"
        for path, text in zip(paths, (old, new), strict=True):
            path.write_text(text, encoding="utf-8")
        return movement(*paths, columns)

    return compare


def changed(changes):
    text = TABLE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize(("changes", "moved"), CHANGES.values(), ids=CHANGES)
def test_a_column_moves_by_more_than_one_beyond_its_tolerance(compared, changes, moved):
    result = compared(TABLE, changed(changes))
    assert result.other_rows is None
    assert [column.name for column in result.columns if column.by > 1] == moved
    assert result.reproduces == (not moved)


# The changes, and the name, the row, both values and the movement of the worst number.
WORST = [
    (CHANGES["another seed"][0], ("error", 1, 0.5, 0.55), 0.5),
    ([("0.5,", "0.55,"), ("3.14159", "nan")], ("bound", 2, 3.14159, pytest.approx(math.nan, nan_ok=True)), math.inf),
]


@pytest.mark.parametrize(("changes", "expected", "by"), WORST, ids=["in five standard errors", "a lost number"])
def test_worst_column_comes_first_with_its_worst_number(compared, changes, expected, by):
    result = compared(TABLE, changed(changes))
    worst = result.columns[0]
    assert (worst.name, worst.row, worst.old, worst.new) == expected
    assert result.by == worst.by == pytest.approx(by)


OTHER_ROWS = {
    "more": (TABLE + "c,1,1,1,1\n", "it has 3 rows; published: 2"),
    "columns": (TABLE.replace("bound", "limit"), "its columns are law, length, error, std_error, limit; published: "),
    "texts": (TABLE.replace("b,", "c,"), "law of row 2 is c; published: b"),
}


@pytest.mark.parametrize(("new", "message"), OTHER_ROWS.values(), ids=OTHER_ROWS)
def test_tables_with_different_rows_are_not_compared(compared, new, message):
    """The rows do not correspond to each other."""
    result = compared(TABLE, new)
    assert message in str(result.other_rows)
    assert not result.reproduces
    assert result.columns == ()


def test_first_column_identifies_the_row(compared):
    """Numbers at different lengths are not compared, even if they are close."""
    result = compared("length\n10\n100\n", "length\n10\n128\n", {"length": COLUMNS["length"]})
    assert result.other_rows == "its rows differ: length of row 2 is 128.0; published: 100.0"
