"""Compare two picture files that different machines may have drawn.

Drawings of one table on two machines differ in the last digit of a coordinate, in the points at which a curve is
thinned, and in the names of SVG elements. They contain the same elements and look the same. PNGs are compared pixel by
pixel, as Matplotlib compares pictures in its tests. SVGs are compared element by element; of a curve only its extent
counts, because the PNG of the same figure shows its course.
"""

import base64
import io
import re
from collections.abc import Iterator
from itertools import zip_longest
from xml.etree import ElementTree

import matplotlib.image as mpl_image
import numpy as np
from matplotlib.testing.compare import calculate_rms  # pyright: ignore[reportUnknownVariableType]

# Largest invisible shift of an element, in points of 1/72 inch: a tenth of the thinnest line.
LARGEST_SHIFT = 0.05
# Largest difference of the extents of two thinned versions of a curve, in points: matplotlib drops corners that are
# less than a ninth of a pixel off.
THINNING = 0.25
# Largest invisible root mean square difference over pixels and channels, each from 0 to 1. Rounding, which moves a mark
# to the next pixel, causes less than 0.006.
LARGEST_PIXEL_DIFFERENCE = 0.01

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# References to clipping frames, whose names differ between machines.
REFERENCE = re.compile(r"url\(#[^)]*\)")
# Attributes that position an element, and the one that gives the shape of a path.
POSITION, SHAPE = ("x", "y", "width", "height", "viewBox", "transform"), "d"
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
    difference = float(calculate_rms(new[:rows, :columns], old[:rows, :columns]))
    return f"its pixels differ by {difference:.2g} on average" if difference > LARGEST_PIXEL_DIFFERENCE else None


def _svg_difference(actual: bytes, expected: bytes) -> str | None:
    drawings = (_elements(ElementTree.fromstring(content)) for content in (actual, expected))
    for old, new in zip_longest(*drawings):
        if old is None or new is None:
            return f"it has {'fewer' if old is None else 'more'} elements"
        (tag, *look), position = old
        (expected_tag, *expected_look), expected_position = new
        if (tag, look) != (expected_tag, expected_look):
            return f"it has a {tag} in place of another element"
        for attribute in position | expected_position:
            values = position.get(attribute, ""), expected_position.get(attribute, "")
            if values[0] != values[1] and (fault := _shifted(attribute, *values)):
                return f"its {tag} {fault}"
    return None


def _elements(element: ElementTree.Element) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Yield every visible element in order: its tag and look, and the attributes that position it."""
    tag = str(element.tag).rpartition("}")[2]
    if tag == "metadata":  # the program that drew the picture, and the date
        return
    attributes = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    attributes.pop("id", None)
    position = {name: value for name, value in attributes.items() if _is_position(name, value)}
    look = [f"{name}={REFERENCE.sub('', value)}" for name, value in attributes.items() if name not in position]
    yield [tag, *sorted(look)], position
    for child in element:
        yield from _elements(child)


def _is_position(name: str, value: str) -> bool:
    """Return whether an attribute is compared with a tolerance, as positions and embedded images are."""
    return name in (*POSITION, SHAPE) or (name == "href" and value.startswith(INLINE))


def _shifted(attribute: str, actual: str, expected: str) -> str | None:
    """Return in words how an attribute visibly differs from its expected value, or None."""
    if attribute == "href":
        contents = (base64.b64decode(value.removeprefix(INLINE)) for value in (actual, expected))
        return "is another image" if _pixel_difference(*contents) else None
    old, new = (np.array(NUMBER.findall(value), float) for value in (actual, expected))
    if attribute != SHAPE:
        if NUMBER.sub("", actual) != NUMBER.sub("", expected):
            return "has a position of another form"
        return _moved(old, new, LARGEST_SHIFT)
    if not len(old) or not len(new):  # only one machine draws a contour at the edge, which encloses no area
        corners = np.concatenate([old, new]).reshape(-1, 2)
        return "is empty or new" if len(corners) and np.ptp(corners, axis=0).min() > LARGEST_SHIFT else None
    if "m" in actual or set(NUMBER.sub("", actual)) != set(NUMBER.sub("", expected)):  # `m`: the outline of a letter
        return "has another shape"
    return _moved(_extent(old), _extent(new), THINNING)


def _extent(path: np.ndarray) -> np.ndarray:
    corners = path.reshape(-1, 2)
    return np.concatenate([corners.min(axis=0), corners.max(axis=0)])


def _moved(old: np.ndarray, new: np.ndarray, allowed: float) -> str | None:
    distance = float(np.abs(old - new).max(initial=0.0))
    return f"is {distance:.2g} points from its expected position" if distance > allowed else None
