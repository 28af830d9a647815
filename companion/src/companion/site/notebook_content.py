"""The parts of a notebook's JSON that the site reads and changes."""

import itertools
import json
from collections.abc import Sequence
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


# The metadata of a notebook whose editor wrote none.
METADATA: dict[str, JsonValue] = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# The first minor version of format 4 in which cells have ids.
WITH_IDS = 5


def read(path: Path) -> Content:
    """Return the content of a notebook file, with the parts that older editors leave out: ids and metadata.

    A missing or repeated id is replaced by one that depends only on the ids of the notebook and on the position of the
    cell.
    """
    content: Content = json.loads(path.read_text(encoding="utf-8"))
    ids = _ids(content["cells"])
    return {
        **content,
        "cells": [{**cell, "id": identifier} for cell, identifier in zip(content["cells"], ids, strict=True)],
        "metadata": {**METADATA, **content["metadata"]},
        "nbformat": content.get("nbformat", 4),
        "nbformat_minor": max(content.get("nbformat_minor", WITH_IDS), WITH_IDS),
    }


def _ids(cells: Sequence[Cell]) -> list[str]:
    """Return a different id for each cell: its own, or `cell-<position>` if it has none or repeats an earlier one."""
    own = [cell.get("id") for cell in cells]
    ids: list[str] = []
    for position, identifier in enumerate(own):
        if identifier and identifier not in ids:
            ids.append(identifier)
        else:
            names = (f"cell-{number}" for number in itertools.count(position))
            ids.append(next(name for name in names if name not in own and name not in ids))
    return ids


def tags(cell: Cell) -> list[str]:
    """Return the tags of a cell."""
    values = cell["metadata"].get("tags")
    return [tag for tag in values if isinstance(tag, str)] if isinstance(values, list) else []


def figure_shown(output: Output) -> str | None:
    """Return the `notebook/figure` that an output shows, or None if it shows no published figure."""
    reference = output.get("data", {}).get(MIME)
    figure = reference.get("figure") if isinstance(reference, dict) else None
    return figure if isinstance(figure, str) else None
