"""Cache keys: digests of content that decide which notebooks, pictures, pages and tasks are stale.

The key of a target is the digest of everything the target is made from. Building the target writes a stamp file whose
name contains the key. The target is fresh if the stamp of the present key exists and the files it lists are intact.

| key     | made from                                                                        | if it changes          |
|---------|----------------------------------------------------------------------------------|------------------------|
| numbers | parameters, code cells, tracked data, context, reachable sources, versions of    | the notebook runs      |
|         | the packages that compute                                                        |                        |
| picture | the numbers key, `draw`, the docstring, the style, versions of the packages that | the figure is redrawn  |
|         | draw                                                                             |                        |
| site    | all of these, prose, configuration, every source that a page shows               | Sphinx runs            |
| task    | the parameters of the function `tasks`, its sources, data, context, versions of  | the task is computed   |
|         | the packages that compute                                                        |                        |

A key contains only the locked versions of the packages that compute or draw: a new version of a documentation tool
makes nothing stale.
"""

import ast
import glob
import json
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from companion.analysis import dependencies
from companion.analysis.locked_versions import locked_versions
from companion.build.run_spec import CheckedRun, Target
from companion.io.atomic import dump_json, write_text
from companion.io.errors import UserError
from companion.io.sources import read_source
from companion.project import parameters, slicing
from companion.project.configuration import FILE, TABLE
from companion.project.notebooks import Notebook
from companion.project.paths import CITATION, CONTENTS, DEFAULT_PROFILE, MARK, Build, Project, relative

TOOL = "paper-companion"
# The packages that draw every picture.
DRAWING = ("matplotlib", "seaborn")
# A file of settings that matplotlib reads in the working folder, and that no picture uses.
UNUSED = "matplotlibrc"
# The length of a key in hexadecimal digits.
DIGITS = 16


class Site(Enum):
    """The two kinds of site: from the notebooks of a build, or from the published figures without a run."""

    BUILT = "built"
    PUBLISHED = "published"

    @property
    def stem(self) -> str:
        """The path of its stamp without suffix, in a folder that no `Target` uses."""
        return f"site/{self.value}"


AnyTarget = Target | Site
Content = dict[str, Any]


def key_of(content: Mapping[str, Any]) -> str:
    """Return the key of a target that is made of `content`."""
    # infinite parameters are refused later, with the others that are out of range
    return dependencies.digest(json.dumps(content).encode())[:DIGITS]


def task_key(project: Project, name: str, resolved: Mapping[str, Any]) -> str | None:
    """Return the key of the chapter's tasks at these resolved parameters, or None if it has no tasks."""
    path = project.chapter(name) / "tasks.py"
    if not path.is_file():
        return None
    return key_of(
        {
            "parameters": {parameter: resolved[parameter] for parameter in _keywords(path, "tasks")},
            "sources": _library(project).numbers_digests(
                [f"{project.settings.chapters}.{name}.tasks"], dependencies.TASK_MODULES
            ),
            **_material(project, name),
        }
    )


def contents_of_notebook(project: Project, name: str, resolved: Mapping[str, Any]) -> dict[Target, Content]:
    """Return what the numbers and the pictures of a notebook are made of, at these resolved parameters."""
    notebook, library = Notebook.named(project, name), _library(project)
    numbers: Content = {
        "parameters": dict(resolved),
        "cells": plain_cells(notebook),
        "sources": library.numbers_digests(slicing.modules(notebook.code)),
        **_material(project, name),
    }
    contents, key = {Target(name): numbers}, key_of(numbers)
    for figure in notebook.figures:
        contents[Target(name, figure)] = {
            "numbers": key,
            "picture": library.picture_digest(project.figure_module(name, figure)),
            "drawing": drawing_versions(project),
        }
    return contents


def contents_of_profile(project: Project, name: str, profile: str) -> dict[Target, Content]:
    """Return what the numbers and the pictures of a notebook are made of now, in `profile`."""
    return contents_of_notebook(project, name, parameters.resolve(project, Notebook.named(project, name), profile))


def plain_cells(notebook: Notebook) -> list[str]:
    """Return the code cells of a notebook without comments, docstrings and magics."""
    return [dependencies.plain_code(slicing.without_magics(cell)) for cell in notebook.code]


