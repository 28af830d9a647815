"""The parts of the table of contents, and the numbers of the chapters in parts that are numbered.

The numbers continue through the parts, by `sphinx_multitoc_numbering`, and parts without `numbered` have none.
"""

from itertools import count
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from companion.project.paths import CONTENTS, Project


def parts(app: Sphinx) -> list[tuple[str, list[str]]]:
    """Return the parts of the table of contents that have chapters, each with the names of its notebooks."""
    project: Project = app.config.companion_project
    listed = project.notebooks()
    groups: list[tuple[str, list[str]]] = []
    for tree in app.config.external_site_map.root.subtrees:
        if notebooks := [name for name in _names(tree) if name in listed]:
            groups.append((tree.caption or "", notebooks))
    return groups


def chapter_numbers(app: Sphinx) -> dict[str, int]:
    """Return the numbers of the pages in numbered parts, by their names."""
    trees = [tree for tree in app.config.external_site_map.root.subtrees if tree.numbered]
    return dict(zip((name for tree in trees for name in _names(tree)), count(1), strict=False))


def chapter_number(env: BuildEnvironment, name: str) -> int | None:
    """Return the number of a chapter for the page that is read, which then depends on the table of contents."""
    env.note_dependency(str(env.config.companion_project.root / CONTENTS))
    return chapter_numbers(env.app).get(name)


def _names(tree: Any) -> list[str]:
    return [str(item).rpartition("/")[2] for item in tree.items]
