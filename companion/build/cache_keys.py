"""Cache keys: digests of content that decide which notebooks, pictures, pages and tasks are stale.

The key of a target is the digest of everything the target is made from. Building the target writes a stamp file whose
name contains the key. The target is fresh if the stamp of the present key exists and the files it lists are intact.

| key     | made from                                                                        | if it changes          |
|---------|----------------------------------------------------------------------------------|------------------------|
| numbers | parameters, code cells, tracked data, context, reachable sources, versions of    | the notebook runs      |
|         | the packages that compute                                                        |                        |
| picture | the numbers key, `draw`, the docstring, the style, versions of what draws        | the figure is redrawn  |
| book    | all of these, prose, configuration, every source that a page shows               | Sphinx runs            |
| task   | the parameters that `tasks` takes, its sources, data, context, those versions   | the task is computed  |

A key contains only the locked versions of the packages that compute or draw: a new version of a documentation tool
makes nothing stale.
"""

import ast
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from companion.analysis import dependencies
from companion.analysis.locked_versions import locked_versions
from companion.io.atomic import dump_json, write_text
from companion.io.errors import UserError
from companion.project import slicing
from companion.project.notebooks import Notebook
from companion.project.parameters import resolve
from companion.project.paths import DEFAULT_PROFILE, Build, Project, relative

BOOK = "book"
TOOL = "paper-companion"
# Every picture is drawn with these.
DRAWING = ("matplotlib", "seaborn")
# The site without a run; no notebook is called `book`, so this is no picture of one.
PUBLISHED_BOOK = f"{BOOK}-published"


def numbers_key(project: Project, name: str, profile: str, overrides: Mapping[str, Any] | None = None) -> str:
    """Return the key of a notebook's numbers (see the module's table)."""
    return _key(_numbers_parts(project, name, profile, overrides))


