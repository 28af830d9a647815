"""Pictures of figures as the site offers them: one SVG for both themes, with a third fewer bytes than a published one.

If the light and the dark SVG of a figure differ only in colours, the site has the light one, with rules that give it
the colours of the dark one. The rules apply if the address of the picture ends with `#dark`. Otherwise the site has
both files.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from companion.figures.style import Theme

LIGHT, DARK = ".svg", ".dark.svg"
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
COLOUR = re.compile(r"#[0-9a-f]{6}")
# A path as matplotlib writes it: absolute, with one command per segment.
ABSOLUTE = re.compile(r"(?:[MLQCz][-\d. ]*)+")
SEGMENT = re.compile(r"([MLQCz])([^MLQCz]*)")
TRANSLATION = re.compile(r"translate\((\S+) (\S+)\)")
# The transformation of a glyph, and the one after its coordinates are divided by `COARSER`. An error of half a unit is
# then 0.007 points in letters of 11 points; other lengths in pictures are rounded to 0.01 points.
GLYPH, COARSER, COARSER_GLYPH = "scale(0.015625)", 8, "scale(.125)"
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


def addresses(folder: Path, figure: str, place: str) -> dict[Theme, str]:
    """Return the addresses of a picture by theme.

    Args:
      folder: the folder of the published files.
      figure: the name of the figure.
      place: the address of its files without their endings.
    """
    light, dark = folder / f"{figure}{LIGHT}", folder / f"{figure}{DARK}"
    if colours(light.read_bytes(), dark.read_bytes()) is None:
        return {"light": f"{place}{LIGHT}", "dark": f"{place}{DARK}"}
    # both have a fragment: without one, Safari would keep that of the picture shown before
    return {"light": f"{place}{LIGHT}#light", "dark": f"{place}{LIGHT}#dark"}


def offered(light: bytes, dark: bytes) -> dict[str, bytes]:
    """Return the SVG files of a figure on the site by ending, made of its published SVGs."""
    replaced = colours(light, dark)
    if replaced is None:
        return {LIGHT: smaller(light), DARK: smaller(dark)}
    return {LIGHT: smaller(light, replaced)}


@cache
def colours(light: bytes, dark: bytes) -> dict[tuple[str, str], str] | None:
    """Return the colours of the dark picture by property and colour of the light one.

    The result is None if the pictures differ in anything else, or if a colour has several counterparts.
    """
    try:
        pair = ElementTree.fromstring(light), ElementTree.fromstring(dark)
    except ElementTree.ParseError:
        return None
    replaced: dict[tuple[str, str], str] = {}
    elements, counterparts = (list(tree.iter()) for tree in pair)
    if len(elements) != len(counterparts) or "id" in pair[0].attrib:
        return None
    for element, counterpart in zip(elements, counterparts, strict=True):
        style, other = _style(element), _style(counterpart)
        if _without_style(element) != _without_style(counterpart) or list(style) != list(other):
            return None
        for name, value in style.items():
            are_colours = COLOUR.fullmatch(value) and COLOUR.fullmatch(other[name])
            if value != other[name] and not are_colours:
                return None
            if replaced.setdefault((name, value), other[name]) != other[name]:
                return None
    changed = {key: colour for key, colour in replaced.items() if key[1] != colour}
    return changed if _inherit(pair[0], changed) else None


def _without_style(element: Element) -> tuple[object, ...]:
    attributes = {name: value for name, value in element.attrib.items() if name != "style"}
    return element.tag, attributes, (element.text or "").strip(), (element.tail or "").strip()


def _style(element: Element) -> dict[str, str]:
    """Return the properties in the attribute `style` of an element."""
    parts = (part.partition(":") for part in element.get("style", "").split(";") if part)
    return {name: value for name, _, value in parts}


def _inherit(picture: Element, changed: dict[tuple[str, str], str]) -> bool:
    """Remove colours that depend on the theme from elements that `use` copies; return whether all could be removed.

    Rules for `:root` do not reach the copies in every browser. Where all copies are placed with the same colour, the
    elements inherit it.
    """
    parents = {child: parent for parent in picture.iter() for child in parent}
    named = {f"#{element.get('id')}": element for element in picture.iter() if "id" in element.attrib}
    uses = [(use, named[use.get("href", "")]) for use in picture.iter(f"{{{SVG}}}use") if use.get("href") in named]
    copied = [(use, element) for use, target in uses for element in target.iter() if "style" in element.attrib]
    for use, element in copied:
        for name, value in _style(element).items():
            if (name, value) in changed and value != _inherited(use, name, parents):
                return False
    for _, element in copied:
        kept = [f"{name}:{value}" for name, value in _style(element).items() if (name, value) not in changed]
        element.set("style", ";".join(kept))
    return True


def _inherited(element: Element, name: str, parents: dict[Element, Element]) -> str | None:
    """Return the value of a property in the style of an element or of its nearest ancestor with this property."""
    place: Element | None = element
    while place is not None and name not in _style(place):
        place = parents.get(place)
    return None if place is None else _style(place)[name]


def smaller(picture: bytes, dark_colours: dict[tuple[str, str], str] | None = None) -> bytes:
    """Return an SVG that looks the same with fewer bytes, and with `dark_colours` if its address ends with `#dark`.

    Coordinates of paths are relative, those of glyphs are rounded. Groups without attributes and white space between
    elements are removed. A file that is not XML is returned as it is.
    """
    try:
        root = ElementTree.fromstring(picture)
    except ElementTree.ParseError:
        return picture
    if dark_colours:
        _inherit(root, dark_colours)
        rules = "".join(
            f':root:target [style*="{name}:{value}"]{{{name}:{colour}!important}}'
            for (name, value), colour in dark_colours.items()
        )
        ElementTree.SubElement(root, f"{{{SVG}}}style").text = rules
        root.set("id", "dark")
    _shorten(root)
    return ElementTree.tostring(root, encoding="unicode").replace(" />", "/>").encode()


def _shorten(element: Element) -> None:
    if element.tag == f"{{{SVG}}}text":  # white space is part of a text
        return
    for child in element:
        _shorten(child)
    element[:] = list(_flat(element))
    if element.get("transform") == GLYPH:
        element.set("d", _relative(element.get("d", ""), COARSER, 1))
        element.set("transform", COARSER_GLYPH)
    elif "d" in element.attrib:
        element.set("d", _relative(element.get("d", ""), 0.01, 100))
    if element.tag == f"{{{SVG}}}use" and (moved := TRANSLATION.fullmatch(element.get("transform", ""))):
        del element.attrib["transform"]
        element.attrib |= {name: value for name, value in zip("xy", moved.groups(), strict=True) if value != "0"}
    if element.get("style") == "":
        del element.attrib["style"]
    for part in (element, *element):
        if not (part.text or "").strip():
            part.text = None
        part.tail = None


def _flat(element: Element) -> Iterator[Element]:
    """Yield the children of an element, and in place of a group without attributes its children."""
    for child in element:
        if child.tag == f"{{{SVG}}}g" and not child.attrib:
            yield from child
        else:
            yield child


def _relative(path: str, unit: float, divisor: int) -> str:
    """Return a path with relative coordinates, or unchanged if it is not as matplotlib writes it.

    Browsers add fractions with rounding errors. So a closed part of a path begins and ends with absolute coordinates;
    otherwise its last corner would have another shape. A line to the first point before `z` is left out.

    Args:
      path: the attribute `d`.
      unit: coordinates are rounded to multiples of it.
      divisor: coordinates are returned in units, divided by this.
    """
    if not ABSOLUTE.fullmatch(path):
        return path
    x, y = 0, 0  # the current point
    start: tuple[int, int] = (0, 0)  # the first point of this part of the path
    control: tuple[int, int] | None = None  # of the curve before
    last, text = "", ""
    for (command, numbers), (following, _) in pairwise([*SEGMENT.findall(path), ("", "")]):
        points: list[int] = [round(float(number) / unit) for number in numbers.split()]
        letter, kept = command.lower(), [number - (y if place % 2 else x) for place, number in enumerate(points)]
        closes = following == "z" and (*points[-2:],) == start
        reflected = control and (2 * x - control[0], 2 * y - control[1])
        control = None
        if letter == "l" and closes:
            continue
        if divisor > 1 and (letter == "m" or closes):
            letter, kept = command, points
        elif letter == "l" and 0 in kept:
            letter, kept = ("h", kept[:1]) if kept[1] == 0 else ("v", kept[1:])
        elif letter == "q":
            control = points[0], points[1]
            if reflected and max(abs(reflected[0] - points[0]), abs(reflected[1] - points[1])) <= 1:
                letter, kept, control = "t", kept[2:], reflected
        x, y = (points[-2], points[-1]) if points else start
        start = (x, y) if command == "M" else start
        shown = "" if letter == last != "m" or (last, letter) == ("m", "l") else letter
        text += f"{shown or ' '}{' '.join(_number(number, divisor) for number in kept)}"
        last = letter
    return re.sub(r" (?=-)", "", text)


def _number(units: int, divisor: int) -> str:
    text = str(units) if divisor == 1 else f"{units / divisor:.2f}".rstrip("0").rstrip(".")
    return re.sub(r"^(-?)0\.", r"\1.", text)
