"""Executed notebooks for readers: the prose as it is now, the outputs of the last run, the pictures of today.

Where nothing was run, the published figures can stand for the outputs.
They contain no names of machines or folders.
"""

import sys
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from companion.build import publication_policy
from companion.build.cache_keys import plain_cells
from companion.figures import store
from companion.io import atomic
from companion.io.errors import UserError
from companion.project import slicing
from companion.project.notebooks import BOOTSTRAP_TAG, INJECTED_TAG, PARAMETERS_TAG, Notebook
from companion.project.paths import DEFAULT_PROFILE, MIME, Project
from companion.project.repository import dump_notebook
from companion.site import notebook_content
from companion.site.notebook_content import Cell, Content, Output


def weave(project: Project, name: str, profile: str) -> Path:
    """Write the woven copy of notebook `name` where readers find it; nothing is written if nothing changed.

    Raises a `UserError` if the notebook's code is not that which gave the outputs.
    """
    build = project.build(profile)
    today, last = Notebook.named(project, name), Notebook(build.executed / f"{name}.ipynb")
    if plain_cells(today) != plain_cells(last):
        raise UserError(
            f"{name} has other code than when it was run in profile {profile!r}. Run `companion run {name} --profile "
            f"{profile}` first."
        )
    source, executed = (notebook_content.read(notebook.path) for notebook in (today, last))
    figures = project.shown_figures(profile)
    woven: Content = {
        **executed,
        "metadata": {part: value for part, value in executed["metadata"].items() if part != "papermill"},
        "cells": [_refreshed(cell, project, figures) for cell in _cells(source["cells"], executed["cells"])],
    }
    return _write(build.notebooks / f"{name}.ipynb", woven)


def weave_published(project: Project, name: str) -> Path:
    """The same without a run: each published figure in the cell that publishes it, nothing under the others.

    Raises a `UserError` if one is not whole, or known to be of another notebook than today's.
    """
    notebook = Notebook.named(project, name)
    sentences: list[str] = []
    for figure in notebook.figures:
        if faults := publication_policy.departures(project, name, figure):
            enough = faults == [publication_policy.DRAWN_BY_OTHER_CODE]
            command = f"companion redraw {name}/{figure}" if enough else f"companion run {name}"
            sentences.append(f"figures/{name}/{figure}: {'; '.join(faults)}. Run `{command}` first.")
    if sentences:
        raise UserError("\n".join(sentences))
    source = notebook_content.read(notebook.path)
    cells = [_refreshed(_with_figure(cell, name), project, project.published) for cell in source["cells"]]
    return _write(project.build(DEFAULT_PROFILE).notebooks / f"{name}.ipynb", {**source, "cells": cells})


def _with_figure(cell: Cell, name: str) -> Cell:
    """The cell as if it had been run; a notebook shows what the last line of a cell comes to."""
    if cell["cell_type"] != "code":
        return cell
    shown = slicing.published(["".join(cell["source"])])[-1:]
    outputs: list[Output] = [
        {"output_type": "execute_result", "metadata": {}, "execution_count": None, "data": {MIME: {"figure": place}}}
        for place in (f"{name}/{figure}" for figure in shown)
    ]
    return {**cell, "outputs": outputs}


def _write(target: Path, woven: Content) -> Path:
    text = dump_notebook(woven)
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        atomic.write_text(target, text)
    return target


def _cells(source: list[Cell], executed: list[Cell]) -> list[Cell]:
    """The cells of `source`; those of code with what they gave, step by step."""
    ran = [cell for cell in executed if cell["cell_type"] == "code"]
    ran_steps = iter([cell for cell in ran if _tag(cell) is None])
    others = {_tag(cell): cell for cell in ran if _tag(cell)}
    cells: list[Cell] = []
    for cell in source:
        if cell["cell_type"] != "code":
            cells.append(cell)
            continue
        gave = others.get(_tag(cell)) if _tag(cell) else next(ran_steps)
        outputs = gave.get("outputs", []) if gave else []
        cells.append({**cell, "outputs": outputs, "execution_count": gave.get("execution_count") if gave else None})
        if _tag(cell) == PARAMETERS_TAG and INJECTED_TAG in others:
            cells.append(others[INJECTED_TAG])
    return cells


def _tag(cell: Cell) -> str | None:
    """What the cell is, if it is no step of the computation."""
    tags = notebook_content.tags(cell)
    return next((tag for tag in (PARAMETERS_TAG, INJECTED_TAG, BOOTSTRAP_TAG) if tag in tags), None)


def _refreshed(cell: Cell, project: Project, figures: Path) -> Cell:
    if cell["cell_type"] != "code":
        return cell
    return {**cell, "outputs": [_shown(output, project, figures) for output in cell.get("outputs", [])]}


def _shown(output: Output, project: Project, figures: Path) -> Output:
    """A published output with the picture and the claims as they are in `figures`; any other without folders."""
    place = notebook_content.figure_shown(output)
    if place is None:
        return cast("Output", _without_folders(cast("JsonValue", output), project))
    from companion.authoring.publish import Published  # matplotlib takes a second to import

    notebook, _, figure = place.partition("/")
    if store.faults(figures / notebook, figure):  # the site says which, and is not built
        return output
    record = store.read_record(figures / notebook, figure)
    return {**output, "data": dict(Published(figures / notebook, record).bundle())}


def _without_folders(output: JsonValue, project: Project) -> JsonValue:
    """The same, its texts naming no folder above the book, above the environment, or of a person."""
    match output:
        case str():
            for folder, instead in ((project.root, ""), (Path(sys.prefix), ""), (Path.home(), "~/")):
                output = output.replace(f"{folder}/", instead)
            return output
        case list():
            return [_without_folders(part, project) for part in output]
        case dict():
            # in the letters that pictures are made of, a short name could stand by chance
            return {
                kind: part if kind.startswith("image/") else _without_folders(part, project)
                for kind, part in output.items()
            }
        case _:
            return output