def all_made_of(project: Project, profile: str) -> dict[AnyTarget, Content]:
    """Return what every notebook, every picture and the built site are made of."""
    settings, unlisted = project.settings, {project.notebook(name) for name in project.unlisted_notebooks()}
    about = [path for name in (MARK, CONTENTS, CITATION) if (path := project.root / name).is_file()]
    pages = [path for path in _files(project.book) if path not in unlisted]
    shown = [path for package in settings.science for path in _files(project.root / package)]
    contents: dict[AnyTarget, Content] = {}
    for name in project.notebooks():
        contents |= contents_of_profile(project, name, profile)
    keys = {target: key_of(content) for target, content in contents.items() if isinstance(target, Target)}
    site: Content = {
        "notebooks": {target.notebook: key for target, key in keys.items() if target.figure is None},
        "pictures": {str(target): key for target, key in keys.items() if target.figure is not None},
        "pages": _digests(project, [*about, *pages, *shown]),
        "settings": {"live": settings.live, "terms": settings.terms, "api": settings.api},
        "machine": tree_digests(dependencies.MACHINE),
    }
    return {**contents, Site.BUILT: site}


def made_of(project: Project, target: AnyTarget, profile: str) -> Content:
    """Return what `target` is made of, part by part; its key is the digest of this."""
    match target:
        case Site.BUILT:
            return all_made_of(project, profile)[target]
        case Site.PUBLISHED:
            built = all_made_of(project, DEFAULT_PROFILE)[Site.BUILT]
            return {**built, "figures": tree_digests(project.published)}
        case Target(notebook=name):
            return contents_of_profile(project, name, profile)[target]


def stamp(project: Project, target: AnyTarget, profile: str) -> Path:
    """Return the path of the file that exists exactly when `target` is up to date."""
    return stamp_of(project, target, profile, made_of(project, target, profile))


def stamps(project: Project, profile: str) -> dict[AnyTarget, Path]:
    """Return the stamps of all notebooks, all pictures and the built site, in little more time than one takes."""
    return {
        target: stamp_of(project, target, profile, content) for target, content in all_made_of(project, profile).items()
    }


def stamp_of(project: Project, target: AnyTarget, profile: str, content: Mapping[str, Any]) -> Path:
    """Return the stamp of a target that is made of `content`."""
    return _stamp(project.build(profile), target, key_of(content))


def custom_stamp(project: Project, run: CheckedRun) -> Path:
    """Return the stamp of a custom run: one for its numbers and the pictures of its figures together."""
    contents = contents_of_notebook(project, run.spec.notebook, run.resolved)
    numbers = Target(run.spec.notebook)
    figures = [target for target in contents if target.figure and run.spec.figure in (None, target.figure)]
    pictures = [contents[target]["picture"] for target in figures]
    key = key_of({"numbers": key_of(contents[numbers]), "pictures": pictures})
    return _stamp(run.build(project), numbers, key)


def _stamp(build: Build, target: AnyTarget, key: str) -> Path:
    return build.stamps / f"{target.stem}.{key}.json"


def is_fresh(project: Project, target: AnyTarget, profile: str) -> bool:
    """Return whether building `target` would change nothing."""
    return intact(project, stamp(project, target, profile))


def stamps_in(build: Build, target: AnyTarget) -> list[Path]:
    """Return the existing stamps of `target`, of any key."""
    return sorted(build.stamps.glob(f"{glob.escape(target.stem)}.{'[0-9a-f]' * DIGITS}.json"))


def discard_damaged(project: Project, profile: str) -> None:
    """Remove the stamps of targets whose files were removed or altered, so that they are built again."""
    for path in sorted(project.build(profile).stamps.rglob("*.json")):
        if not intact(project, path):
            path.unlink(missing_ok=True)


def forget(build: Build, target: AnyTarget) -> None:
    """Remove every stamp of `target`, because its files are about to change."""
    for path in stamps_in(build, target):
        path.unlink(missing_ok=True)


def leave_stamp(project: Project, path: Path, files: Iterable[Path]) -> None:
    """Write the stamp `path` of a target that consists of `files`. No file of the target may be written after it."""
    write_text(path, dump_json(_digests(project, files)))


