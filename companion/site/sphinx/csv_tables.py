"""`{companion-table}`: a long CSV as short tables, the values of one column side by side.

    ```{companion-table} benchmarks.csv
    :of: what = Streaming attention
    :rows: at, takes in unit
    :across: beside
    :cell: {ratio} ({least} to {greatest})
    ```

A table for each value of `what` that begins so, a row for each of the `rows`, a column for each value of `beside`.
`takes in unit` is a quantity and the column of its unit. Without `across`, `joined` names the column whose values are
listed where the `rows` are the same.
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
# Of seconds, from the largest: how many of the unit's make one.
PREFIXES = {"": 1.0, "m": 1e3, "µ": 1e6, "n": 1e9}


class TableDirective(SphinxDirective):
    """Tables of a CSV file, which is named as the page would link to it."""

    required_arguments = 1
    option_spec: ClassVar[Any] = dict.fromkeys(("of", "rows", "across", "cell", "joined"), directives.unchanged)

    def run(self) -> list[nodes.Node]:
        """A table, with its value as a line above it, for each value of the column that `of` names."""
        _, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(path)
        with Path(path).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        column, _, begins = (part.strip() for part in self.options.get("of", "").partition("="))
        tables: list[str] = []
        for value in dict.fromkeys(row[column] for row in rows) if column else [""]:
            if value.startswith(begins):
                mine = [row for row in rows if not column or row[column] == value]
                tables.append(table_of(mine, self.options, value))
        if not tables:
            raise self.error(f"{self.arguments[0]} has no {column} that begins with {begins!r}.")
        return self.parse_text_to_nodes("\n\n".join(tables))


def table_of(rows: Sequence[Row], options: Mapping[str, str], title: str = "") -> str:
    """The table of some rows, in MyST; above it stand its title and what is the same in all rows."""
    names = [name.strip() for name in options["rows"].split(",")]
    said = {name: [_shown(row, name) for row in rows] for name in names}
    same = [name for name in names if len(set(said[name])) == 1 and len(rows) > 1]
    shared = ", ".join(f"{_heading(name)} {said[name][0]}" for name in same)
    above = ": ".join(part for part in (f"**{escaped(title)}**" if title else "", shared) if part)
    names = [name for name in names if name not in same]
    across, joined = options.get("across"), options.get("joined")
    columns = list(dict.fromkeys(row[across] for row in rows)) if across else [joined] if joined else []
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for place, row in enumerate(rows):
        cells = lines.setdefault(tuple(said[name][place] for name in names), {})
        if across:
            cells[row[across]] = options["cell"].format_map({name: _number(row[name]) for name in row})
        elif joined:
            cells[joined] = "; ".join([*filter(None, [cells.get(joined)]), escaped(row[joined])])
    header = [*map(_heading, names), *map(escaped, columns)]
    body = table(header, ([*line, *(cells.get(column, "–") for column in columns)] for line, cells in lines.items()))
    return f"{above}\n\n{body}" if above else body


def _heading(name: str) -> str:
    """Of a column; of a quantity, without its unit."""
    return name.partition(" in ")[0]


def _shown(row: Row, name: str) -> str:
    """What a row says in a column, or of a quantity and its unit."""
    quantity, _, unit = name.partition(" in ")
    return escaped(quantity_of(row[quantity], row[unit]) if unit else row[quantity])


def quantity_of(value: str, unit: str) -> str:
    """`1.17 ms` for 0.00117 s: seconds with the largest prefix that leaves one or more, other units with none."""
    number = float(value)
    prefix, factor = "", 1.0
    if unit == "s":
        fitting = [(prefix, factor) for prefix, factor in PREFIXES.items() if number * factor >= 1]
        prefix, factor = fitting[0] if fitting else list(PREFIXES.items())[-1]
    return f"{number * factor:,.4g} {prefix}{unit}"


def _number(text: str) -> str:
    """As it is read: thousands apart, no empty decimals; text that is no number as it is."""
    try:
        return f"{float(text):,.10g}"
    except ValueError:
        return escaped(text)
