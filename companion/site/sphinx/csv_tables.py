"""The directive `{companion-table}`: a long CSV as short tables, with the values of one column side by side.

    ```{companion-table} benchmarks.csv
    :of: what = Streaming attention
    :rows: at, takes in unit
    :across: beside
    :cell: {ratio} ({least} to {greatest})
    ```

The directive makes one table per value of the column `what` that starts with the given text, one row per combination of
values of the columns in `rows`, and one column per value of the column `beside`. `takes in unit` is the quantity in the
column `takes` with the unit in the column `unit`. Without `across`, `joined` names a column whose values are listed in
one cell if they have the same `rows`.
"""

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from companion.site.sphinx.inline_text import escaped, table

Row = Mapping[str, str]
# A space at which a line does not end.
UNBROKEN = "&nbsp;"
# Prefixes of seconds, and how many of the prefixed unit are one second.
PREFIXES = {"": 1.0, "m": 1e3, "µ": 1e6, "n": 1e9}


class TableDirective(SphinxDirective):
    """`{companion-table} FILE`: tables of a CSV file, whose path is relative to the page."""

    required_arguments = 1
    option_spec: ClassVar[Any] = dict.fromkeys(("of", "rows", "across", "cell", "joined"), directives.unchanged)

    def run(self) -> list[nodes.Node]:
        """Return one table per value of the column that `of` names, each below a line with its value."""
        _, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(path)
        with Path(path).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        column, _, begins = (part.strip() for part in self.options.get("of", "").partition("="))
        tables: list[str] = []
        for value in dict.fromkeys(row[column] for row in rows) if column else [""]:
            if value.startswith(begins):
                selected = [row for row in rows if not column or row[column] == value]
                tables.append(table_of(selected, self.options, value))
        if not tables:
            raise self.error(f"{self.arguments[0]} has no {column} that starts with {begins!r}.")
        return self.parse_text_to_nodes("\n\n".join(tables))


def table_of(rows: Sequence[Row], options: Mapping[str, str], title: str = "") -> str:
    """Return a table of some rows in MyST, below a line with its title and the values that all rows share.

    `options` are those of the directive.
    """
    names = [name.strip() for name in options["rows"].split(",")]
    texts = {name: [_shown(row, name) for row in rows] for name in names}
    same = [name for name in names if len(set(texts[name])) == 1 and len(rows) > 1]
    shared = ", ".join(f"{_heading(name)} {texts[name][0]}" for name in same)
    above = ": ".join(part for part in (f"**{escaped(title)}**" if title else "", shared) if part)
    names = [name for name in names if name not in same]
    across, joined = options.get("across"), options.get("joined")
    columns = list(dict.fromkeys(row[across] for row in rows)) if across else [joined] if joined else []
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for index, row in enumerate(rows):
        cells = lines.setdefault(tuple(texts[name][index] for name in names), {})
        if across:
            cells[row[across]] = options["cell"].format_map({name: _number(row[name]) for name in row})
        elif joined:
            cells[joined] = "; ".join([*filter(None, [cells.get(joined)]), escaped(row[joined])])
    header = [*map(_heading, names), *map(escaped, columns)]
    body = table(header, ([*line, *(cells.get(column, "–") for column in columns)] for line, cells in lines.items()))
    return f"{above}\n\n{body}" if above else body


def _heading(name: str) -> str:
    """Return the heading of a column; that of a quantity leaves out its unit."""
    return name.partition(" in ")[0]


def _shown(row: Row, name: str) -> str:
    """Return the text of a row in a column, or of a quantity with its unit. A line does not end within `d = 32`."""
    quantity, _, unit = name.partition(" in ")
    if unit:
        return escaped(quantity_of(row[quantity], row[unit])).replace(" ", UNBROKEN)
    return escaped(row[quantity]).replace(" = ", f"{UNBROKEN}={UNBROKEN}")


def quantity_of(value: str, unit: str) -> str:
    """Return a quantity as text, seconds with the largest prefix for which the number is at least one: `1.17 ms`."""
    number = float(value)
    prefix, factor = "", 1.0
    if unit == "s":
        fitting = [(prefix, factor) for prefix, factor in PREFIXES.items() if number * factor >= 1]
        prefix, factor = fitting[0] if fitting else list(PREFIXES.items())[-1]
    return f"{number * factor:,.4g} {prefix}{unit}"


def _number(text: str) -> str:
    """Return a number with separated thousands and without trailing zeros; another text is returned unchanged."""
    try:
        return f"{float(text):,.10g}"
    except ValueError:
        return escaped(text)
