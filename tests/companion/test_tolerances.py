"""How far a table moved, in units of what a rebuild may: beyond 1 exactly where the rule of publication says moved."""

import math

import pytest

from companion.figures.record import ColumnRecord
from companion.figures.tolerances import moved_columns, movement

COLUMNS = {
    "law": ColumnRecord(meaning="", kind="text"),
    "length": ColumnRecord(meaning="", kind="integer"),
    "error": ColumnRecord(meaning="", kind="number", std_error="std_error"),
    "std_error": ColumnRecord(meaning="", kind="number", moves_with="error"),
    "bound": ColumnRecord(meaning="", kind="number", absolute=1e-9),
}
TABLE = "law,length,error,std_error,bound\na,10,0.5,0.02,0\nb,100,0.25,0.01,3.14159\n"

CHANGES = {
    "nothing": [],
    "another seed": [("0.5,", "0.55,"), ("0.25,", "0.26,")],
    "beyond five standard errors": [("0.25,", "0.31,")],
    "the larger of the two standard errors counts": [("0.25,0.01", "0.31,0.02")],
    "rounding of what is published": [("3.14159", "3.1415926535")],
    "an exact number": [("3.14159", "3.1416")],
    "zero, up to what the column says": [("0\n", "9e-10\n")],
    "zero, further": [("0\n", "2e-9\n")],
    "a number is lost": [("3.14159", "nan")],
    "a standard error moves with its column": [("0.02", "0.03")],
    "a standard error is lost": [("0.02", "nan")],
    "infinite on both sides": [("3.14159", "inf")],
}


@pytest.fixture
def moves(tmp_path):
    """The movement between two tables, and what the rule of publication says."""

    def between(old, new, columns=COLUMNS):
        paths = tmp_path / "old.csv", tmp_path / "new.csv"
        for path, text in zip(paths, (old, new), strict=True):
            path.write_text(text, encoding="utf-8")
        return movement(*paths, columns), moved_columns(*paths, columns)

    return between


def changed(changes):
    text = TABLE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_movement_agrees_with_publication(moves, changes):
    """A column is beyond 1 exactly where a rebuild would replace the figure for it."""
    found, replaced = moves(TABLE, changed(changes))
    assert found.other_rows is None
    assert sorted(column.name for column in found.columns if column.by > 1) == sorted(replaced)
    assert found.reproduces == (not replaced)


def test_worst_column_comes_first_with_its_worst_number(moves):
    """In units of five standard errors: by how much, in which row, from what to what."""
    found, _ = moves(TABLE, changed(CHANGES["another seed"]))
    worst, *others = found.columns
    assert (worst.name, worst.row, worst.old, worst.new) == ("error", 1, 0.5, 0.55)
    assert worst.by == pytest.approx(0.5)
    assert found.by == worst.by
    assert all(column.by == 0 for column in others)


def test_rounding_for_publication_is_no_movement(moves):
    """What is published has six digits of what was computed."""
    found, _ = moves(TABLE, changed(CHANGES["rounding of what is published"]))
    assert found.by == 0
    found, _ = moves(TABLE, TABLE.replace("3.14159", "3.141596"))
    assert 0 < found.by < 1


def test_lost_number_is_infinitely_far(moves):
    """The row where it is missing is named, though others moved as well."""
    found, _ = moves(TABLE, changed([("0.5,", "0.55,"), ("3.14159", "nan")]))
    worst = found.columns[0]
    assert (worst.name, worst.row, worst.old) == ("bound", 2, 3.14159)
    assert math.isinf(worst.by)


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (TABLE + "c,1,1,1,1\n", "it has 3 rows; published: 2"),
        (TABLE.replace("bound", "limit"), "its columns are law, length, error, std_error, limit; published: law"),
        (TABLE.replace("b,", "c,"), "law of row 2 is c; published: b"),
    ],
    ids=["more", "columns", "texts"],
)
def test_other_rows_are_not_compared(moves, new, says):
    """What a number would be compared with is another thing."""
    found, replaced = moves(TABLE, new)
    assert says in str(found.other_rows)
    assert not found.reproduces
    assert found.columns == ()
    assert replaced


def test_first_column_says_what_a_row_is(moves):
    """Numbers at another length are not those that were published, however near."""
    columns = {name: COLUMNS[name] for name in ("length", "error", "std_error")}
    old = "length,error,std_error\n10,0.5,0.02\n100,0.25,0.01\n"
    found, _ = moves(old, old.replace("100,", "128,"), columns)
    assert found.other_rows == "its rows differ: length of row 2 is 128.0; published: 100.0"


def test_table_without_rows_moves_nowhere(moves):
    """There is nothing in it to move."""
    head = TABLE.splitlines()[0] + "\n"
    found, _ = moves(head, head)
    assert found.by == 0
    assert found.reproduces
