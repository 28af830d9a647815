"""Two pictures are alike if a viewer cannot distinguish them: rounding and path simplification are ignored."""

import io
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pytest

from companion.figures.image_comparison import visible_difference
from companion.figures.plain_svg import plain

X = np.linspace(0, 1, 3001)
CURVE = np.sin(7 * X)


def drawing(kind, y=CURVE, *, colour="C0", label="x", seed="a", simplify=True, marker="o"):
    """Return the file of a curve with some markers, saved like the figures of a book."""
    settings = {"svg.hashsalt": seed, "svg.fonttype": "path", "path.simplify": simplify, "savefig.bbox": "tight"}
    with plt.rc_context(settings):
        figure, axes = plt.subplots()
        axes.plot(X, y, color=colour)
        axes.plot(X[::500], y[::500], marker)
        axes.set(xlabel=label, xlim=(0, 1), ylim=(-2, 2))
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind)
        plt.close(figure)
    return plain(buffer.getvalue(), "curve") if kind == "svg" else buffer.getvalue()


KINDS = ("svg", "png")
BOTH = pytest.mark.parametrize("kind", KINDS)
VISIBLE = [{"y": CURVE + 0.05}, {"colour": "C3"}, {"label": "a longer name"}, {"marker": ""}]


@BOTH
@pytest.mark.parametrize("changes", [{}, {"y": CURVE * (1 + 1e-6)}, {"seed": "b"}, {"simplify": False}])
def test_drawings_of_one_table_are_alike(kind, changes):
    """Element ids, the date, simplified paths and the last digit are ignored."""
    assert visible_difference(drawing(kind), drawing(kind, **changes), f".{kind}") is None


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        *product(KINDS, VISIBLE),
        # below a pixel: markers of another shape, and markers that moved by an eighth of a point
        ("svg", {"marker": "s"}),
        ("svg", {"y": CURVE + 1e-3}),
        # of the same extent
        ("png", {"y": np.where(abs(X - 0.5) < 0.1, 0, CURVE)}),
    ],
)
def test_visible_changes_are_found(kind, changes):
    assert visible_difference(drawing(kind), drawing(kind, **changes), f".{kind}")


@BOTH
@pytest.mark.parametrize("content", [b"", b"<svg", b"\x89PNG\r\n\x1a\n", b"text"])
def test_a_file_that_is_no_picture_is_reported(kind, content):
    assert visible_difference(content, drawing(kind), f".{kind}") == "it is not a picture"
