"""The parts of a notebook's JSON that the site reads and changes."""

import json
from pathlib import Path
from typing import NotRequired, TypedDict

from pydantic import JsonValue

from companion.project.paths import MIME


class Output(TypedDict):
    """An output of a code cell; `data` contains its representations by MIME type."""

    output_type: str
    data: NotRequired[dict[str, JsonValue]]
    metadata: NotRequired[dict[str, JsonValue]]
    execution_count: NotRequired[int | None]
    name: NotRequired[str]
    text: NotRequired[str | list[str]]


class Cell(TypedDict):
    """A cell; only code cells have outputs and an execution count."""

    cell_type: str
    id: str
    metadata: dict[str, JsonValue]
    source: str | list[str]
    outputs: NotRequired[list[Output]]
    execution_count: NotRequired[int | None]


class Content(TypedDict):
    """A notebook."""

    cells: list[Cell]
    metadata: dict[str, JsonValue]
    nbformat: NotRequired[int]
    nbformat_minor: NotRequired[int]


def read(path: Path) -> Content:
    """Return the content of a notebook file."""
    content: Content = json.loads(path.read_text(encoding="utf-8"))
    return content


def tags(cell: Cell) -> list[str]:
    """Return the tags of a cell."""
    values = cell["metadata"].get("tags")
    return [tag for tag in values if isinstance(tag, str)] if isinstance(values, list) else []


def figure_shown(output: Output) -> str | None:
    """Return the `notebook/figure` that an output shows, or None if it shows no published figure."""
    reference = output.get("data", {}).get(MIME)
    figure = reference.get("figure") if isinstance(reference, dict) else None
    return figure if isinstance(figure, str) else None
