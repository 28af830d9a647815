"""Write the tables of the page `book/benchmarks.md` from the stored measurements.

    .venv/bin/python -m benchmarks.page

writes one file per table to `book/benchmark_tables/`, which the page includes. The scripts that measure call it, too.
"""

import csv
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.first_calls import LONG  # noqa: E402
from companion.io.atomic import write_text  # noqa: E402
from companion.site.sphinx.inline_text import escaped, table  # noqa: E402

FOLDER = Path("book/benchmark_tables")
# The beginnings of the tasks that one section of the page shows.
SECTIONS = (
    "Error of a finite prompt",
    "One output of one prompt",
    "Streaming attention",
    "A step of the published training",
    "Bayes risk of a needle",
    "A pair of heads",
    "An answer on the command line",
    "From nothing",
    "One figure drawn again",
)
# A space at which a line does not end.
UNBROKEN = "&nbsp;"
# Prefixes of seconds, and how many of the prefixed unit are one second.
PREFIXES = {"": 1.0, "m": 1e3, "µ": 1e6, "n": 1e9}

# Columns that show times.
SECONDS = ("takes", "before", "first", "one", "thirty", "thousand", "two cores")

Row = Mapping[str, str]


def write(root: Path) -> None:
    """Write all tables of the book in `root`."""
    for path, text in tables(root).items():
        write_text(root / path, text)


def tables(root: Path) -> dict[Path, str]:
    """Return the text of every table in MyST, by its path in the book."""

    def read(name: str) -> list[Row]:
        with (root / "book" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    compared, full, origin = read("benchmarks"), read("full"), ("measured", "commit", "processor", "versions")
    texts = {
        section: ratios([row for row in compared if row["what"].startswith(section)], "what",
                        ("at", "cores", "ours", "takes"), "beside")
        for section in SECTIONS
    } | {
        "origin": short(read("benchmarks_origin"), origin, joined="what"),
        "full": short([*full, total(full)], ("notebook", "core minutes", "memory", "ended", "key")),
        "full sizes": short(full, ("notebook",), joined="larger than published"),
        "full origin": short(full, origin, joined="notebook"),
        "first calls": by_reason(read("first_calls"), ("function", "before", "first", "programs", "one", "thirty",
                                                       "thousand")),
        "gpu": ratios(read("gpu"), "notebook", ("training", "two cores"), "runs"),
        "gpu agreement": short(read("gpu_agreement"), ("notebook", "trainings", "computed with", "numbers",
                                                       "relative difference", "movement")),
        "gpu origin": short(read("gpu_origin"), ("device", *origin)),
        "page speed": short(read("page_speed"), ("page", "first paint", "readable", "complete", "kilobytes")),
        "page speed origin": short(read("page_speed_origin"), origin),
        "lighthouse": short(read("lighthouse"), ("page", "performance", "accessibility", "best-practices", "seo")),
        "lighthouse origin": short(read("lighthouse_origin"), origin),
    }  # fmt: skip
    return {FOLDER / f"{re.sub(' ', '_', name.lower())}.md": f"{text}\n" for name, text in texts.items()}


def by_reason(rows: Sequence[Row], names: Sequence[str]) -> str:
    """Return one table of first calls per reason why they take long, then one of those that were long before."""
    reasons = [*dict.fromkeys(row["because"] for row in rows if row["because"]), ""]
    groups = [[row for row in rows if row["because"] == reason and (reason or row["before"])] for reason in reasons]
    return "\n\n".join(
        _table(group, names, [], [{}] * len(group), reason or f"less than {LONG} s now")
        for reason, group in zip(reasons, groups, strict=True)
    )


def total(rows: Sequence[Row]) -> Row:
    """Return a row with the core minutes of all notebooks."""
    minutes = sum(float(row["core minutes"]) for row in rows)
    return {"notebook": "all", "core minutes": f"{minutes:.1f}", "memory": "–", "ended": "–", "key": "–"}


def ratios(rows: Sequence[Row], title: str, names: Sequence[str], across: str) -> str:
    """Return one table per value of the column `title`, with the ratios of all values of the column `across`."""
    texts = []
    for value in dict.fromkeys(row[title] for row in rows):
        selected = [row for row in rows if row[title] == value]
        columns = list(dict.fromkeys(row[across] for row in selected))
        cells = [{row[across]: f"{number(row['ratio'])}× ({_range(row)})"} for row in selected]
        texts.append(_table(selected, names, columns, cells, value))
    return "\n\n".join(texts)


def short(rows: Sequence[Row], names: Sequence[str], *, joined: str | None = None) -> str:
    """Return one table with the columns `names`, and the values of the column `joined` in one cell per row."""
    columns = [joined] if joined else []
    return _table(rows, names, columns, [{column: escaped(row[column]) for column in columns} for row in rows])


def _range(row: Row) -> str:
    """Return the least and the greatest ratio of a row, on one line."""
    return UNBROKEN.join((number(row["least"]), "to", number(row["greatest"])))


def _table(
    rows: Sequence[Row], names: Sequence[str], columns: Sequence[str], cells: Sequence[Row], title: str = ""
) -> str:
    """Return a table below a line with its title and the values that all rows share."""
    texts = {name: [_shown(row, name) for row in rows] for name in names}
    same = [name for name in names if len(set(texts[name])) == 1 and len(rows) > 1]
    shared = ", ".join(f"{name} {texts[name][0]}" for name in same)
    above = ": ".join(part for part in (f"**{escaped(title)}**" if title else "", shared) if part)
    names = [name for name in names if name not in same]
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for index, new in enumerate(cells):
        line = lines.setdefault(tuple(texts[name][index] for name in names), {})
        line |= {column: "; ".join(filter(None, [line.get(column), text])) for column, text in new.items()}
    body = table(
        [*names, *map(escaped, columns)],
        ([*line, *(values.get(column, "–") for column in columns)] for line, values in lines.items()),
    )
    return f"{above}\n\n{body}" if above else body


def _shown(row: Row, name: str) -> str:
    """Return the text of a row in a column; a time or a memory has its unit. A line does not end within `d = 32`."""
    if name in SECONDS and row[name]:
        return escaped(quantity_of(row[name], row.get("unit", "s"))).replace(" ", UNBROKEN)
    return escaped(row[name] or "–").replace(" = ", f"{UNBROKEN}={UNBROKEN}")


def quantity_of(value: str, unit: str) -> str:
    """Return a quantity as text, seconds with the largest prefix for which the number is at least one: `1.17 ms`."""
    seconds = float(value)
    prefix, factor = "", 1.0
    if unit == "s":
        fitting = [(prefix, factor) for prefix, factor in PREFIXES.items() if seconds * factor >= 1]
        prefix, factor = fitting[0] if fitting else list(PREFIXES.items())[-1]
    return f"{seconds * factor:,.4g} {prefix}{unit}"


def number(text: str) -> str:
    """Return a number with separated thousands and without trailing zeros."""
    return f"{float(text):,.10g}"


if __name__ == "__main__":
    write(ROOT)
