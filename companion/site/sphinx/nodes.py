"""Parts of a page for which docutils has no nodes: what folds, and a picture in two themes.

Each works in a browser without scripts; `companion.js` only adds to it.
"""

# Sphinx types `add_node` incompletely.
# pyright: reportUnknownMemberType=false

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

# An SVG says its size, in points, in its first tag; a page leaves that much room before the picture is there.
SIZE = re.compile(
    r'<svg[^>]*?\bheight="([\d.]+)pt"[^>]*?\bwidth="([\d.]+)pt"|<svg[^>]*?\bviewBox="\S+ \S+ (\S+) (\S+)"'
)


class details(nodes.General, nodes.Element):
    """What opens on a click; its first child is a `summary`."""


class summary(nodes.General, nodes.TextElement):
    """What is seen of it before."""


class stated(nodes.Admonition, nodes.Element):
    """A theorem box that has the number of the paper it is from, and none of this book."""


class picture(nodes.General, nodes.Element):
    """A picture in a light and a dark version, `light` and `dark`, of which the browser fetches the one it shows.

    A click opens that file, or, with scripts, the picture as large as the screen is. `within_link`: it is part of a
    link to somewhere else.
    """


class signature(addnodes.desc_signature):
    """How a name of a library is used: written as it is, blanks and all; with `permalink`, a link to itself."""


def size_of(path: Path) -> tuple[float, float] | None:
    """Width and height of an SVG, in its own units."""
    with path.open(encoding="utf-8") as file:
        found = SIZE.search(file.read(4000))
    if found is None:
        return None
    return (float(found[2]), float(found[1])) if found[1] else (float(found[3]), float(found[4]))


def add_nodes(app: Sphinx) -> None:
    """Tell Sphinx how they are written; where there are no pages to fold, what folds is shown."""
    app.add_node(details, html=(_open("details"), _close("details")))
    app.add_node(summary, html=(_open("summary"), _close("summary")))
    app.add_node(stated, html=(_open("div"), _close("div")))
    app.add_node(signature, html=(_visit_signature, _depart_signature))
    app.add_node(picture, html=(_visit_picture, _leave))


def _open(tag: str) -> Any:
    def visit(writer: Any, node: nodes.Element) -> None:
        writer.body.append(writer.starttag(node, tag, "\n" if tag == "details" else ""))

    return visit


def _close(tag: str) -> Any:
    def depart(writer: Any, node: nodes.Element) -> None:
        writer.body.append(f"</{tag}>\n")

    return depart


def _visit_signature(writer: Any, node: nodes.Element) -> None:
    writer.body.append(writer.starttag(node, "dt", ""))


def _depart_signature(writer: Any, node: nodes.Element) -> None:
    if node["permalink"]:
        writer.add_permalink_ref(node, "Link to this name")
    writer.body.append("</dt>\n")


def _leave(writer: Any, node: nodes.Element) -> None:
    pass


def _visit_picture(writer: Any, node: nodes.Element) -> None:
    size = {"width": f"{node['size'][0]:.0f}", "height": f"{node['size'][1]:.0f}"} if node["size"] else {}
    within_link = node.get("within_link", False)
    # the theme hides a caption that is beside a picture of the other theme, so both have a box of their own
    writer.body.append("" if within_link else '<div class="companion-pictures">\n')
    for theme in ("light", "dark"):
        # lazy, so that what the other theme hides is never asked for; the theme dims what is not called `dark-light`
        about = {"src": node[theme], "alt": node["alt"], "loading": "lazy", **size}
        if within_link:
            image = writer.emptytag(nodes.inline(), "img", "", CLASS=f"dark-light only-{theme}", **about)
            writer.body.append(f"{image}\n")
            continue
        link = writer.starttag({}, "a", "", CLASS=f"companion-zoom only-{theme}", href=node[theme])
        image = writer.emptytag(nodes.inline(), "img", "", CLASS="dark-light", **about)
        writer.body.append(f"{link}{image}</a>\n")
    writer.body.append("" if within_link else "</div>\n")
