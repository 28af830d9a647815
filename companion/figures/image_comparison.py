"""Whether a picture file shows what another does, though another machine drew it.

Two drawings of one table differ in the last digit of a coordinate, in where a curve is thinned, in the names of marks.
They do not differ in what there is, nor by what an eye could see.
"""

import base64
import io
import re
from collections.abc import Iterator
from itertools import zip_longest
from xml.etree import ElementTree

import matplotlib.image as mpl_image
import numpy as np

# In points of 1/72 inch: a tenth of the thinnest line.
FARTHEST = 0.05
# Curves are thinned where it cannot be seen: matplotlib drops corners within a ninth of a pixel.
THINNED = 0.25
# The root mean square over pixels and channels, each from 0 to 1. Rounding makes less than
# 0.006, where a mark falls on the next pixel.
FAINTEST = 0.01

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
# Clipping frames.
OWN_NAME = re.compile(r"url\(#[^)]*\)")
PLACED = ("d", "x", "y", "width", "height", "viewBox", "transform")
INLINE = "data:image/png;base64,"


def unlike(one: bytes, other: bytes, suffix: str) -> str | None:
    """Return a visible difference of two pictures whose file names end in `suffix`, or None."""
    if one == other:
        return None
    try:
        return _unlike_pixels(one, other) if suffix.endswith("png") else _unlike_drawings(one, other)
    except (ElementTree.ParseError, SyntaxError, ValueError, OSError):
        return "it is no picture"


def _unlike_pixels(one: bytes, other: bytes) -> str | None:
    old, new = (np.asarray(mpl_image.imread(io.BytesIO(content), format="png"), float) for content in (one, other))
    if old.ndim != new.ndim or np.abs(np.subtract(old.shape, new.shape)).max() > 1:
        return f"it has {old.shape[1]} × {old.shape[0]} pixels, not {new.shape[1]} × {new.shape[0]}"
    rows, columns = np.minimum(old.shape[:2], new.shape[:2])
    apart = float(np.sqrt(np.mean((old[:rows, :columns] - new[:rows, :columns]) ** 2)))
    return f"its pixels differ by {apart:.2g} on average" if apart > FAINTEST else None


def _unlike_drawings(one: bytes, other: bytes) -> str | None:
    for old, new in zip_longest(_drawn(ElementTree.fromstring(one)), _drawn(ElementTree.fromstring(other))):
        if old is None or new is None:
            return f"it draws {'less' if old is None else 'more'}"
        (is_now, here), (should_be, there) = old, new
        if is_now != should_be:
            return f"it has a {is_now[0]} where another mark belongs"
        for attribute, value in here.items():
            if (fault := _elsewhere(attribute, value, there[attribute])) is not None:
                return f"its {is_now[0]} {fault}"
    return None


def _drawn(element: ElementTree.Element) -> Iterator[tuple[tuple[object, ...], dict[str, str]]]:
    """Every mark in order: what it is, and where."""
    kind = str(element.tag).rpartition("}")[2]
    if kind == "metadata":  # who drew it, and when
        return
    named = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
    placed = {name: named.pop(name) for name in (*PLACED, "href") if name in named and _is_placed(name, named[name])}
    named.pop("id", None)
    if kind == "path":
        placed.setdefault("d", "")
    yield (kind, *((name, OWN_NAME.sub("", value)) for name, value in sorted(named.items())), *sorted(placed)), placed
    for child in element:
        yield from _drawn(child)


def _is_placed(name: str, value: str) -> bool:
    return name != "href" or value.startswith(INLINE)


def _elsewhere(attribute: str, here: str, there: str) -> str | None:
    if attribute == "href":
        contents = (base64.b64decode(value.removeprefix(INLINE)) for value in (here, there))
        return "is another image" if _unlike_pixels(*contents) else None
    if attribute != "d":
        old, new = (np.array(NUMBER.findall(value), float) for value in (here, there))
        if len(old) != len(new) or NUMBER.sub("", here) != NUMBER.sub("", there):
            return "is placed in another way"
        apart = float(np.abs(old - new).max(initial=0.0))
    else:
        apart = _between_curves(here, there)
    return f"is {apart:.2g} points from where it belongs" if apart > FARTHEST else None


def _between_curves(here: str, there: str) -> float:
    """How far two paths are apart: corner by corner, or all along where one may be thinned in another way."""
    old, new = (np.array(NUMBER.findall(path), float).reshape(-1, 2) for path in (here, there))
    if NUMBER.sub("", here).split() == NUMBER.sub("", there).split():
        apart = float(np.linalg.norm(old - new, axis=1).max(initial=0.0))
        if apart <= FARTHEST:
            return apart
    if not len(old) or not len(new):  # a contour at the very edge comes and goes, and encloses nothing
        return float(np.ptp(np.concatenate([old, new]), axis=0).min()) if len(old) + len(new) else 0.0
    apart = max(_from_path(old, new), _from_path(new, old))
    return 0.0 if apart <= THINNED else apart


def _from_path(corners: np.ndarray, path: np.ndarray) -> float:
    """Return the largest distance of `corners` from a path given by its corners."""
    starts, sides = path[:-1], np.diff(path, axis=0)
    if not len(sides):
        starts, sides = path, np.zeros_like(path)
    lengths = np.maximum((sides**2).sum(axis=1), np.finfo(float).tiny)
    furthest = 0.0
    for corner in corners:
        share = np.clip(((corner - starts) * sides).sum(axis=1) / lengths, 0.0, 1.0)
        nearest = starts + share[:, None] * sides
        furthest = max(furthest, float(np.linalg.norm(corner - nearest, axis=1).min()))
    return furthest
