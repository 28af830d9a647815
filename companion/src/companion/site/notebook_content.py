"""The parts of a notebook's JSON that the site reads and changes."""

import json
from pathlib import Path
from typing import Any

from companion.project.paths import MIME

# A notebook, a cell, and an output of a code cell, as in their JSON.
Content = dict[str, Any]
Cell = dict[str, Any]
Output = dict[str, Any]
# The metadata of a notebook whose editor wrote none.
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def read(path: Path) -> Content:
    """Return the content of a notebook file in format 4.4, whose cells have no ids, as older editors write them."""
    content: Content = json.loads(path.read_text(encoding="utf-8"))
    cells = [{name: part for name, part in cell.items() if name != "id"} for cell in content["cells"]]
    metadata = {**METADATA, **content["metadata"]}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}


def tags(cell: Cell) -> list[str]:
    """Return the tags of a cell."""
    return cell["metadata"].get("tags", [])


def figure_shown(output: Output) -> str | None:
    """Return the `notebook/figure` that an output shows, or None if it shows no published figure."""
    return output.get("data", {}).get(MIME, {}).get("figure")
