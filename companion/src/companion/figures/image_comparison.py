"""Compare two picture files that different machines may have drawn.

Drawings of one table on two machines differ in the last digit of a coordinate, in the points at which a curve is
thinned, and in the names of SVG elements. PNGs are compared pixel by pixel, as Matplotlib compares pictures in its
tests. SVGs must have the same elements with the same look; the PNG of the same figure shows their places.
"""

import io
from xml.etree import ElementTree

import matplotlib.image as mpl_image
import numpy as np
from matplotlib.testing.compare import calculate_rms  # pyright: ignore[reportUnknownVariableType]

# Largest invisible root mean square difference over pixels and channels, each from 0 to 1. Rounding, which moves a mark
# to the next pixel, causes less than 0.006.
LARGEST_PIXEL_DIFFERENCE = 0.01
# Attributes of an SVG element that may differ between machines; `href` may be an image.
PLACE = {"id", "d", "points", "x", "y", "width", "height", "viewBox", "transform", "clip-path", "href"}


def visible_difference(actual: bytes, expected: bytes, suffix: str) -> str | None:
    """Return a sentence about the first visible difference of two pictures, or None.

    Args:
      actual: the content of the picture file that the sentence is about.
      expected: the content of the file to compare it with.
      suffix: the end of the file names, which gives the format: PNG or SVG.
    """
    if actual == expected:
        return None
    if suffix.endswith("png"):
        return _pixel_difference(actual, expected)
    return None if _looks(actual) == _looks(expected) else "it has other elements, or elements of another look"


def _pixel_difference(actual: bytes, expected: bytes) -> str | None:
    images = (mpl_image.imread(io.BytesIO(content), format="png") for content in (actual, expected))
    old, new = (np.asarray(image, float) for image in images)
    if old.ndim != new.ndim or np.abs(np.subtract(old.shape, new.shape)).max() > 1:
        return f"it has {old.shape[1]} × {old.shape[0]} pixels, not {new.shape[1]} × {new.shape[0]}"
    rows, columns = np.minimum(old.shape[:2], new.shape[:2])
    difference = float(calculate_rms(new[:rows, :columns], old[:rows, :columns]))
    return f"its pixels differ by {difference:.2g} on average" if difference > LARGEST_PIXEL_DIFFERENCE else None


def _looks(picture: bytes) -> list[tuple[str, dict[str, str]]]:
    """Return the tag and the look of every element of an SVG, in order."""
    elements = ElementTree.fromstring(picture).iter()
    return [
        (element.tag, {name: value for name, value in element.items() if name.rpartition("}")[2] not in PLACE})
        for element in elements
    ]
