"""The role and the directive of the front page: numbers of the book, and the maps of its chapters and papers.

A map is an SVG in the page, so that it has the colours of the theme and its chapters are links.
"""

# Sphinx types its events incompletely.
# pyright: reportUnknownMemberType=false

import html
import re
import textwrap
from collections.abc import Iterator

from docutils import nodes
from sphinx.util.docutils import SphinxDirective, SphinxRole

from companion.io.errors import did_you_mean
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.project.theorem_blocks import prose
from companion.site.sphinx.chapter_numbers import parts
from companion.site.sphinx.claim_index import ALL, all_claims, note_shown
from companion.site.sphinx.inline_text import page_address
from companion.site.sphinx.statement_index import PAGE, required_statements

# A link from the text of a chapter to another page, or to a figure or a box in it.
LINK = re.compile(r"\{doc\}`(?:[^`<]*<)?(\w+)>?`")
# The class of the map, by which a page loads its script.
MAP = "companion-map-place"
# Sizes of the map in pixels: its width, where the titles end and the arcs begin, the height of a line; where papers
# begin, and the height and the characters of a line of their titles.
WIDTH, TITLES, LINE = 740, 440, 22
PAPERS, PAPER_LINE, PAPER_WIDTH = 560, 17, 26


class CountRole(SphinxRole):
    """`` {companion-count}`figures` ``: the number of chapters, figures or claims that hold, counted in each build."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the number, or an error for another word."""
        project: Project = self.config.companion_project
        names = project.notebooks()
        for name in names:
            self.env.note_dependency(str(project.notebook(name)))
        counts = {
            "chapters": len(names),
            "figures": sum(len(Notebook.named(project, name).figures) for name in names),
            "claims": sum(claim.holds for claim in all_claims(self.env.app)),
        }
        note_shown(self.env, ALL)
        if self.text not in counts:
            error = self.inliner.reporter.error(f"Nothing counts {self.text!r}. {did_you_mean(self.text, counts)}")
            return [], [error]
        return [nodes.Text(f"{counts[self.text]:,}")], []


class MapDirective(SphinxDirective):
    """`{companion-map}`: the chapters of the book by part, and an arc for each link from one to an earlier one.

    With the argument `papers`, a line joins each chapter with the papers whose statements it contains.
    """

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the map as an SVG."""
        project: Project = self.config.companion_project
        groups = parts(self.env)
        chapters = [Notebook.named(project, name) for _, names in groups for name in names]
        for chapter in chapters:
            self.env.note_dependency(str(chapter.path))
        about = {one.name: (re.sub(r"[$*`]", "", one.title), page_address(self.env, one.name)) for one in chapters}
        lines, heights, height = _chapters(groups, about)
        if not self.arguments:
            drawn = [_arc(name, to, heights, height) for name, to in _links(chapters)]
            label = "Map of the chapters, with an arc from each chapter to the earlier chapters that it links to"
        elif self.arguments == ["papers"]:
            drawn = self._papers(heights, height)
            label = "Map of the papers, with a line from each chapter to the papers whose statements it contains"
        else:
            raise self.error(f"There is no map of {self.arguments[0]!r}. {did_you_mean(self.arguments[0], ['papers'])}")
        svg = (
            f'<div class="companion-map" tabindex="0" role="group" aria-label="{label}"><svg viewBox="0 0 {WIDTH} '
            f'{height:g}" width="{WIDTH}" height="{height:g}">{"".join([*drawn, *lines])}</svg></div>\n'
        )
        return [nodes.raw("", svg, format="html", classes=[MAP])]

    def _papers(self, heights: dict[str, float], height: float) -> list[str]:
        """Return the papers at the right, and a line for each chapter with statements of a paper."""
        statements = required_statements(self)
        note_shown(self.env, ALL)
        numbers = statements.numbers_by_page()
        papers = statements.index.papers
        drawn: list[str] = []
        for place, (paper, about) in enumerate(papers.items()):
            rows = [row for row in statements.index.statements if row.paper == paper]
            texts = [f"{len(rows)} statements", *textwrap.wrap(about.title, PAPER_WIDTH)]
            middle = height * (place + 0.5) / len(papers)
            top = middle - PAPER_LINE * len(texts) / 2
            spans = "".join(
                f'<tspan x="{PAPERS}" y="{top + PAPER_LINE * (line + 1):g}">{html.escape(text)}</tspan>'
                for line, text in enumerate(texts)
            )
            key = f'<text class="map-part" x="{PAPERS}" y="{top:g}">[{paper}]</text>'
            dot = f'<circle cx="{PAPERS - 12}" cy="{middle:g}" r="4"/>'
            uri = page_address(self.env, PAGE, rows[0].anchor)
            drawn.append(f'<a href="{uri}" data-chapter="{paper}">{key}<text>{spans}</text>{dot}</a>')
            for name, at in heights.items():
                if number := numbers[paper, name]:
                    path = f"M{TITLES},{at:g}C{TITLES + 60},{at:g} {PAPERS - 72},{middle:g} {PAPERS - 12},{middle:g}"
                    width = f"stroke-width:{1 + number / 3:.1f}px"
                    drawn.insert(0, f'<path class="map-link map-of-{name} map-of-{paper}" style="{width}" d="{path}"/>')
        return drawn


def _links(chapters: list[Notebook]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a chapter and an earlier chapter that its text links to, in the order of the book."""
    names = [chapter.name for chapter in chapters]
    for position, chapter in enumerate(chapters):
        targets = set(LINK.findall(prose(chapter.path)))
        yield from ((chapter.name, earlier) for earlier in names[:position] if earlier in targets)


def _chapters(
    groups: list[tuple[str, list[str]]], about: dict[str, tuple[str, str]]
) -> tuple[list[str], dict[str, float], float]:
    """Return the elements with the parts and the titles, the heights of the chapters, and the height of the map.

    Args:
      groups: the parts, each with the names of its chapters.
      about: by chapter, its title and its address.
    """
    lines: list[str] = []
    heights: dict[str, float] = {}
    height: float = LINE
    for caption, names in groups:
        lines.append(f'<text class="map-part" y="{height:g}">{html.escape(caption)}</text>')
        for name in names:
            height += LINE
            heights[name] = height - 4
            text, uri = about[name]
            title = f'<text x="12" y="{height:g}">{html.escape(text)}</text>'
            dot = f'<circle cx="{TITLES}" cy="{height - 4:g}" r="4"/>'
            lines.append(f'<a href="{uri}" data-chapter="{name}">{title}{dot}</a>')
        height += LINE * 1.4
    return lines, heights, height


def _arc(name: str, to: str, heights: dict[str, float], highest: float) -> str:
    """Return an arc between two chapters; longer arcs reach farther to the right, within the map."""
    start, end = heights[to], heights[name]
    across = (WIDTH - TITLES - 10) * ((end - start) / highest) ** 0.7
    path = f"M{TITLES},{start:g}A{across:.1f},{(end - start) / 2:g} 0 0 1 {TITLES},{end:g}"
    return f'<path class="map-link map-of-{name} map-of-{to}" data-later="{name}" d="{path}"/>'
