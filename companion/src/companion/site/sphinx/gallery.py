"""The directive `{companion-gallery}`: every figure of the book with its message, by part and chapter, and a filter."""

# Sphinx types its events incompletely.
# pyright: reportUnknownMemberType=false

import html

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from companion.figures.record import FigureRecord, headline
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.site.sphinx.chapter_numbers import parts
from companion.site.sphinx.downloads import picture_of, record_of
from companion.site.sphinx.inline_text import figure_anchor, page_link, without_html

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
            section += [nodes.title("", caption or "Figures"), *map(self._chapter, chapters)]
            sections.append(section)
        return [nodes.raw("", FILTER.format(topics=topics), format="html"), *sections]

    def _chapter(self, chapter: Notebook) -> nodes.Node:
        self.env.note_dependency(str(chapter.path))
        link = page_link(self.env, chapter.name, "", *self.parse_inline(chapter.title)[0])
        heading = nodes.paragraph("", "", link, classes=["companion-gallery-title"])
        cards = [self._card(record_of(self, f"{chapter.name}/{figure}")) for figure in chapter.figures]
        group = nodes.container("", *cards, classes=["companion-gallery-cards"])
        return nodes.container("", heading, group, classes=["companion-gallery-chapter", f"chapter-{chapter.name}"])

    def _card(self, record: FigureRecord) -> nodes.Node:
        image = picture_of(self, record, within_link=True)
        text, _ = self.parse_inline(without_html(headline(record.caption)))
        message = nodes.inline("", "", *text, classes=["companion-message"])
        link = page_link(self.env, record.notebook, figure_anchor(record.figure), image, message)
        return nodes.container("", nodes.paragraph("", "", link), classes=["companion-gallery-card"])