def _numbers_parts(
    project: Project, name: str, profile: str, overrides: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    notebook = Notebook.named(project, name)
    return {
        "parameters": resolve(project, notebook, profile, overrides),
        "cells": plain_cells(notebook),
        "sources": _library(project).numbers_digests(slicing.modules(notebook.code)),
        **_material(project, name),
    }


def plain_cells(notebook: Notebook) -> list[str]:
    """Return its code cells without comments, docstrings and magics."""
    return [dependencies.plain_code(slicing.without_magics(cell)) for cell in notebook.code]


def picture_key(project: Project, name: str, figure: str, profile: str) -> str:
    """The numbers, and what draws them."""
    return _key(_picture_parts(project, name, figure, numbers_key(project, name, profile)))


def _picture_parts(project: Project, name: str, figure: str, numbers: str) -> dict[str, Any]:
    drawn = _library(project).picture_digest(project.figure_module(name, figure))
    return {"numbers": numbers, "picture": drawn, "drawing": drawing_versions(project)}


def task_key(project: Project, name: str, profile: str) -> str | None:
    """Return the key of the chapter's tasks, or None if it has none."""
    path = project.chapter(name) / "tasks.py"
    if not path.is_file():
        return None
    values = resolve(project, Notebook.named(project, name), profile)
    return _key(
        {
            "parameters": {parameter: values[parameter] for parameter in _keywords(path, "tasks")},
            "sources": _library(project).numbers_digests(
                [f"{project.settings.chapters}.{name}.tasks"], dependencies.OF_TASKS
            ),
            **_material(project, name),
        }
    )


def book_key(project: Project, profile: str) -> str:
    """Every notebook's key, every picture's, every page, the configuration, what renders and what is shown."""
    return _key(made_of(project, BOOK, profile))


def all_made_of(project: Project, profile: str) -> dict[str, dict[str, Any]]:
    """Return what every notebook, every picture and the book are made of."""
    pages = [project.root / "_config.yml", project.root / "_toc.yml", *_files(project.book)]
    shown = [path for package in project.settings.science for path in _files(project.root / package)]
    numbers = {name: _numbers_parts(project, name, profile) for name in project.notebooks()}
    drawn = {
        picture_target(name, figure): _picture_parts(project, name, figure, _key(content))
        for name, content in numbers.items()
        for figure in Notebook.named(project, name).figures
    }
    book = {
        "notebooks": {name: _key(content) for name, content in numbers.items()},
        "pictures": {target: _key(content) for target, content in drawn.items()},
        "pages": {relative(page, project.root): dependencies.digest(page.read_bytes()) for page in [*pages, *shown]},
        "live": dict(project.settings.live),
        "api": list(project.settings.api),
        "machine": tree_digests(dependencies.MACHINE),
    }
    return {**numbers, **drawn, BOOK: book}


def published_book(project: Project) -> dict[str, Any]:
    """What the site is made of that shows published figures and runs nothing: the book's parts, and these figures."""
    return {**made_of(project, BOOK, DEFAULT_PROFILE), "figures": tree_digests(project.published)}


def pictures(project: Project, name: str | None = None) -> list[str]:
    """The targets `notebook-figure`, of one notebook or of all."""
    names = [name] if name else project.notebooks()
    return [picture_target(name, figure) for name in names for figure in Notebook.named(project, name).figures]


def picture_target(name: str, figure: str) -> str:
    """Return the target name of a figure's picture."""
    return f"{name}-{figure}"


def stamp(project: Project, target: str, profile: str) -> Path:
    """Return the file that exists exactly when `target` (a notebook, a picture or `BOOK`) is up to date."""
    return stamp_of(project, target, profile, made_of(project, target, profile))


def stamps(project: Project, profile: str) -> dict[str, Path]:
    """The same for every target at once, which takes little longer than for one."""
    return {
        target: stamp_of(project, target, profile, content) for target, content in all_made_of(project, profile).items()
    }


def stamp_of(project: Project, target: str, profile: str, content: Mapping[str, Any]) -> Path:
    """The stamp of a target that is made of `content`."""
    return project.build(profile).stamps / f"{target}.{_key(content)}.json"


def run_stamp(
    project: Project, build: Build, name: str, profile: str, overrides: Mapping[str, Any], *, figure: str | None = None
) -> Path:
    """Return the stamp of a custom run, of all figures or of one; its numbers and pictures are one target."""
    library = _library(project)
    figures = [figure] if figure else Notebook.named(project, name).figures
    pictures = [library.picture_digest(project.figure_module(name, one)) for one in figures]
    key = _key({"numbers": numbers_key(project, name, profile, overrides), "pictures": pictures})
    return build.stamps / f"{name}.{key}.json"


def made_of(project: Project, target: str, profile: str) -> dict[str, Any]:
    """All that decides `target` (a notebook, a picture or `BOOK`), part by part; its key is the digest of this."""
    if target == BOOK:
        return all_made_of(project, profile)[BOOK]
    name, _, figure = target.partition("-")
    if figure:
        return _picture_parts(project, name, figure, numbers_key(project, name, profile))
    return _numbers_parts(project, name, profile)


def is_fresh(project: Project, target: str, profile: str) -> bool:
    """Whether building `target` would change nothing."""
    return intact(project, stamp(project, target, profile))


def discard_damaged(project: Project, profile: str) -> None:
    """Remove the stamps of targets whose files were removed or altered, so that they are built again."""
    for path in project.build(profile).stamps.glob("*.json"):
        if not intact(project, path):
            path.unlink(missing_ok=True)


def forget(build: Build, target: str) -> None:
    """Remove every stamp of `target`: its files are about to change."""
    for path in build.stamps.glob(f"{target}.*.json"):
        path.unlink(missing_ok=True)


def leave_stamp(project: Project, path: Path, files: list[Path], content: Mapping[str, Any] | None = None) -> None:
    """Write the stamp of a target that consists of `files`, and nothing after it.

    Before it, `content` is written: what the target is made of, so that a later build can name what changed.
    """
    if content is not None:
        write_text(_memory(path.parent, path.name.partition(".")[0]), dump_json(content))
    contents = {relative(file, project.root): dependencies.digest(file.read_bytes()) for file in files}
    write_text(path, dump_json(contents))


def remembered(build: Build, target: str) -> dict[str, Any] | None:
    """What `target` was made of when its last stamp was left; None where none was left."""
    try:
        return json.loads(_memory(build.stamps, target).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _memory(stamps: Path, target: str) -> Path:
    return stamps / "made_of" / f"{target}.json"


def traces(project: Project, name: str) -> dict[str, tuple[int, ...]]:
    """Return inode, size and times of every tracked data file of notebook `name`, which change with every write.

    No key contains this: it only shows whether a file was written during a run.
    """
    folder = project.data(name)
    marks = {relative(path, folder): path.stat() for path in _files(folder)}
    return {path: (mark.st_ino, mark.st_size, mark.st_mtime_ns, mark.st_ctime_ns) for path, mark in marks.items()}


def tree_digests(folder: Path) -> dict[str, str]:
    """For every file below `folder`, its sha256."""
    return {relative(path, folder): dependencies.digest(path.read_bytes()) for path in _files(folder)}


def _library(project: Project) -> dependencies.Library:
    return dependencies.Library.at(project.root, project.settings.science)


def _material(project: Project, name: str) -> dict[str, Any]:
    """Return what every computation of a notebook depends on: tracked data, versions of packages, the context.

    Files of `data/` that only describe or make the data (.md, .py) do not count.
    """
    context = project.settings.context
    opened = _library(project).numbers_digests([context.replace(":", ".")], machine=()) if context else {}
    data = {
        path: found for path, found in tree_digests(project.data(name)).items() if not path.endswith((".md", ".py"))
    }
    return {
        "data": data,
        "computing": computing_versions(project),
        "context": {"function": context, "sources": opened},
    }


def computing_versions(project: Project) -> dict[str, str]:
    """Return the locked versions of the packages that can change a number.

    These are the needs of the book's `[project.dependencies]`, without the publishing tool, and of the packages that
    `[tool.companion]` lists under `compute`.
    """
    needs = [Requirement(need).name for need in project.metadata.get("dependencies", [])]
    roots = [name for name in needs if canonicalize_name(name) != TOOL]
    return _locked(project, (*roots, *project.settings.compute))


def drawing_versions(project: Project) -> dict[str, str]:
    """Return the locked versions of the packages that can change a picture."""
    return _locked(project, DRAWING)


def _locked(project: Project, roots: Iterable[str]) -> dict[str, str]:
    if not project.lock.is_file():
        raise UserError(f"There is no {project.lock}, which pins what the numbers depend on. Restore it, or make it.")
    return locked_versions(project.lock, roots)


def _keywords(path: Path, function: str) -> list[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
    return []


def intact(project: Project, path: Path) -> bool:
    """Whether the stamp `path` is there, and every file it lists is as it was."""
    try:
        contents: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
        return all(
            dependencies.digest((project.root / name).read_bytes()) == digest for name, digest in contents.items()
        )
    except (OSError, ValueError, AttributeError, TypeError):  # whatever is there instead of a stamp is none
        return False


def altered(project: Project, path: Path) -> list[str]:
    """The files that the stamp `path` lists and that are not as they were; empty if there is no such stamp."""
    try:
        contents: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
        named = [(name, project.root / name, digest) for name, digest in contents.items()]
    except (OSError, ValueError, AttributeError):
        return []
    return [
        name for name, file, digest in named if not file.is_file() or dependencies.digest(file.read_bytes()) != digest
    ]


def _key(content: Mapping[str, Any]) -> str:
    return dependencies.digest(dump_json(content).encode())[:16]


def _files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in path.relative_to(folder).parts)
    )
