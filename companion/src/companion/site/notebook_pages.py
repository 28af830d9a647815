"""Weave the notebooks that readers see: current prose, outputs of the last run, current pictures.

If nothing was run, the published figures take the place of the outputs. The woven notebooks contain no names of users,
machines or folders.
"""

import sys
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from companion.authoring.display import Published
from companion.build import publication_policy
from companion.build.cache_keys import plain_cells
from companion.figures import store
from companion.io import atomic
from companion.io.errors import UserError
from companion.project import slicing
from companion.project.notebooks import BOOTSTRAP_TAG, INJECTED_TAG, PARAMETERS_TAG, Notebook
from companion.project.paths import DEFAULT_PROFILE, MIME, Project
from companion.project.repository import dump_notebook, site_address
from companion.site import notebook_content
from companion.site.notebook_content import Cell, Content, Output


def weave(project: Project, name: str, profile: str) -> Path:
    """Weave the source of a notebook with the outputs of its last run, and return the path of the result.

    An unchanged file is not written again.

    Raises:
      UserError: if the code of the notebook has changed since the run.
    """
    build = project.build(profile)
    current, last = Notebook.named(project, name), Notebook(build.executed / f"{name}.ipynb")
    if plain_cells(current) != plain_cells(last):
        raise UserError(
            f"The code of {name} has changed since its run in profile {profile!r}. Run `companion run {name} --profile "
            f"{profile}` first."
        )
    source, executed = (notebook_content.read(notebook.path) for notebook in (current, last))
    figures = project.shown_figures(profile)
    woven: Content = {
        **source,
        "cells": [_refreshed(cell, project, figures) for cell in _cells(source["cells"], executed["cells"])],
    }
    return _write(build.notebooks / f"{name}.ipynb", woven)


def weave_published(project: Project, name: str) -> Path:
    """Weave the source of a notebook with its published figures, and return the path of the result.

    A cell that publishes a figure shows it; the other cells have no outputs.

    Raises:
      UserError: if a published figure is damaged or does not belong to the current notebook.
    """
    notebook = Notebook.named(project, name)
    sentences: list[str] = []
    for figure in notebook.figures:
        if faults := publication_policy.departures(project, name, figure):
            only_redraw = faults == [publication_policy.DRAWN_BY_OTHER_CODE]
            command = f"companion redraw {name}/{figure}" if only_redraw else f"companion run {name}"
            sentences.append(f"figures/{name}/{figure}: {'; '.join(faults)}. Run `{command}` first.")
    if sentences:
        raise UserError("\n".join(sentences))
    source = notebook_content.read(notebook.path)
    cells = [_refreshed(_with_figure(cell, name), project, project.published) for cell in source["cells"]]
    return _write(project.build(DEFAULT_PROFILE).notebooks / f"{name}.ipynb", {**source, "cells": cells})


def _with_figure(cell: Cell, name: str) -> Cell:
    """Return a cell with the output of its last `publish`, the only one that a notebook shows."""
    if cell["cell_type"] != "code":
        return cell
    figures = slicing.published_figures(["".join(cell["source"])])[-1:]
    shown: Output = {"output_type": "execute_result", "metadata": {}, "execution_count": None}
    return {**cell, "outputs": [{**shown, "data": {MIME: {"figure": f"{name}/{figure}"}}} for figure in figures]}


def _write(target: Path, woven: Content) -> Path:
    text = dump_notebook(woven)
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        atomic.write_text(target, text)
    return target


def _cells(source: list[Cell], executed: list[Cell]) -> list[Cell]:
    """Return the cells of `source`, with the outputs of the corresponding cells of `executed`."""
    code = [cell for cell in executed if cell["cell_type"] == "code"]
    steps = iter([cell for cell in code if _tag(cell) is None])
    tagged = {_tag(cell): cell for cell in code}
    cells: list[Cell] = []
    for cell in source:
        tag = _tag(cell)
        if cell["cell_type"] == "code":
            ran = tagged.get(tag, {}) if tag else next(steps)
            cells.append({**cell, "outputs": ran.get("outputs", []), "execution_count": ran.get("execution_count")})
        else:
            cells.append(cell)
        if tag == PARAMETERS_TAG and INJECTED_TAG in tagged:
            cells.append(tagged[INJECTED_TAG])
    return cells


def _tag(cell: Cell) -> str | None:
    """Return the tag of a code cell that is not a step of the computation, or None for a step."""
    tags = notebook_content.tags(cell)
    return next((tag for tag in (PARAMETERS_TAG, INJECTED_TAG, BOOTSTRAP_TAG) if tag in tags), None)


def _refreshed(cell: Cell, project: Project, figures: Path) -> Cell:
    if "outputs" not in cell:
        return cell
    return {**cell, "outputs": [_shown(output, project, figures) for output in cell["outputs"]]}


def _shown(output: Output, project: Project, figures: Path) -> Output:
    """Return an output with the current claims of its figure and a link to its picture, or without names of folders."""
    target = notebook_content.figure_shown(output)
    if target is None:
        return _without_folders(output, project)
    notebook, _, figure = target.partition("/")
    if store.faults(figures / notebook, figure):  # the figure directive reports the faults
        return output
    record = store.read_record(figures / notebook, figure)
    address = f"{site_address(project) or '../'}figures/{target}.svg"
    return {**output, "data": Published(figures / notebook, record).bundle(address)}


def _without_folders(output: JsonValue, project: Project) -> Any:
    """Return an output whose texts do not contain the paths of the book, the environment and the home folder."""
    match output:
        case str():
            for folder, replacement in ((project.root, ""), (Path(sys.prefix), ""), (Path.home(), "~/")):
                output = output.replace(f"{folder}/", replacement)
            return output
        case list():
            return [_without_folders(part, project) for part in output]
        case dict():
            # the base64 text of a picture could contain a short path by chance
            return {
                kind: part if kind.startswith("image/") else _without_folders(part, project)
                for kind, part in output.items()
            }
        case _:
            return output
