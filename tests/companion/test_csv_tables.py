"""Long CSV files as short tables of a page."""

import pytest

from companion.site.sphinx.csv_tables import quantity_of, table_of


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        ("0.00117", "s", "1.17 ms"),
        ("8.52e-06", "s", "8.52 µs"),
        ("27.0", "s", "27 s"),
        ("1e-12", "s", "0.001 ns"),
        ("1234", "MB", "1,234 MB"),
    ],
)
def test_seconds_have_a_prefix_and_other_units_none(value, unit, said):
    assert quantity_of(value, unit) == said


def cells(text: str) -> list[list[str]]:
    """Of a table, line by line, what is under the header left out."""
    lines = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines()]
    return [lines[0], *lines[2:]]


def test_values_of_one_column_stand_side_by_side():
    rows = [
        {"at": "here", "peer": "a", "ratio": "3550000.0"},
        {"at": "here", "peer": "b*", "ratio": "0.286"},
        {"at": "there", "peer": "a", "ratio": "2.0"},
    ]
    made = table_of(rows, {"rows": "at", "across": "peer", "cell": "{ratio} times"})
    assert cells(made) == [["at", "a", r"b\*"], ["here", "3,550,000 times", "0.286 times"], ["there", "2 times", "–"]]


def test_what_rows_have_in_common_is_said_once():
    rows = [{"what": what, "day": day, "at": "home"} for what, day in (("x", "1"), ("y", "1"), ("z", "2"))]
    above, _, made = table_of(rows, {"rows": "day, at", "joined": "what"}, "A title").partition("\n\n")
    assert above == "**A title**: at home"
    assert cells(made) == [["day", "what"], ["1", "x; y"], ["2", "z"]]
