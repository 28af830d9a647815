"""Compare two picture files that different machines may have drawn.

Drawings of one table on two machines differ in the last digit of a coordinate, in the points at which a curve is
thinned, and in the names of SVG elements. They contain the same elements and look the same.
"""

import base64
import io
import re
from collections.abc import Iterator
from itertools import zip_longest
from xml.etree import ElementTree

import matplotlib.image as mpl_image
import numpy as np

# Largest invisible shift of an element, in points of 1/72 inch: a tenth of the thinnest line.
LARGEST_SHIFT = 0.05
# Largest distance, in points, between two thinned versions of a curve: matplotlib drops corners that are less than a
# ninth of a pixel off.
THINNING = 0.25
# Largest invisible root mean square difference over pixels and channels, each from 0 to 1. Rounding, which moves a mark
# to the next pixel, causes less than 0.006.
LARGEST_PIXEL_DIFFERENCE = 0.01

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# References to clipping frames, whose names differ between machines.
REFERENCE = re.compile(r"url\(#[^)]*\)")
# Attributes that position an element.
POSITION = ("d", "x", "y", "width", "height", "viewBox", "transform")
INLINE = "data:image/png;base64,"


def visible_difference(actual: bytes, expected: bytes, suffix: str) -> str | None:
    """Return a sentence about the first visible difference of two pictures, or None.

    Args:
      actual: the content of the picture file that the sentence is about.
      expected: the content of the file to compare it with.
      suffix: the end of the file names, which gives the format: PNG or SVG.
    """
    if actual == expected:
        return None
    try:
        return _pixel_difference(actual, expected) if suffix.endswith("png") else _svg_difference(actual, expected)
    except (ElementTree.ParseError, SyntaxError, ValueError, OSError):
        return "it is not a picture"


def _pixel_difference(actual: bytes, expected: bytes) -> str | None:
    images = (mpl_image.imread(io.BytesIO(content), format="png") for content in (actual, expected))
    old, new = (np.asarray(image, float) for image in images)
    if old.ndim != new.ndim or np.abs(np.subtract(old.shape, new.shape)).max() > 1:
        return f"it has {old.shape[1]} × {old.shape[0]} pixels, not {new.shape[1]} × {new.shape[0]}"
    rows, columns = np.minimum(old.shape[:2], new.shape[:2])
    difference = float(np.sqrt(np.mean((old[:rows, :columns] - new[:rows, :columns]) ** 2)))
    return f"its pixels differ by {difference:.2g} on average" if difference > LARGEST_PIXEL_DIFFERENCE else None


def _svg_difference(actual: bytes, expected: bytes) -> str | None:
    drawings = (_elements(ElementTree.fromstring(content)) for content in (actual, expected))
    for old, new in zip_longest(*drawings):
        if old is None or new is None:
            return f"it has {'fewer' if old is None else 'more'} elements"
        (kind, position), (expected_kind, expected_position) = old, new
        if kind != expected_kind:
            return f"it has a {kind[0]} in place of another element"
        for attribute, value in position.items():
            if (fault := _shifted(attribute, value, expected_position[attribute])) is not None:
                return f"its {kind[0]} {fault}"
    return None


def _elements(element: ElementTree.Element) -> Iterator[tuple[tuple[object, ...], dict[str, str]]]:
    """Yield every visible element in order: its kind with its look, and the attributes that position it."""
    tag = str(element.tag).rpartition("}")[2]
    if tag == "metadata":  # the program that drew the picture, and the date
        return
    look = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    position = {name: look.pop(name) for name in (*POSITION, "href") if name in look and _is_position(name, look[name])}
    look.pop("id", None)
    if tag == "path":
        position.setdefault("d", "")
    yield (
        (tag, *((name, REFERENCE.sub("", value)) for name, value in sorted(look.items())), *sorted(position)),
        position,
    )
    for child in element:
        yield from _elements(child)


def _is_position(name: str, value: str) -> bool:
    """Return whether an attribute is compared with a tolerance, as positions and embedded images are."""
    return name != "href" or value.startswith(INLINE)


def _shifted(attribute: str, actual: str, expected: str) -> str | None:
    """Return in words how an attribute visibly differs from its expected value, or None."""
    if attribute == "href":
        contents = (base64.b64decode(value.removeprefix(INLINE)) for value in (actual, expected))
        return "is another image" if _pixel_difference(*contents) else None
    if attribute != "d":
        old, new = (np.array(NUMBER.findall(value), float) for value in (actual, expected))
        if len(old) != len(new) or NUMBER.sub("", actual) != NUMBER.sub("", expected):
            return "has a position of another form"
        distance = float(np.abs(old - new).max(initial=0.0))
    else:
        distance = _between_curves(actual, expected)
    return f"is {distance:.2g} points from its expected position" if distance > LARGEST_SHIFT else None


def _between_curves(actual: str, expected: str) -> float:
    """Return the largest distance of two paths: between their corners, or between curves that may be thinned."""
    old, new = (np.array(NUMBER.findall(path), float).reshape(-1, 2) for path in (actual, expected))
    if NUMBER.sub("", actual).split() == NUMBER.sub("", expected).split():
        distance = float(np.linalg.norm(old - new, axis=1).max(initial=0.0))
        if distance <= LARGEST_SHIFT:
            return distance
    if not len(old) or not len(new):  # only one machine draws a contour at the edge, which encloses no area
        return float(np.ptp(np.concatenate([old, new]), axis=0).min()) if len(old) + len(new) else 0.0
    distance = max(_from_path(old, new), _from_path(new, old))
    return 0.0 if distance <= THINNING else distance


def _from_path(corners: np.ndarray, path: np.ndarray) -> float:
    """Return the largest distance of `corners` from a path given by its corners."""
    starts, sides = path[:-1], np.diff(path, axis=0)
    if not len(sides):
        starts, sides = path, np.zeros_like(path)
    lengths = np.maximum((sides**2).sum(axis=1), np.finfo(float).tiny)
    furthest = 0.0
    for corner in corners:
        fraction = np.clip(((corner - starts) * sides).sum(axis=1) / lengths, 0.0, 1.0)
        nearest = starts + fraction[:, None] * sides
        furthest = max(furthest, float(np.linalg.norm(corner - nearest, axis=1).min()))
    return furthest
