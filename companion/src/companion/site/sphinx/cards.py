"""Directives of the front page: one figure in full size, a card of a chapter, and the list of all chapters.

The metadata of a notebook may have a `card` with the name of its main figure and a summary of one or two sentences:
`"card": {"figure": "response", "summary": "Where the response begins to bend."}`.
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from companion.figures import store, thumbnails
from companion.figures.record import FigureRecord
from companion.io.atomic import write_bytes
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.site.sphinx.chapter_numbers import chapter_numbers, parts
from companion.site.sphinx.domain import BookDomain
from companion.site.sphinx.downloads import picture_of
from companion.site.sphinx.nodes import picture

THUMBNAILS = "thumbnails"


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
    """`{companion-card} notebook`: the main figure and the title of a chapter, as a link, with text below them."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the card. Its thumbnail is drawn after all pages are written."""
        project: Project = self.config.companion_project
        chapter = Notebook.named(project, self.arguments[0])
        if chapter.card is None:
            raise self.error(f"The metadata of the notebook {chapter.name!r} has no `card`.")
        self.env.note_dependency(str(chapter.path))
        target = f"{chapter.name}/{chapter.card['figure']}"
        record_of(self, target)
        BookDomain.of(self.env).current.thumbnails.add(target)
        link = nodes.reference("", "", refuri=_address(self, chapter.name), internal=True)
        # the title of the chapter, which follows in the link, is its text for readers who do not see the picture
        file = thumbnail_file(self.env.docname, chapter.card["figure"])
        link += picture(file=file, alt="", size=thumbnails.SIZE, within_link=True)
        title, messages = self.parse_inline(chapter.title)
        link += nodes.inline("", "", *title)
        card = nodes.container(classes=["companion-card"])
        card += nodes.paragraph("", "", link)
        card += messages
        card += self.parse_content_to_nodes()
        return [card]


class ChaptersDirective(SphinxDirective):
    """`{companion-chapters}`: all chapters by part, with their numbers and summaries, in the order of `_toc.yml`."""

    def run(self) -> list[nodes.Node]:
        """Return the parts, each with a list of its chapters."""
        numbers = chapter_numbers(self.env)
        place = nodes.container(classes=["companion-chapters"])
        for caption, names in parts(self.env):
            part = nodes.container(classes=["companion-chapters-part"])
            if caption:
                part += nodes.rubric("", caption)
            first = numbers.get(names[0])
            if first is None:
                listed: nodes.Element = nodes.bullet_list()
            else:
                listed = nodes.enumerated_list(enumtype="arabic", prefix="", suffix=".", start=first)
            for name in names:
                listed += self._chapter(name)
            part += listed
            place += part
        return [place]

    def _chapter(self, name: str) -> nodes.Node:
        chapter = Notebook.named(self.config.companion_project, name)
        self.env.note_dependency(str(chapter.path))
        title, messages = self.parse_inline(chapter.title)
        entry = nodes.list_item()
        entry += nodes.paragraph("", "", nodes.reference("", "", *title, refuri=_address(self, name), internal=True))
        entry += messages
        if chapter.card:
            text, messages = self.parse_inline(chapter.card["summary"])
            entry += [nodes.paragraph("", "", *text, classes=["companion-summary"]), *messages]
        return entry


def _address(directive: SphinxDirective, name: str) -> str:
    book = directive.config.companion_project.book.name
    return directive.env.app.builder.get_relative_uri(directive.env.docname, f"{book}/{name}")


def thumbnail_file(docname: str, figure: str) -> str:
    """Return the address of the thumbnail of a figure from a page."""
    return f"{'../' * docname.count('/')}{THUMBNAILS}/{figure}.png"


def figures_of_cards(project: Project) -> dict[str, str]:
    """Return, by chapter, the figure that its card shows."""
    cards = {name: Notebook.named(project, name).card for name in project.notebooks()}
    return {name: card["figure"] for name, card in cards.items() if card}


def draw_thumbnails(app: Sphinx, out: Path) -> None:
    """Write the thumbnails of all main figures of chapters to the site."""
    project: Project = app.config.companion_project
    pages = BookDomain.of(app.env).pages.values()
    for figure in sorted({figure for page in pages for figure in page.thumbnails}):
        path = out / THUMBNAILS / f"{figure.partition('/')[2]}.png"
        write_bytes(path, thumbnails.thumbnail(project, app.config.companion_profile, figure))
