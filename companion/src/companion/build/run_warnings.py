"""Warnings about a run that succeeded: empty tables and columns, and what cells wrote to standard error."""

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from companion.figures import store
from companion.project.paths import Build


def of_run(build: Build, name: str, figures: Sequence[str]) -> list[str]:
    """Return one sentence for each empty table or column of `figures`, and for each cell that printed a warning."""
    tables = build.tables / name
    empty = [sentence for figure in figures for sentence in _empty_columns(tables / f"{figure}{store.DATA}", figure)]
    return [*empty, *_written_to_standard_error(build.executed / f"{name}.ipynb")]


def _empty_columns(table: Path, figure: str) -> Iterator[str]:
    with table.open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    if names and not rows:  # the table of a schematic has no column
        yield f"The table of {figure} has no row."
    for place, column in enumerate(names):
        if rows and not any(row[place] for row in rows):
            yield f"Column {column!r} in the table of {figure} is empty or NaN in every row."


def _written_to_standard_error(notebook: Path) -> Iterator[str]:
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        outputs = [output for output in cell.get("outputs", []) if output.get("name") == "stderr"]
        text = "".join("".join(output["text"]) for output in outputs).strip()
        if text:
            first, *others = text.splitlines()
            more = f" … ({len(others)} more {'line' if len(others) == 1 else 'lines'})" if others else ""
            yield f"Cell {cell['execution_count']} wrote to standard error, and the page shows it: {first}{more}"
