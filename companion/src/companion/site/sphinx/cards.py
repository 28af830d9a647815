"""Directives of the front page: one figure in full size, a card of a chapter, and the list of all chapters.

The metadata of a notebook may have a `card` with the name of its main figure and a summary of one or two sentences:
`"card": {"figure": "response", "summary": "Where the response begins to bend."}`.
"""

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from companion.figures import thumbnails
from companion.io.atomic import write_bytes
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.site.sphinx.chapter_numbers import chapter_numbers, parts
from companion.site.sphinx.domain import BookDomain
from companion.site.sphinx.downloads import picture_of, record_of
from companion.site.sphinx.inline_text import page_link
from companion.site.sphinx.nodes import picture

THUMBNAILS = "thumbnails"


class PictureDirective(SphinxDirective):
    """`{companion-picture} notebook/figure`: the picture of a chapter's figure on another page, with text below it."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the picture without a number, because the figure is numbered in its chapter."""
        image = picture_of(self, record_of(self, self.arguments[0]))
        return [nodes.container("", image, *self.parse_content_to_nodes(), classes=["companion-picture"])]


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
        # the title of the chapter, which follows in the link, is its text for readers who do not see the picture
        file = thumbnail_file(self.env.docname, chapter.card["figure"])
        image = picture(file=file, alt="", size=thumbnails.SIZE, within_link=True)
        title = nodes.inline("", "", *self.parse_inline(chapter.title)[0])
        link = nodes.paragraph("", "", page_link(self.env, chapter.name, "", image, title))
        return [nodes.container("", link, *self.parse_content_to_nodes(), classes=["companion-card"])]


class ChaptersDirective(SphinxDirective):
    """`{companion-chapters}`: all chapters by part, with their numbers and summaries, in the order of `_toc.yml`."""

    def run(self) -> list[nodes.Node]:
        """Return the parts, each with a list of its chapters."""
        numbers = chapter_numbers(self.env)
        place = nodes.container(classes=["companion-chapters"])
        for caption, names in parts(self.env):
            chapters, first = map(self._chapter, names), numbers.get(names[0])
            if first is None:
                listed = nodes.bullet_list("", *chapters)
            else:
                listed = nodes.enumerated_list("", *chapters, enumtype="arabic", prefix="", suffix=".", start=first)
            heading = [nodes.rubric("", caption)] if caption else []
            place += nodes.container("", *heading, listed, classes=["companion-chapters-part"])
        return [place]

    def _chapter(self, name: str) -> nodes.Node:
        chapter = Notebook.named(self.config.companion_project, name)
        self.env.note_dependency(str(chapter.path))
        link = page_link(self.env, name, "", *self.parse_inline(chapter.title)[0])
        entry = nodes.list_item("", nodes.paragraph("", "", link))
        if chapter.card:
            text, _ = self.parse_inline(chapter.card["summary"])
            entry += nodes.paragraph("", "", *text, classes=["companion-summary"])
        return entry


def thumbnail_file(docname: str, figure: str) -> str:
    """Return the address of the thumbnail of a figure from a page."""
    return f"{'../' * docname.count('/')}{THUMBNAILS}/{figure}.png"


def draw_thumbnails(app: Sphinx, out: Path) -> None:
    """Write the thumbnails of all main figures of chapters to the site."""
    project: Project = app.config.companion_project
    pages = BookDomain.of(app.env).pages.values()
    for figure in sorted({figure for page in pages for figure in page.thumbnails}):
        path = out / THUMBNAILS / f"{figure.partition('/')[2]}.png"
        write_bytes(path, thumbnails.thumbnail(project, app.config.companion_profile, figure))