def leave_stamp_of(
    project: Project, target: AnyTarget, profile: str, content: Mapping[str, Any], files: Iterable[Path]
) -> None:
    """Write the stamp of a target that was built from `content`, which a later build compares with the present one."""
    write_text(_memory(project.build(profile), target), dump_json(content))
    leave_stamp(project, stamp_of(project, target, profile, content), files)


def remembered(build: Build, target: AnyTarget) -> Content | None:
    """Return what `target` was made of when it was last built; None if that is not known."""
    try:
        return json.loads(_memory(build, target).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _memory(build: Build, target: AnyTarget) -> Path:
    return build.made_of / f"{target.stem}.json"


def tree_digests(folder: Path) -> dict[str, str]:
    """Return the sha256 of every file below `folder`, by path."""
    return {relative(path, folder): dependencies.digest(path.read_bytes()) for path in _files(folder)}


def _library(project: Project) -> dependencies.Library:
    return dependencies.Library.at(project.root, project.settings.science)


def _material(project: Project, name: str) -> Content:
    """Return what every computation of a notebook depends on: tracked data, versions of packages, the context.

    Files of `data/` that only describe or make the data (.md, .py) do not count. Files that `[tool.companion]` lists
    under `inputs` count as data.
    """
    context = project.settings.context
    sources = _library(project).numbers_digests([context.replace(":", ".")], own_modules=()) if context else {}
    data = {
        path: digest for path, digest in tree_digests(project.data(name)).items() if not path.endswith((".md", ".py"))
    }
    return {
        "data": data | _inputs(project),
        "computing": computing_versions(project),
        "context": {"function": context, "sources": sources},
    }


def _inputs(project: Project) -> dict[str, str]:
    """Return the digest of each file that the book lists under `inputs`, by its path with a leading slash."""
    digests: dict[str, str] = {}
    for name in project.settings.inputs:
        path = project.root / name
        if not path.exists():
            raise UserError(f"There is no {path}, which `inputs` of {TABLE} in {project.root / FILE} lists.")
        files = _files(path) if path.is_dir() else [path]
        digests |= {f"/{file}": digest for file, digest in _digests(project, files).items()}
    return digests


def _digests(project: Project, files: Iterable[Path]) -> dict[str, str]:
    return {relative(file, project.root): dependencies.digest(file.read_bytes()) for file in files}


def may_be_read(project: Project, name: str, file: str) -> bool:
    """Return whether a kernel of notebook `name` may read `file`, a path relative to the root.

    It may read what the numbers key contains: its data, the listed inputs, and sources of the science packages, of
    which the key has those that the notebook can reach. It may also read what decides no number beyond the key:
    generated files, the configuration and profiles from which the publishing tool takes the parameters, and the fonts,
    which are in the picture key.
    """
    path = project.root / file
    configuration = {MARK, CONTENTS, FILE, project.lock.name, UNUSED}
    return (
        file in configuration
        or path == project.notebook(name)
        or path.is_relative_to(project.generated)
        or path.is_relative_to(project.profiles)
        or path.is_relative_to(project.data(name))
        or (path.suffix in (".py", ".ttf") and any(path.is_relative_to(folder) for folder in project.packages.values()))
        or any(path.is_relative_to(project.root / entry) for entry in project.settings.inputs)
    )


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
    for node in ast.parse(read_source(path)).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
    return []


def intact(project: Project, path: Path) -> bool:
    """Return whether the stamp `path` exists and every file that it lists is unchanged."""
    return altered(project, path) == []


def altered(project: Project, path: Path) -> list[str] | None:
    """Return the files that the stamp `path` lists and that were changed or removed; None if there is no such stamp."""
    try:
        listed = json.loads(path.read_text(encoding="utf-8")).items()
    except (OSError, ValueError, AttributeError):  # a damaged stamp counts as missing
        return None
    files = [(project.root / name, digest) for name, digest in listed]
    changed = [file for file, digest in files if not file.is_file() or dependencies.digest(file.read_bytes()) != digest]
    return [relative(file, project.root) for file in changed]


def _files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in path.relative_to(folder).parts)
    )
