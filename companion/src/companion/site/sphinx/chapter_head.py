"""The head of a chapter: a line with numbers, downloads and citation; its main figure; and its findings.

The main figure is that of the chapter's card. A list before the first figure, in which every item links to a figure of
the page, is the list of findings: each item shows the first of its figures.
"""

# docutils has no complete types.
# pyright: reportUnknownMemberType=false

from collections.abc import Collection, Iterator

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

from companion.figures import thumbnails
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.site.sphinx.cards import thumbnail_file
from companion.site.sphinx.chapter_numbers import chapter_numbers, chapter_on
from companion.site.sphinx.citations import PDF, citation
from companion.site.sphinx.claim_index import all_claims
from companion.site.sphinx.domain import BookDomain
from companion.site.sphinx.downloads import archive_of, place_of
from companion.site.sphinx.figure_numbers import FIGURE
from companion.site.sphinx.inline_text import figure_anchor
from companion.site.sphinx.nodes import Part, line, picture

# The classes of the paragraph with the main figure, and of the container with what a chapter needs; neither is the
# summary of the page.
LEAD, NEEDS = "companion-lead-text", "companion-needs"


def add_head(app: Sphinx, doctree: nodes.document) -> None:
    """Add the line, the main figure and the pictures of the findings to the page of a notebook."""
    name = chapter_on(app.config, app.env.docname)
    title = next(iter(doctree.findall(nodes.title)), None)
    if not name or title is None:
        return
    project: Project = app.config.companion_project
    notebook = Notebook.named(project, name)
    main = notebook.card["figure"] if notebook.card else ""
    figures = _figures(doctree)
    containers = (node for node in title.parent.children if isinstance(node, nodes.container))
    last = next((node for node in containers if NEEDS in node["classes"]), title)
    place = title.parent.index(last) + 1
    title.parent[place:place] = _main_figure(app, figures, name, main)
    parts = _parts(app, notebook, title.astext())
    title.parent.insert(title.parent.index(title) + 1, line("About this chapter", parts, ["companion-head"]))
    _show_findings(app, doctree, figures, main)


def _parts(app: Sphinx, notebook: Notebook, title: str) -> Iterator[Part]:
    """Yield the parts of the line: numbers of figures and claims, downloads, and the citation."""
    figures = len(notebook.figures)
    claims = [claim for claim in all_claims(app) if claim.notebook == notebook.name]
    if figures:
        yield nodes.inline("", f"{figures} figure{'s' if figures != 1 else ''}")
    if claims:
        held = sum(claim.holds for claim in claims)
        number = f"{held}" if held == len(claims) else f"{held} of {len(claims)}"
        yield nodes.inline("", f"{number} claim{'s hold' if len(claims) != 1 else ' holds'}")
    yield _link(app, "notebook", f"{notebook.name}.ipynb")
    if figures:
        yield _link(app, "data", archive_of(notebook.name))
    yield nodes.raw("", PDF, format="html")
    chapter = chapter_numbers(app.env).get(notebook.name)
    kind, target = f"Chapter {chapter}" if chapter else "Chapter", f"{app.env.docname}.html"
    yield "cite", "cite this chapter", [citation(app.config.companion_project, notebook.name, title, kind, target)]


def _main_figure(app: Sphinx, figures: dict[str, nodes.figure], name: str, figure: str) -> list[nodes.Node]:
    """Return the thumbnail and the headline of the figure on the chapter's card, which link to the figure."""
    anchor = figure_anchor(figure)
    if (shown := figures.get(anchor)) is None:
        return []
    BookDomain.of(app.env).current.thumbnails.add(f"{name}/{figure}")
    file, alt = thumbnail_file(app.env.docname, figure), next(shown.findall(picture))["alt"]
    image = picture(file=file, alt=alt, size=thumbnails.SIZE, within_link=True, at_top=True)
    text = nodes.inline("", "", *[part.deepcopy() for part in next(shown.findall(nodes.caption)).children])
    link = nodes.reference("", "", image, text, refuri=f"#{anchor}", internal=True)
    return [nodes.container("", nodes.paragraph("", "", link, classes=[LEAD]), classes=["companion-lead"])]


def _show_findings(app: Sphinx, doctree: nodes.document, figures: dict[str, nodes.figure], main: str) -> None:
    """Add to each finding the picture of its first figure that no finding before it shows.

    The figure of the chapter's card is shown by its thumbnail, which the page has loaded for the top.
    """
    if (findings := _findings(doctree, figures)) is None:
        return
    findings["classes"].append("companion-findings")
    left = dict(figures)
    for item in findings.findall(nodes.list_item):
        anchor = next((anchor for anchor in _linked(item) if anchor in left), None)
        if anchor is None:
            continue
        small = next(left.pop(anchor).findall(picture)).deepcopy()
        small["within_link"] = True
        if anchor == figure_anchor(main):
            small["file"], small["size"] = thumbnail_file(app.env.docname, main), thumbnails.SIZE
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
