"""The line below the title of a chapter: reading time, numbers of figures and claims, downloads, and how to cite it."""

# docutils has no complete types.
# pyright: reportUnknownMemberType=false

from docutils import nodes
from sphinx.application import Sphinx

from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.site.sphinx.citations import PDF, citation
from companion.site.sphinx.claim_index import all_claims
from companion.site.sphinx.downloads import archive_of, place_of
from companion.site.sphinx.nodes import controls, details, line

# Words per minute, and the words that take as long to read as a displayed formula or the picture of a figure.
SPEED, FORMULA, PICTURE = 220, 15, 60
COUNTED = {nodes.math: 1, nodes.math_block: FORMULA, nodes.figure: PICTURE}
UNREAD = (details, controls, nodes.literal_block, nodes.raw, nodes.math, nodes.math_block)


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
    parts = [
        nodes.inline("", f"{minutes(doctree)} min"),
        nodes.inline("", f"{figures} figure{'s' if figures != 1 else ''}") if figures else None,
        nodes.inline("", verdict) if claims else None,
        _link(app, "notebook", f"{name}.ipynb"),
        _link(app, "data", archive_of(name)) if figures else None,
        nodes.raw("", PDF, format="html"),
        ("cite", "cite", [citation(project, name, title.astext(), "Chapter", f"{app.env.docname}.html")]),
    ]
    head = line("About this chapter", filter(None, parts), ["companion-head"])
    title.parent.insert(title.parent.index(title) + 1, head)


def minutes(doctree: nodes.document) -> int:
    """Return how long the page takes to read, without code and other content of folds."""
    words = sum(len(text.split()) for text in doctree.findall(nodes.Text) if not _unread(text))
    words += sum(count for kind, count in COUNTED.items() for node in doctree.findall(kind) if not _unread(node))
    return max(1, round(words / SPEED))


def _unread(node: nodes.Node) -> bool:
    outer = node.parent
    while outer is not None and not isinstance(outer, UNREAD):
        outer = outer.parent
    return outer is not None


def _link(app: Sphinx, word: str, file: str) -> nodes.Node:
    link = nodes.reference("", word, refuri=place_of(app.env.docname, file), internal=True, classes=["download"])
    return nodes.inline("", "", link)
