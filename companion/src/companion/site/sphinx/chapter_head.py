"""The head of a chapter: a line with numbers, downloads and citation; its main figure; and its findings.

The main figure is that of the chapter's card. A list before the first figure, in which every item links to a figure of
the page, is the list of findings: each item shows the first of its figures.
"""

# docutils has no complete types.
# pyright: reportUnknownMemberType=false

from collections.abc import Collection

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

from companion.figures import thumbnails
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.site.sphinx.cards import thumbnail_file
from companion.site.sphinx.chapter_numbers import chapter_numbers
from companion.site.sphinx.citations import PDF, citation
from companion.site.sphinx.claim_index import all_claims
from companion.site.sphinx.domain import BookDomain
from companion.site.sphinx.downloads import archive_of, place_of
from companion.site.sphinx.figure_numbers import FIGURE
from companion.site.sphinx.inline_text import figure_anchor
from companion.site.sphinx.nodes import line, picture

# The classes of the paragraph with the main figure, and of the container with what a chapter needs; neither is the
# summary of the page.
LEAD, NEEDS = "companion-lead-text", "companion-needs"


def add_head(app: Sphinx, doctree: nodes.document) -> None:
    """Add the line to the page of a notebook."""
    project: Project = app.config.companion_project
    folder, _, name = app.env.docname.rpartition("/")
    title = next(iter(doctree.findall(nodes.title)), None)
    if folder != project.book.name or name not in project.notebooks() or title is None:
        return
    figures = len(Notebook.named(project, name).figures)
    claims = [claim for claim in all_claims(app) if claim.notebook == name]
    held = sum(claim.holds for claim in claims)
    number = f"{held}" if held == len(claims) else f"{held} of {len(claims)}"
    verdict = f"{number} claim{'s hold' if len(claims) != 1 else ' holds'}"
    chapter = chapter_numbers(app.env).get(name)
    kind = f"Chapter {chapter}" if chapter else "Chapter"
    parts = [
        nodes.inline("", f"{figures} figure{'s' if figures != 1 else ''}") if figures else None,
        nodes.inline("", verdict) if claims else None,
        _link(app, "notebook", f"{name}.ipynb"),
        _link(app, "data", archive_of(name)) if figures else None,
        nodes.raw("", PDF, format="html"),
        ("cite", "cite this chapter", [citation(project, name, title.astext(), kind, f"{app.env.docname}.html")]),
    ]
    containers = (node for node in title.parent.children if isinstance(node, nodes.container))
    last = next((node for node in containers if NEEDS in node["classes"]), title)
    place = title.parent.index(last) + 1
    title.parent[place:place] = _main_figure(app, doctree, name)
    head = line("About this chapter", filter(None, parts), ["companion-head"])
    title.parent.insert(title.parent.index(title) + 1, head)
    _show_findings(app, doctree, name)


def _main_figure(app: Sphinx, doctree: nodes.document, name: str) -> list[nodes.Node]:
    """Return the thumbnail and the headline of the figure on the chapter's card, which link to the figure."""
    figure = app.config.companion_cards.get(name, "")
    anchor = figure_anchor(figure)
    if (shown := _figures(doctree).get(anchor)) is None:
        return []
    BookDomain.of(app.env).current.thumbnails.add(f"{name}/{figure}")
    link = nodes.reference("", "", refuri=f"#{anchor}", internal=True)
    alt = next(shown.findall(picture))["alt"]
    file = thumbnail_file(app.env.docname, figure)
    link += picture(file=file, alt=alt, size=thumbnails.SIZE, within_link=True, at_top=True)
    link += nodes.inline("", "", *[part.deepcopy() for part in next(shown.findall(nodes.caption)).children])
    return [nodes.container("", nodes.paragraph("", "", link, classes=[LEAD]), classes=["companion-lead"])]


def _show_findings(app: Sphinx, doctree: nodes.document, name: str) -> None:
    """Add to each finding the picture of its first figure that no finding before it shows.

    The figure of the chapter's card is shown by its thumbnail, which the page has loaded for the top.
    """
    figures = _figures(doctree)
    findings = _findings(doctree, figures)
    if findings is None:
        return
    findings["classes"].append("companion-findings")
    card = app.config.companion_cards.get(name, "")
    for item in findings.findall(nodes.list_item):
        anchor = next((anchor for anchor in _linked(item) if anchor in figures), None)
        if anchor is None:
            continue
        shown = next(figures.pop(anchor).findall(picture))
        file, size = shown["file"], shown["size"]
        if anchor == figure_anchor(card):
            file, size = thumbnail_file(app.env.docname, card), thumbnails.SIZE
        small = picture(file=file, alt=shown["alt"], size=size, within_link=True)
        link = nodes.reference("", "", small, refuri=f"#{anchor}", internal=True)
        item.insert(0, nodes.paragraph("", "", link, classes=["companion-finding"]))


def _findings(doctree: nodes.document, figures: Collection[str]) -> nodes.bullet_list | None:
    for node in doctree.findall(nodes.Element):
        if isinstance(node, nodes.figure):
            return None
        if isinstance(node, nodes.bullet_list) and all(set(_linked(item)) & set(figures) for item in node.children):
            return node
    return None


def _figures(doctree: nodes.document) -> dict[str, nodes.figure]:
    """Return the figures of a page by their anchors."""
    figures = [figure for figure in doctree.findall(nodes.figure) if "companion-figure" in figure["classes"]]
    return {figure["ids"][0]: figure for figure in figures}


def _linked(node: nodes.Node) -> list[str]:
    """Return the anchors of the figures to which a part of a page links."""
    return [link["reftarget"] for link in node.findall(pending_xref) if link["reftype"] == FIGURE]


def _link(app: Sphinx, word: str, file: str) -> nodes.Node:
    link = nodes.reference("", word, refuri=place_of(app.env.docname, file), internal=True, classes=["download"])
    return nodes.inline("", "", link)
