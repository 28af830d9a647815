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


@pytest.mark.parametrize("kind", ["svg", "png"])
@pytest.mark.parametrize("changes", [{}, {"y": CURVE * (1 + 1e-6)}, {"seed": "b"}, {"simplify": False}])
def test_drawings_of_one_table_are_alike(kind, changes):
    """Element ids, the date, simplified paths and the last digit are ignored."""
    assert visible_difference(drawing(kind), drawing(kind, **changes), f".{kind}") is None


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        *product(("svg", "png"), [{"colour": "C3"}, {"label": "a longer name"}]),
        ("svg", {"marker": ""}),
        ("png", {"y": CURVE + 0.05}),
        # of the same extent
        ("png", {"y": np.where(abs(X - 0.5) < 0.1, 0, CURVE)}),
    ],
)
def test_visible_changes_are_found(kind, changes):
    """A PNG shows where the marks are, an SVG which marks there are."""
    assert visible_difference(drawing(kind), drawing(kind, **changes), f".{kind}")
