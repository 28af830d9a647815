"""The numbers of figures, and links to figures by them.

In a book with numbered chapters, figures are numbered by chapter (Fig. 4.3), and boxes such as theorems by the book,
because a number such as "Theorem 4.3" is that of a paper.

Sphinx's `{numref}` reads the whole page of the figure again for each link. This module resolves `{numref}` of a figure
with the same result; Sphinx resolves the others.
"""

from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector
from sphinx.roles import XRefRole
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

from companion.site.sphinx.inline_text import ANCHOR, figure_anchor

# The type of such a link until it is resolved.
FIGURE = "companion-figure"
# The kind of figures among everything that Sphinx numbers.
FIGURES = "figure"


def figure_link(env: Any, figure: str, text: str = "Fig. %s") -> nodes.Node:
    """Return a link to a figure of the book; `%s` in its text becomes the number."""
    about = {"refdomain": "", "reftype": FIGURE, "reftarget": figure_anchor(figure), "refwarn": True}
    return pending_xref("", nodes.inline("", text), refdoc=env.docname, **about)


class FigureRole(SphinxRole):
    """`` {companion-number}`figure` ``: the number of a figure, as a link."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return a link that is resolved when all pages are read."""
        return [figure_link(self.env, self.text)], []


class NumberedRole(XRefRole):
    """`` {numref}`fig-NAME` `` or `` {numref}`words %s <fig-NAME>` ``: the number of a figure in plain MyST."""

    def create_xref_node(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return a link of this module if the target is a figure of the book, else Sphinx's."""
        if not self.target.startswith(ANCHOR):
            return super().create_xref_node()
        text = self.title if self.has_explicit_title else self.config.numfig_format["figure"]
        return [figure_link(self.env, self.target.removeprefix(ANCHOR), text.replace("{number}", "%s"))], []


def find_figure(app: Sphinx, env: Any, node: Any, contnode: nodes.Element) -> nodes.Element | None:
    """Resolve a link to a figure; return None if there is no such figure, of which Sphinx then warns."""
    if node["reftype"] != FIGURE:
        return None
    page, anchor = env.get_domain("std").anonlabels.get(node["reftarget"], ("", ""))
    number = env.toc_fignumbers.get(page, {}).get(FIGURES, {}).get(anchor)
    if number is None:
        return None
    text = contnode.astext() % ".".join(map(str, number))
    return make_refnode(app.builder, node["refdoc"], page, anchor, nodes.inline("", text, classes=["std-numref"]))


_number_alike = TocTreeCollector.assign_figure_numbers


def assign_numbers(self: TocTreeCollector, env: BuildEnvironment) -> list[str]:
    """Number the figures of each chapter and the boxes of the book; return the pages whose numbers changed.

    Sphinx has one rule for all kinds.
    """
    before = env.toc_fignumbers
    _number_alike(self, env)
    counts: dict[str, int] = {}
    for kinds in env.toc_fignumbers.values():
        for kind, numbers in kinds.items():
            for anchor in numbers if kind != FIGURES else ():
                counts[kind] = counts.get(kind, 0) + 1
                numbers[anchor] = (counts[kind],)
    return [page for page, kinds in env.toc_fignumbers.items() if kinds != before.get(page)]


def register_numbers() -> None:
    """Make Sphinx number figures and boxes by `assign_numbers`."""
    TocTreeCollector.assign_figure_numbers = assign_numbers
