"""Pictures are alike if an eye sees one in the other: rounding and thinning are not seen, all else is."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest

from companion.figures.image_comparison import visible_difference
from companion.figures.rendering import fewer_digits

X = np.linspace(0, 1, 3001)


def drawing(kind, y, *, colour="C0", label="x", seed="a", thinned=True, mark="o"):
    """A curve and some marks, as figures are saved."""
    settings = {"svg.hashsalt": seed, "svg.fonttype": "path", "path.simplify": thinned, "savefig.bbox": "tight"}
    with plt.rc_context(settings):
        figure, axes = plt.subplots()
        axes.plot(X, y, color=colour)
        axes.plot(X[::500], y[::500], mark)
        axes.set(xlabel=label, xlim=(0, 1), ylim=(-2, 2))
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind)
        plt.close(figure)
    return fewer_digits(buffer.getvalue()) if kind == "svg" else buffer.getvalue()


CURVE = np.sin(7 * X)


@pytest.mark.parametrize("kind", ["svg", "png"])
@pytest.mark.parametrize(
    "same",
    [{"y": CURVE}, {"y": CURVE * (1 + 1e-6)}, {"y": CURVE, "seed": "b"}, {"y": CURVE, "thinned": False}],
)
def test_drawings_of_one_table_are_alike(kind, same):
    """Whoever drew them: names of marks, the time, corners that were dropped, the last digit."""
    assert visible_difference(drawing(kind, CURVE), drawing(kind, **same), f".{kind}") is None


@pytest.mark.parametrize("kind", ["svg", "png"])
@pytest.mark.parametrize(
    "other",
    [
        {"y": CURVE + 0.05},
        {"y": np.where(abs(X - 0.5) < 0.1, 0, CURVE)},
        {"y": CURVE, "colour": "C3"},
        {"y": CURVE, "label": "a longer name"},
        {"y": CURVE, "mark": ""},
    ],
)
def test_other_drawings_are_not(kind, other):
    assert visible_difference(drawing(kind, CURVE), drawing(kind, **other), f".{kind}")


@pytest.mark.parametrize("other", [{"y": CURVE, "mark": "s"}, {"y": CURVE + 1e-3}])
def test_a_drawing_tells_what_pixels_do_not(other):
    """Marks of another form, and a curve an eighth of a point away."""
    assert visible_difference(drawing("svg", CURVE), drawing("svg", **other), ".svg")


@pytest.mark.parametrize("kind", ["svg", "png"])
@pytest.mark.parametrize("content", [b"", b"<svg", b"\x89PNG\r\n\x1a\n", b"text"])
def test_what_is_no_picture_is_told(kind, content):
    assert visible_difference(content, drawing(kind, CURVE), f".{kind}") == "it is not a picture"
