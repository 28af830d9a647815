"""The directive `{companion-gallery}`: every figure of the book with its message, by part and chapter, and a filter."""

# Sphinx types its events incompletely.
# pyright: reportUnknownMemberType=false

import html
from collections.abc import Iterator

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.site.sphinx.cards import record_of
from companion.site.sphinx.chapter_numbers import parts
from companion.site.sphinx.downloads import picture_of
from companion.site.sphinx.inline_text import figure_anchor, without_html

GALLERY = "companion-gallery"
# The form is hidden (`pst-js-only`) if the browser runs no scripts.
FILTER = """
<form class="companion-filter companion-gallery-filter pst-js-only" aria-label="Filter the figures" role="search">
<label class="companion-words">Words <input type="search" name="words" autocomplete="off"></label>
<label>Topic <select name="topic"><option value="">all</option>{topics}</select></label>
<output aria-live="polite"></output>
</form>
"""


class GalleryDirective(SphinxDirective):
    """`{companion-gallery}`: a section per part, with the figures of its chapters as cards that link to them."""

    def run(self) -> list[nodes.Node]:
        """Return the form, then the sections. A damaged figure is an error, which fails a strict build."""
        project: Project = self.config.companion_project
        groups, topics = parts(self.env), ""
        sections: list[nodes.Node] = []
        for number, (caption, names) in enumerate(groups, 1):
            part = f"part-{number}"
            chapters = [Notebook.named(project, name) for name in names]
            options = "".join(f'<option value="{one.name}">{html.escape(one.title)}</option>' for one in chapters)
            label = html.escape(caption or "Figures")
            topics += f'<optgroup label="{label}"><option value="{part}">{label}: all</option>{options}</optgroup>'
            section = nodes.section(ids=[f"gallery-{part}"], names=[caption], classes=[GALLERY, part])
            section += nodes.title("", caption or "Figures")
            for chapter in chapters:
                section += self._chapter(project, chapter)
            sections.append(section)
        return [nodes.raw("", FILTER.format(topics=topics), format="html"), *sections]

    def _chapter(self, project: Project, chapter: Notebook) -> nodes.Node:
        self.env.note_dependency(str(chapter.path))
        group = nodes.container(classes=["companion-gallery-chapter", f"chapter-{chapter.name}"])
        page = self.env.app.builder.get_relative_uri(self.env.docname, f"{project.book.name}/{chapter.name}")
        title, messages = self.parse_inline(chapter.title)
        heading = nodes.paragraph(classes=["companion-gallery-title"])
        heading += nodes.reference("", "", *title, refuri=page, internal=True)
        cards = nodes.container(classes=["companion-gallery-cards"])
        cards += list(self._cards(chapter, page))
        group += [heading, *messages, cards]
        return group

    def _cards(self, chapter: Notebook, page: str) -> Iterator[nodes.Node]:
        for figure in chapter.figures:
            target = f"{chapter.name}/{figure}"
            folder, record = record_of(self, target)
            link = nodes.reference("", "", refuri=f"{page}#{figure_anchor(figure)}", internal=True)
            link += picture_of(self.env.docname, folder, record, within_link=True)
            message, messages = self.parse_inline(" ".join(without_html(record.caption).split("\n\n")[0].split()))
            link += nodes.inline("", "", *message, classes=["companion-message"])
            card = nodes.container(classes=["companion-gallery-card"])
            card += [nodes.paragraph("", "", link), *messages]
            yield card
