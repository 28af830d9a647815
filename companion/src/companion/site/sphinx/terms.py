"""Terms in the text of chapters: the first mention of a term on a page links to its definition, which has a preview.

`[tool.companion.terms]` gives the definition of each term: the label of a theorem box, or `page#anchor`.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from companion.io.errors import did_you_mean
from companion.project.paths import Project
from companion.project.theorem_blocks import boxes

logger = logging.getLogger(__name__)


def places_of_terms(project: Project) -> dict[str, tuple[str, str]]:
    """Return the page and the anchor of the definition of each term; warn of a term without one."""
    pages = {box.label: box.page for box in boxes(project)}
    places: dict[str, tuple[str, str]] = {}
    for term, place in project.settings.terms.items():
        page, mark, anchor = place.partition("#")
        if mark:
            places[term] = (page, anchor)
        elif place in pages:
            places[term] = (pages[place], place)
        else:
            guess = did_you_mean(place, pages)
            logger.warning("[tool.companion.terms] defines %r by a box %r that no page has. %s", term, place, guess)
    return places


def link_terms(app: Sphinx, doctree: nodes.document) -> None:
    """Link the first mention of each term in a paragraph of a chapter, unless the chapter itself defines the term."""
    project: Project = app.config.companion_project
    folder, _, name = app.env.docname.rpartition("/")
    if folder != project.book.name or name not in project.notebooks() or not project.settings.terms:
        return
    for term, (page, anchor) in places_of_terms(project).items():
        if page != name:
            uri = app.builder.get_relative_uri(app.env.docname, f"{project.book.name}/{page}")
            _link_first(doctree, term, f"{uri}#{anchor}")


def _link_first(doctree: nodes.document, term: str, uri: str) -> None:
    word = re.compile(rf"(?<![\w-]){re.escape(term)}(?![\w-])")
    for paragraph in doctree.findall(nodes.paragraph):
        if _is_apart(paragraph):
            continue
        for position, text in enumerate(paragraph.children):
            if isinstance(text, nodes.Text) and (match := word.search(text.astext())):
                link = nodes.reference("", term, refuri=uri, internal=True, classes=["companion-term"])
                before, after = match.string[: match.start()], match.string[match.end() :]
                paragraph[position : position + 1] = [nodes.Text(before), link, nodes.Text(after)]
                return


def _is_apart(paragraph: nodes.paragraph) -> bool:
    """Return whether a paragraph belongs to a figure, a table or the claims of a figure, and not to the text."""
    parent = paragraph.parent
    while parent is not None:
        if isinstance(parent, (nodes.figure, nodes.table, nodes.container)):
            return True
        parent = parent.parent
    return False
