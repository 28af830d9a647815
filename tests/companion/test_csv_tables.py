"""Long CSV files are shown as short tables on a page."""

import pytest

from companion.site.sphinx.csv_tables import quantity_of, table_of


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        ("0.00117", "s", "1.17 ms"),
        ("8.52e-06", "s", "8.52 µs"),
        ("27.0", "s", "27 s"),
        ("1e-12", "s", "0.001 ns"),
        ("1234", "MB", "1,234 MB"),
    ],
)
def test_seconds_have_a_prefix_and_other_units_none(value, unit, text):
    assert quantity_of(value, unit) == text


def cells(text: str) -> list[list[str]]:
    """Return the cells of a Markdown table by line, without the separator below the header."""
    lines = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines()]
    return [lines[0], *lines[2:]]


def test_values_of_one_column_are_shown_side_by_side():
    rows = [
        {"at": "here", "peer": "a", "ratio": "3550000.0"},
        {"at": "here", "peer": "b*", "ratio": "0.286"},
        {"at": "there", "peer": "a", "ratio": "2.0"},
    ]
    table = table_of(rows, {"rows": "at", "across": "peer", "cell": "{ratio} times"})
    assert cells(table) == [["at", "a", r"b\*"], ["here", "3,550,000 times", "0.286 times"], ["there", "2 times", "–"]]


def test_values_common_to_all_rows_are_shown_once():
    rows = [{"what": what, "day": day, "at": "home"} for what, day in (("x", "1"), ("y", "1"), ("z", "2"))]
    above, _, table = table_of(rows, {"rows": "day, at", "joined": "what"}, "A title").partition("\n\n")
    assert above == "**A title**: at home"
    assert cells(table) == [["day", "what"], ["1", "x; y"], ["2", "z"]]
