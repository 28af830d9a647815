"""The parts of the table of contents, and the numbers of the chapters in parts that are numbered.

The numbers continue through the parts, by `sphinx_multitoc_numbering`, and parts without `numbered` have none.
"""

from itertools import count

from sphinx.application import Sphinx

from companion.project.paths import Project


def parts(app: Sphinx) -> list[tuple[str, list[str]]]:
    """Return the parts of the table of contents that have chapters, each with the names of its notebooks."""
    project: Project = app.config.companion_project
    listed = project.notebooks()
    groups: list[tuple[str, list[str]]] = []
    for tree in app.config.external_site_map.root.subtrees:
        names = [str(item).rpartition("/")[2] for item in tree.items]
        if notebooks := [name for name in names if name in listed]:
            groups.append((tree.caption or "", notebooks))
    return groups


def chapter_numbers(app: Sphinx) -> dict[str, int]:
    """Return the numbers of the pages in numbered parts, by their names."""
    trees = [tree for tree in app.config.external_site_map.root.subtrees if tree.numbered]
    names = [str(item).rpartition("/")[2] for tree in trees for item in tree.items]
    return dict(zip(names, count(1), strict=False))
