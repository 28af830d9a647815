"""Directives of the front page: one figure in full size, and one card per chapter with a thumbnail."""

import re
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from companion.figures import store, thumbnails
from companion.figures.record import FigureRecord
from companion.io.atomic import write_bytes
from companion.project.notebooks import Notebook
from companion.project.paths import Project, visible
from companion.site.sphinx.domain import BookDomain
from companion.site.sphinx.downloads import picture_of
from companion.site.sphinx.nodes import picture

THUMBNAILS = "thumbnails"
CARD = re.compile(r"^:{3,}\{companion-card\} *(\w+)/(\w+) *$", re.MULTILINE)


def record_of(directive: SphinxDirective, target: str) -> tuple[Path, FigureRecord]:
    """Return the folder and the record of a figure, `notebook/figure`, on which the page of the directive depends.

    A damaged figure is an error, which fails a strict build.
    """
    project: Project = directive.config.companion_project
    notebook, _, figure = target.partition("/")
    folder = project.shown_figures(directive.config.companion_profile) / notebook
    if faults := store.faults(folder, figure):
        raise directive.error(f"Figure {target!r} cannot be shown: {'; '.join(faults)}.")
    directive.env.note_dependency(str(folder / f"{figure}{store.RECORD}"))
    return folder, store.read_record(folder, figure)


class PictureDirective(SphinxDirective):
    """`{companion-picture} notebook/figure`: the picture of a chapter's figure on another page, with text below it."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the picture without a number, because the figure is numbered in its chapter."""
        folder, record = record_of(self, self.arguments[0])
        shown = nodes.container(classes=["companion-picture"])
        shown += picture_of(self.env.docname, folder, record)
        shown += self.parse_content_to_nodes()
        return [shown]


class CardDirective(SphinxDirective):
    """`{companion-card} notebook/figure`: a thumbnail and a title that link to a chapter, with text below them."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Return the card. Its thumbnail is drawn after all pages are written."""
        record_of(self, self.arguments[0])
        BookDomain.of(self.env).current.thumbnails.add(self.arguments[0])
        project: Project = self.config.companion_project
        notebook, _, figure = self.arguments[0].partition("/")
        file = thumbnail_file(self.env.docname, figure)
        target = self.env.app.builder.get_relative_uri(self.env.docname, f"{project.book.name}/{notebook}")
        link = nodes.reference("", "", refuri=target, internal=True)
        link += picture(file=file, alt=self.options["alt"], size=thumbnails.SIZE, within_link=True)
        title, messages = self.parse_inline(Notebook.named(project, notebook).title)
        link += nodes.inline("", "", *title)
        card = nodes.container(classes=["companion-card"])
        card += nodes.paragraph("", "", link)
        card += messages
        card += self.parse_content_to_nodes()
        return [card]


def thumbnail_file(docname: str, figure: str) -> str:
    """Return the address of the thumbnail of a figure from a page."""
    return f"{'../' * docname.count('/')}{THUMBNAILS}/{figure}.png"


def figures_of_cards(project: Project) -> dict[str, str]:
    """Return, by chapter, the figure that its card shows."""
    return dict(card for page in visible(project.book, "*.md") for card in CARD.findall(page.read_text("utf-8")))


def draw_thumbnails(app: Sphinx, out: Path) -> None:
    """Write the thumbnails of all cards to the site."""
    project: Project = app.config.companion_project
    pages = BookDomain.of(app.env).pages.values()
    for figure in sorted({figure for page in pages for figure in page.thumbnails}):
        path = out / THUMBNAILS / f"{figure.partition('/')[2]}.png"
        write_bytes(path, thumbnails.thumbnail(project, app.config.companion_profile, figure))
