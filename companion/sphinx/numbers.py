"""Links to figures by their numbers. Sphinx's own `{numref}` reads the whole page of the figure again for each."""

from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole
from sphinx.util.nodes import make_refnode

from companion.sphinx.text import figure_anchor

# What such a link is called until all pages are read.
FIGURE = "companion-figure"


def figure_link(env: Any, figure: str, text: str = "Fig. %s") -> nodes.Node:
    """A link to a figure of the book, `%s` in its text for the number."""
    about = {"refdomain": "", "reftype": FIGURE, "reftarget": figure_anchor(figure), "refwarn": True}
    return pending_xref("", nodes.inline("", text), refdoc=env.docname, **about)


class FigureRole(SphinxRole):
    """`` {companion-number}`figure` ``: the figure's number, which leads there."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """A link that is resolved when all pages are read."""
        return [figure_link(self.env, self.text)], []


def find_figure(app: Sphinx, env: Any, node: Any, contnode: nodes.Element) -> nodes.Element | None:
    """Where the figure stands, and its number; None for what is no figure, of which Sphinx warns."""
    if node["reftype"] != FIGURE:
        return None
    page, anchor = env.get_domain("std").anonlabels.get(node["reftarget"], ("", ""))
    number = env.toc_fignumbers.get(page, {}).get("figure", {}).get(anchor)
    if number is None:
        return None
    text = contnode.astext() % ".".join(map(str, number))
    return make_refnode(app.builder, node["refdoc"], page, anchor, nodes.inline("", text, classes=["std-numref"]))
