"""Pictures of figures as the site offers them: one SVG for both themes, with a third of the bytes of the published two.

If the light and the dark SVG of a figure differ only in their styles, the site has the light one, with rules that give
it the styles of the dark one. The rules apply if the address of the picture ends with `#dark`. Otherwise the site has
both files.
"""

import re
import string
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from companion.figures.style import Theme

LIGHT, DARK = ".svg", ".dark.svg"
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
# A path as matplotlib writes it: absolute, with one command per segment.
ABSOLUTE = re.compile(r"(?:[MLQCz][-\d. ]*)+")
SEGMENT = re.compile(r"([MLQCz])([^MLQCz]*)")
TRANSLATION = re.compile(r"translate\((\S+) (\S+)\)")
# The transformation of a glyph, and the one after its coordinates are divided by `COARSER`. An error of half a unit is
# then 0.007 points in letters of 11 points; other lengths in pictures are rounded to 0.01 points.
GLYPH, COARSER, COARSER_GLYPH = "scale(0.015625)", 8, "scale(.125)"
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


# By element: its properties, with their values in the light and in the dark picture.
Styles = dict[Element, dict[str, tuple[str, str]]]


def addresses(folder: Path, figure: str, place: str) -> dict[Theme, str]:
    """Return the addresses of a picture by theme.

    Args:
      folder: the folder of the published files.
      figure: the name of the figure.
      place: the address of its files without their endings.
    """
    light, dark = (folder / f"{figure}{suffix}" for suffix in (LIGHT, DARK))
    if DARK in offered(light.read_bytes(), dark.read_bytes()):
        return {"light": f"{place}{LIGHT}", "dark": f"{place}{DARK}"}
    # both have a fragment: without one, Safari may keep that of the picture shown before
    return {"light": f"{place}{LIGHT}#light", "dark": f"{place}{LIGHT}#dark"}


@cache
def offered(light: bytes, dark: bytes) -> dict[str, bytes]:
    """Return the SVG files of a figure on the site by ending, made of its published ones.

    Coordinates of paths are relative, those of glyphs are rounded, and styles are classes. Groups without attributes
    and white space between elements are removed. Files that are not XML stay as they are.
    """
    try:
        one, other = ElementTree.fromstring(light), ElementTree.fromstring(dark)
    except ElementTree.ParseError:
        return {LIGHT: light, DARK: dark}
    if list(map(_content, one.iter())) == list(map(_content, other.iter())):
        styles = _styles(one, other)
        if _inherit(one, styles):
            return {LIGHT: _written(one, styles)}
    return {LIGHT: _written(one, _styles(one, one)), DARK: _written(other, _styles(other, other))}


def _content(element: Element) -> tuple[object, ...]:
    """Return what must be equal in both pictures: all of an element except the values in its style."""
    attributes = {name: value for name, value in element.attrib.items() if name != "style"}
    texts = [(text or "").strip() for text in (element.text, element.tail)]
    return len(element), element.tag, attributes, list(_style(element)), texts


def _style(element: Element) -> dict[str, str]:
    parts = (part.partition(":") for part in element.get("style", "").split(";") if part)
    return {name: value for name, _, value in parts}


def _styles(light: Element, dark: Element) -> Styles:
    pairs = zip(light.iter(), map(_style, dark.iter()), strict=True)
    return {
        element: {name: (value, other[name]) for name, value in _style(element).items()} for element, other in pairs
    }


def _inherit(picture: Element, styles: Styles) -> bool:
    """Remove from `styles` what elements that `use` copies inherit; return whether none still depends on the theme.

    Rules for `:root` do not reach the copies in every browser. A copy inherits the style with which it is placed.
    """
    parents = {child: parent for parent in picture.iter() for child in parent}
    named = {f"#{element.get('id')}": element for element in picture.iter() if "id" in element.attrib}
    inherited: set[tuple[Element, str]] = set()
    for use in picture.iter(f"{{{SVG}}}use"):
        target = named.get(use.get("href", ""))
        for element in target.iter() if target is not None else ():
            for name, (light, dark) in styles[element].items():
                place: Element | None = use
                while place is not None and name not in styles[place]:
                    place = parents.get(place)
                if light != dark and (place is None or styles[place][name] != (light, dark)):
                    return False
                if light != dark:
                    inherited.add((element, name))
    for element, name in inherited:
        del styles[element][name]
    return True


def _written(picture: Element, styles: Styles) -> bytes:
    """Return a picture with the given styles; those of the dark one apply if its address ends with `#dark`."""
    texts: dict[Element, tuple[str, str]] = {}
    for element, style in styles.items():
        plain = ";".join(f"{name}:{light}" for name, (light, _) in style.items())
        texts[element] = plain, ";".join(f"{name}:{dark}" for name, (light, dark) in style.items() if dark != light)
    counts = Counter(texts.values())
    shared = [text for text, count in counts.items() if text[0] and (text[1] or count > 1)]
    names = [*string.ascii_letters, *(f"c{number}" for number in range(len(shared)))]
    classes = dict(zip(shared, names, strict=False))
    for element, text in texts.items():
        element.attrib.pop("style", None)
        if text in classes:
            element.set("class", classes[text])
        elif text[0]:
            element.set("style", text[0])
    rules = [f".{name}{{{plain}}}" for (plain, _), name in classes.items()]
    rules += [f":root:target .{name}{{{dark}}}" for (_, dark), name in classes.items() if dark]
    sheet = picture.find(f".//{{{SVG}}}style")  # which matplotlib writes
    if sheet is None:
        sheet = Element(f"{{{SVG}}}style")
        picture.insert(0, sheet)
    sheet.text = "".join([sheet.text or "", *rules])
    picture.set("id", "dark")
    _shorten(picture)
    return ElementTree.tostring(picture, encoding="unicode").replace(" />", "/>").encode()


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
