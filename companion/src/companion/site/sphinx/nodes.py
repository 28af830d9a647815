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

# The size of an SVG in points, in its first tag; a page reserves this space before the picture is loaded.
SIZE = re.compile(r'<svg\b[^>]*\swidth="([\d.]+)pt"[^>]*\sheight="([\d.]+)pt"')
PIXELS_PER_POINT = 96 / 72


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


def size_of(path: Path) -> tuple[float, float]:
    """Return the width and the height of the SVG of a figure in CSS pixels."""
    with path.open(encoding="utf-8") as file:
        found = SIZE.search(file.read(4000))
    assert found is not None, path
    return float(found[1]) * PIXELS_PER_POINT, float(found[2]) * PIXELS_PER_POINT


def theorem_boxes(doctree: nodes.document) -> list[nodes.Element]:
    """Return the theorem boxes of a page that have a label."""
    return [node for node in doctree.findall(nodes.Element) if isinstance(node, nodes.Admonition) and node.get("label")]


def separated(parts: Iterable[nodes.Node], by: str) -> list[nodes.Node]:
    """Return parts of a line with text between them."""
    return [node for part in parts for node in (nodes.Text(by), part)][1:]


def is_within(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    """Return whether a node is within one of these kinds."""
    outer = node.parent
    return outer is not None and (isinstance(outer, kinds) or is_within(outer, kinds))


def add_nodes(app: Sphinx) -> None:
    """Register the nodes with their HTML."""
    app.add_node(details, html=(_open("details"), _close("details")))
    app.add_node(controls, html=(_visit_controls, _close("div")))
    app.add_node(summary, html=(_open("summary"), _close("summary")))
    app.add_node(stated, html=(_open("div"), _close("div")))
    app.add_node(signature, html=(_visit_signature, _depart_signature))
    app.add_node(picture, html=(_visit_picture, None))


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


def _visit_picture(writer: Any, node: nodes.Element) -> None:
    width, height = node["size"]
    order = {"fetchpriority": "high"} if node.get("at_top", False) else {"loading": "lazy"}
    # the theme dims pictures without `dark-light`
    about = {"src": node["file"], "alt": node["alt"], **order, "width": f"{width:.0f}", "height": f"{height:.0f}"}
    image = writer.emptytag(nodes.inline(), "img", "", CLASS="companion-drawing dark-light", **about)
    link = writer.starttag({}, "a", "", CLASS="companion-zoom", href=node["file"])
    writer.body.append(f"{image}\n" if node.get("within_link", False) else f"{link}{image}</a>\n")
    raise nodes.SkipNode
