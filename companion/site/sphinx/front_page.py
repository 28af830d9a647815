"""The role and the directive of the front page: numbers of the book, and the map of its chapters.

The map is an SVG in the page, so that it has the colours of the theme and its chapters are links.
"""

# Sphinx types its events incompletely.
# pyright: reportUnknownMemberType=false

import html
import re

from docutils import nodes
from sphinx.util.docutils import SphinxDirective, SphinxRole

from companion.io.errors import did_you_mean
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.project.theorem_blocks import prose
from companion.site.sphinx.claim_index import ALL, all_claims, note_shown
from companion.site.sphinx.gallery import parts

# A link from the text of a chapter to another page, or to a figure or a box in it.
LINK = re.compile(r"\{doc\}`(?:[^`<]*<)?(\w+)>?`")
# The class of the map, by which a page loads its script.
MAP = "companion-map-place"
# Sizes of the map in pixels: its width, where the titles end and the arcs begin, the height of a line.
WIDTH, TITLES, LINE = 740, 440, 22


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
    """`{companion-map}`: the chapters of the book by part, and an arc for each link from one to an earlier one."""

    def run(self) -> list[nodes.Node]:
        """Return the map as an SVG."""
        project: Project = self.config.companion_project
        groups = parts(self.env.app)
        chapters = [Notebook.named(project, name) for _, names in groups for name in names]
        for chapter in chapters:
            self.env.note_dependency(str(chapter.path))
        links = links_of([chapter.name for chapter in chapters], {one.name: prose(one.path) for one in chapters})
        titles = {chapter.name: re.sub(r"[$*`]", "", chapter.title) for chapter in chapters}
        uris = {
            name: self.env.app.builder.get_relative_uri(self.env.docname, f"{project.book.name}/{name}")
            for name in titles
        }
        return [nodes.raw("", _svg(groups, titles, uris, links), format="html", classes=[MAP])]


def links_of(names: list[str], texts: dict[str, str]) -> list[tuple[str, str]]:
    """Return the pairs of a chapter and an earlier chapter that its text links to, in the order of the book."""
    found: list[tuple[str, str]] = []
    for position, name in enumerate(names):
        targets = set(LINK.findall(texts[name]))
        found += [(name, earlier) for earlier in names[:position] if earlier in targets]
    return found


def _svg(
    groups: list[tuple[str, list[str]]], titles: dict[str, str], uris: dict[str, str], links: list[tuple[str, str]]
) -> str:
    lines: list[str] = []
    heights: dict[str, float] = {}
    height = LINE
    for caption, names in groups:
        lines.append(f'<text class="map-part" y="{height:g}">{html.escape(caption)}</text>')
        for name in names:
            height += LINE
            heights[name] = height - 4
            title = f'<text x="12" y="{height:g}">{html.escape(titles[name])}</text>'
            dot = f'<circle cx="{TITLES}" cy="{height - 4:g}" r="4"/>'
            lines.append(f'<a href="{uris[name]}" data-chapter="{name}">{title}{dot}</a>')
        height += LINE * 1.4
    arcs = [
        f'<path class="map-link map-of-{name} map-of-{to}" d="{_arc(heights[to], heights[name], height)}"/>'
        for name, to in links
    ]
    label = "Map of the chapters, with an arc from each chapter to the earlier chapters that it links to"
    return (
        f'<div class="companion-map" tabindex="0" role="group" aria-label="{label}">'
        f'<svg viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" height="{height:g}">'
        f"{''.join([*arcs, *lines])}</svg></div>\n"
    )


def _arc(start: float, end: float, highest: float) -> str:
    """Return the path of an arc between two heights; longer arcs reach farther to the right, within the map."""
    across = (WIDTH - TITLES - 10) * ((end - start) / highest) ** 0.7
    return f"M{TITLES},{start:g}A{across:.1f},{(end - start) / 2:g} 0 0 1 {TITLES},{end:g}"
