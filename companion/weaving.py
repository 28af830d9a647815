"""Executed notebooks for readers: the prose as it is now, the outputs of the last run, the pictures of today."""

import json
from pathlib import Path
from typing import Any

from companion import atomic, figure_set
from companion.address import dump_notebook
from companion.house import MIME, House
from companion.notebooks import INJECTED_TAG, Notebook

Cell = dict[str, Any]


def weave(house: House, name: str, profile: str) -> Path:
    """Write the woven copy of notebook `name` where readers find it; nothing is written if nothing changed."""
    build = house.build(profile)
    source = json.loads(Notebook.named(house, name).path.read_text(encoding="utf-8"))
    executed = json.loads((build.executed / f"{name}.ipynb").read_text(encoding="utf-8"))
    figures = house.shown_figures(profile)
    woven = {**executed, "cells": [_refreshed(cell, figures) for cell in _cells(source["cells"], executed["cells"])]}
    target, text = build.notebooks / f"{name}.ipynb", dump_notebook(woven)
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        atomic.write_text(target, text)
    return target


def _cells(source: list[Cell], executed: list[Cell]) -> list[Cell]:
    """The cells of `source`; those of code, of which there are as many, with what they gave."""
    ran = [cell for cell in executed if cell["cell_type"] == "code"]
    outputs = iter([cell for cell in ran if INJECTED_TAG not in cell["metadata"].get("tags", [])])
    injected = [cell for cell in ran if INJECTED_TAG in cell["metadata"].get("tags", [])]
    cells = []
    for cell in source:
        if cell["cell_type"] != "code":
            cells.append(cell)
            continue
        gave = next(outputs)
        cells.append({**cell, "outputs": gave["outputs"], "execution_count": gave["execution_count"]})
        if "parameters" in cell["metadata"].get("tags", []):
            cells += injected
    return cells


def _refreshed(cell: Cell, figures: Path) -> Cell:
    if cell["cell_type"] != "code":
        return cell
    return {**cell, "outputs": [_shown(output, figures) for output in cell["outputs"]]}


def _shown(output: dict[str, Any], figures: Path) -> dict[str, Any]:
    """A published output with the picture and the claims as they are in `figures`."""
    if MIME not in output.get("data", {}):
        return output
    from companion.publishing import Published  # matplotlib takes a second to import

    notebook, _, figure = output["data"][MIME]["figure"].partition("/")
    record = figure_set.read_record(figures / notebook, figure)
    return {**output, "data": dict(Published(figures / notebook, record).bundle())}
