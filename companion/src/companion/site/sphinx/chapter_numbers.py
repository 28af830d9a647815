"""The chapters: the parts of the table of contents, and the numbers of the chapters in parts that are numbered.

The numbers continue through the parts, by `sphinx_multitoc_numbering`, and parts without `numbered` have none. The page
that is read depends on the table of contents from then on.
"""

from typing import Any

from sphinx.environment import BuildEnvironment

from companion.project.paths import CONTENTS, Project


def parts(env: BuildEnvironment) -> list[tuple[str, list[str]]]:
    """Return the parts of the table of contents that have chapters, each with the names of its notebooks."""
    project: Project = env.config.companion_project
    listed = project.notebooks()
    groups: list[tuple[str, list[str]]] = []
    for tree in _trees(env):
        if notebooks := [name for name in _names(tree) if name in listed]:
            groups.append((tree.caption or "", notebooks))
    return groups


def chapter_numbers(env: BuildEnvironment) -> dict[str, int]:
    """Return the numbers of the pages in numbered parts, by their names."""
    names = [name for tree in _trees(env) if tree.numbered for name in _names(tree)]
    return {name: number for number, name in enumerate(names, start=1)}


def chapter_on(config: Any, page: str) -> str:
    """Return the name of the notebook that a page shows, or "" for other pages."""
    project: Project = config.companion_project
    folder, _, name = page.rpartition("/")
    return name if folder == project.book.name and name in project.notebooks() else ""


def _trees(env: BuildEnvironment) -> list[Any]:
    env.note_dependency(str(env.config.companion_project.root / CONTENTS))
    return env.config.external_site_map.root.subtrees


def _names(tree: Any) -> list[str]:
    return [str(item).rpartition("/")[2] for item in tree.items]
