"""Nodes that docutils lacks: folds, theorem boxes with a number of their paper, pictures in two themes, signatures.

All work in a browser without scripts; `companion.js` adds convenience.
"""

# Sphinx types `add_node` incompletely.
# pyright: reportUnknownMemberType=false

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

# The first tag of an SVG, and its size in it; a page reserves this space before the picture is loaded.
FIRST_TAG = re.compile(r"<svg\b[^>]*>")
LENGTH = r'\s%s="([\d.]+)(pt|px|)"'
VIEW_BOX = re.compile(r'\sviewBox="\S+ \S+ (\S+) (\S+)"')
PIXELS = {"pt": 96 / 72, "px": 1.0, "": 1.0}


class details(nodes.General, nodes.Element):
    """A fold, which opens on a click; its first child is a `summary`. Of the folds with one `group`, one is open."""


class summary(nodes.General, nodes.TextElement):
    """The visible line of a closed fold."""


class stated(nodes.Admonition, nodes.Element):
    """A theorem box that is numbered as in its paper, not as in this book."""


class picture(nodes.General, nodes.Element):
    """A picture, whose address is `file`; in the dark theme, the browser inverts its lightness.

    A click opens the file, or, with scripts, enlarges the picture to the size of the screen. With `within_link`, the
    picture is part of a link to another place. With `at_top`, the browser fetches it before it lays out the page.
    """


class signature(addnodes.desc_signature):
    """The signature of a name of a library, with its line breaks and indentation; `permalink` adds a link to it."""


class controls(nodes.General, nodes.Element):
    """One grey line of words, links and folds, whose content opens below the line; `label` names it for readers."""


# A part of a line: a word or a link, or a fold as its class, its word and its content.
Part = nodes.Node | tuple[str, str, list[nodes.Node]]


def line(label: str, parts: Iterable[Part], classes: Sequence[str] = (), group: str = "") -> nodes.Element:
    """Return a line of `parts`. Of its folds, one is open at a time if `group` is a name of no other line."""
    row = controls(classes=["companion-line", *classes], label=label)
    _fill(row, parts, group)
    return row


def add_to_line(box: nodes.Element, parts: Iterable[Part]) -> None:
    """Add parts to the line at the end of a theorem box, which is made if there is none."""
    if not isinstance(box[-1], controls):
        box += line("About this statement", [], ["companion-badges"])
    _fill(cast("controls", box[-1]), parts, f"line-{box['label']}")


def _fill(row: nodes.Element, parts: Iterable[Part], group: str) -> None:
    for part in parts:
        if isinstance(part, nodes.Node):
            row += part
        else:
            kind, word, content = part
            row += details("", summary("", word), *content, classes=[f"companion-{kind}"], group=group)


def size_of(path: Path) -> tuple[float, float] | None:
    """Return the width and the height of an SVG in CSS pixels, or None if its first tag has no size."""
    with path.open(encoding="utf-8") as file:
        tag = FIRST_TAG.search(file.read(4000))
    if tag is None:
        return None
    width, height = (re.search(LENGTH % name, tag[0]) for name in ("width", "height"))
    if width and height:
        return float(width[1]) * PIXELS[width[2]], float(height[1]) * PIXELS[height[2]]
    box = VIEW_BOX.search(tag[0])
    return (float(box[1]), float(box[2])) if box else None


def add_nodes(app: Sphinx) -> None:
    """Register the nodes with their HTML."""
    app.add_node(details, html=(_open("details"), _close("details")))
    app.add_node(controls, html=(_visit_controls, _close("div")))
    app.add_node(summary, html=(_open("summary"), _close("summary")))
    app.add_node(stated, html=(_open("div"), _close("div")))
    app.add_node(signature, html=(_visit_signature, _depart_signature))
    app.add_node(picture, html=(_visit_picture, _leave))


def _open(tag: str) -> Any:
    def visit(writer: Any, node: nodes.Element) -> None:
        group = {"name": node["group"]} if node.get("group") else {}
        writer.body.append(writer.starttag(node, tag, "\n" if tag == "details" else "", **group))

    return visit


def _close(tag: str) -> Any:
    def depart(writer: Any, node: nodes.Element) -> None:
        writer.body.append(f"</{tag}>\n")

    return depart


def _visit_controls(writer: Any, node: nodes.Element) -> None:
    writer.body.append(writer.starttag(node, "div", "\n", **{"role": "group", "aria-label": node["label"]}))


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
    order = {"fetchpriority": "high"} if node.get("at_top", False) else {"loading": "lazy"}
    # the theme dims pictures without `dark-light`
    about = {"src": node["file"], "alt": node["alt"], **order, **size}
    image = writer.emptytag(nodes.inline(), "img", "", CLASS="companion-drawing dark-light", **about)
    link = writer.starttag({}, "a", "", CLASS="companion-zoom", href=node["file"])
    writer.body.append(f"{image}\n" if node.get("within_link", False) else f"{link}{image}</a>\n")
