"""Two pictures are alike if a viewer cannot distinguish them: rounding and path simplification are ignored."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest

from companion.figures.image_comparison import visible_difference
from companion.figures.plain_svg import plain

X = np.linspace(0, 1, 3001)


def drawing(kind, y, *, colour="C0", label="x", seed="a", simplify=True, marker="o"):
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


CURVE = np.sin(7 * X)


@pytest.mark.parametrize("kind", ["svg", "png"])
@pytest.mark.parametrize(
    "changes",
    [{"y": CURVE}, {"y": CURVE * (1 + 1e-6)}, {"y": CURVE, "seed": "b"}, {"y": CURVE, "simplify": False}],
)
def test_drawings_of_one_table_are_alike(kind, changes):
    """Element ids, the date, simplified paths and the last digit are ignored."""
    assert visible_difference(drawing(kind, CURVE), drawing(kind, **changes), f".{kind}") is None


@pytest.mark.parametrize("kind", ["svg", "png"])
@pytest.mark.parametrize(
    "changes",
    [
        {"y": CURVE + 0.05},
        {"y": CURVE, "colour": "C3"},
        {"y": CURVE, "label": "a longer name"},
        {"y": CURVE, "marker": ""},
    ],
)
def test_visible_changes_are_found(kind, changes):
    assert visible_difference(drawing(kind, CURVE), drawing(kind, **changes), f".{kind}")


@pytest.mark.parametrize("changes", [{"y": CURVE, "marker": "s"}, {"y": CURVE + 1e-3}])
def test_svg_comparison_finds_changes_below_a_pixel(changes):
    """Examples are markers of another shape, and markers that moved by an eighth of a point."""
    assert visible_difference(drawing("svg", CURVE), drawing("svg", **changes), ".svg")


def test_png_comparison_finds_another_course_of_the_same_extent():
    other = drawing("png", np.where(abs(X - 0.5) < 0.1, 0, CURVE))
    assert visible_difference(drawing("png", CURVE), other, ".png")


@pytest.mark.parametrize("kind", ["svg", "png"])
@pytest.mark.parametrize("content", [b"", b"<svg", b"\x89PNG\r\n\x1a\n", b"text"])
def test_a_file_that_is_no_picture_is_reported(kind, content):
    assert visible_difference(content, drawing(kind, CURVE), f".{kind}") == "it is not a picture"
