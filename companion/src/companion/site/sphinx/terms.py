"""Terms in the text of chapters: the first mention of a term on a page links to its definition, which has a preview.

`[tool.companion.terms]` gives the definition of each term: the label of a theorem box, or `page#anchor`.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from companion.io.errors import did_you_mean
from companion.project.paths import Project
from companion.project.theorem_blocks import boxes
from companion.site.sphinx.chapter_numbers import chapter_on
from companion.site.sphinx.inline_text import page_link
from companion.site.sphinx.nodes import is_within

logger = logging.getLogger(__name__)
# Paragraphs in these are not the text of a chapter.
APART = (nodes.figure, nodes.table, nodes.container)


@lru_cache(maxsize=1)
def places_of_terms(app: Sphinx) -> dict[str, tuple[str, str]]:
    """Return the page and the anchor of the definition of each term, found once per build; warn of a term without."""
    project: Project = app.config.companion_project
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
    if name := chapter_on(app.config, app.env.docname):
        paragraphs = [paragraph for paragraph in doctree.findall(nodes.paragraph) if not is_within(paragraph, APART)]
        for term, (page, anchor) in places_of_terms(app).items():
            if page != name:
                _link_first(paragraphs, term, page_link(app.env, page, anchor, term, classes=["companion-term"]))


def _link_first(paragraphs: Iterable[nodes.paragraph], term: str, link: nodes.Node) -> None:
    word = re.compile(rf"(?<![\w-]){re.escape(term)}(?![\w-])")
    for paragraph in paragraphs:
        for position, text in enumerate(paragraph.children):
            if isinstance(text, nodes.Text) and (match := word.search(text.astext())):
                before, after = match.string[: match.start()], match.string[match.end() :]
                paragraph[position : position + 1] = [nodes.Text(before), link, nodes.Text(after)]
                return
