"""Write an SVG of matplotlib so that every program shows it, with fewer bytes.

The picture has no style sheet: properties are attributes, which programs read alike. Links are `xlink:href`, because
Inkscape 1.2 and Safari 12 know no other. Ids begin with letters and digits of the figure's own, so that two pictures
can be in one page.
"""

import hashlib
import re
from collections.abc import Iterator
from itertools import groupby
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
HREF = f"{{{XLINK}}}href"
# Attributes that contain lengths in points, and numbers with too many decimals.
LENGTHS, DIGITS = ("d", "points", "x", "y", "width", "height", "transform"), re.compile(r"-?\d+\.\d{3,}")
# What an attribute refers to: the id after `#` in a link, and within `url(#…)` in others.
LINKED, DEFINED = re.compile(r"(?<=^#).+"), re.compile(r"(?<=^url\(#)[^)]+(?=\)$)")
SEGMENT = re.compile(r"([MLQCz])([^MLQCz]*)")
TRANSLATION = re.compile(r"translate\((\S+) (\S+)\)")
# The transformation of a glyph, and the one after its coordinates are divided by `COARSER`. An error of half a unit is
# then 0.007 points in letters of 11 points; their places are rounded to 0.01 points, as other lengths are.
GLYPH, COARSER, COARSER_GLYPH = "scale(0.015625)", 8, "scale(0.125)"
# Where a copy of a mark is; its other attributes are its look.
PLACE = (HREF, "x", "y", "transform")
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


def plain(picture: bytes, figure: str) -> bytes:
    """Return an SVG that looks the same: without a style sheet, with unique ids, and with few digits.

    Metadata, comments, white space and groups without attributes are removed.

    Args:
      picture: an SVG as matplotlib writes it, with text as paths.
      figure: a name that no other figure has, for the ids.
    """
    root = ElementTree.fromstring(picture)
    # matplotlib's style sheet; the other property in it has its initial value
    root.set("stroke-linejoin", "round")
    for element in root.iter():
        for declaration in filter(None, element.attrib.pop("style", "").split(";")):
            name, _, value = declaration.partition(":")
            element.set(name.strip(), value.strip())
        _shorten(element)
    _rename(root, _prefix(figure))
    _tidy(root)
    text = ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()


def _prefix(figure: str) -> str:
    """Return five letters that depend on the name: among 1,000 figures, two have the same in 1 of 24 books."""
    number = int.from_bytes(hashlib.sha256(figure.encode()).digest())
    return "".join(chr(ord("a") + number // 26**place % 26) for place in range(5))


def _shorten(element: Element) -> None:
    if element.get("transform") == GLYPH:
        element.attrib |= {"d": _relative(element.get("d", "")), "transform": COARSER_GLYPH}
    for name in set(element.keys()) & set(LENGTHS):
        if (name, element.get(name)) != ("transform", COARSER_GLYPH):
            element.set(name, DIGITS.sub(_rounded, element.get(name, "")))
    if "d" in element.attrib:
        element.set("d", re.sub(r"\s*([A-Za-z])\s*", r"\1", element.get("d", "")).strip())
    if element.get(HREF, "").startswith("data:"):
        element.set(HREF, "".join(element.get(HREF, "").split()))
    if element.tag == f"{{{SVG}}}use" and (moved := TRANSLATION.fullmatch(element.get("transform", ""))):
        del element.attrib["transform"]
        places = (f"{float(length):.1f}".removesuffix(".0") for length in moved.groups())
        element.attrib |= {name: place for name, place in zip("xy", places, strict=True) if place not in ("0", "-0")}


def _relative(outline: str) -> str:
    """Return the outline of a glyph in units of `COARSER`, relative to the point before, with smooth curves as `t`."""
    text, last, point, start = "", "", [0, 0], [0, 0]
    smooth: list[int] = []  # where the next control point makes a smooth curve
    for command, numbers in SEGMENT.findall(outline):
        points = [round(float(number) / COARSER) for number in numbers.split()]
        letter, moves = command.lower(), [number - point[place % 2] for place, number in enumerate(points)]
        if letter == "l" and 0 in moves:
            letter, moves = ("h", moves[:1]) if moves[1] == 0 else ("v", moves[1:])
        control = points[:2] if letter == "q" else []
        if control and smooth and max(abs(smooth[0] - control[0]), abs(smooth[1] - control[1])) <= 1:
            letter, moves, control = "t", moves[2:], smooth
        text += (" " if letter == last != "m" else letter) + " ".join(map(str, moves))
        point, last = points[-2:] or start, letter
        start = point if command == "M" else start
        smooth = control and [2 * point[0] - control[0], 2 * point[1] - control[1]]
    return re.sub(r" (?=-)", "", text)


def _rounded(number: re.Match[str]) -> str:
    return np.format_float_positional(round(float(number[0]), 2) + 0.0, trim="-")


def _rename(root: Element, prefix: str) -> None:
    """Number the ids in the order of their use, and remove those that nothing refers to."""
    uses = [
        (node, name, found)
        for node in root.iter()
        for name, value in node.attrib.items()
        if (found := (LINKED if name == HREF else DEFINED).search(value))
    ]
    names = {old: f"{prefix}{place}" for place, old in enumerate(dict.fromkeys(found[0] for _, _, found in uses))}
    for node, name, found in uses:
        node.set(name, f"{found.string[: found.start()]}{names[found[0]]}{found.string[found.end() :]}")
    for node in root.iter():
        if (own := node.attrib.pop("id", None)) in names:
            node.set("id", names[own])


def _tidy(element: Element) -> None:
    """Remove what has no effect, and write the look of a row of equal marks once."""
    for child in element:
        _tidy(child)
    kept = [part for child in element for part in _kept(child)]
    element[:] = [part for look, row in groupby(kept, _look) for part in _row(dict(look), list(row))]
    if not (element.text or "").strip():
        element.text = None
    for child in element:
        child.tail = "\n"


def _kept(child: Element) -> Iterator[Element]:
    tag = child.tag.removeprefix(f"{{{SVG}}}")
    if tag == "g" and not child.attrib:
        yield from child
    elif tag not in ("metadata", "style") and (tag != "defs" or len(child)):
        yield child


def _look(element: Element) -> tuple[tuple[str, str], ...]:
    """Return the look of a copy of a mark, and nothing for other elements."""
    if element.tag != f"{{{SVG}}}use":
        return ()
    return tuple((name, value) for name, value in element.attrib.items() if name not in PLACE)


def _row(look: dict[str, str], marks: list[Element]) -> list[Element]:
    if not look or len(marks) == 1:
        return marks
    group = Element(f"{{{SVG}}}g", look)
    for mark in marks:
        for name in look:
            del mark.attrib[name]
        mark.tail = "\n"
    group.extend(marks)
    return [group]
