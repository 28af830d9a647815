"""Pictures as files: small, and the same to the eye."""

import io
from types import ModuleType

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from companion import drawing
from companion.style import headline, style


def draw(table):
    """A curve with many points, and text."""
    figure, axes = plt.subplots(figsize=(5, 3))
    axes.plot(table["x"], table["y"])
    axes.set(xlabel="$x$")
    headline(figure, "Sines")
    return figure


@pytest.fixture(scope="module")
def table():
    x = np.linspace(0, 7, 301)
    return pd.DataFrame({"x": x, "y": np.sin(x)})


def as_drawn(table: pd.DataFrame) -> bytes:
    with style("light"):
        figure, buffer = draw(table), io.BytesIO()
        figure.savefig(buffer, format="png", dpi=144)
        plt.close(figure)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def files(table):
    module = ModuleType("sines")
    module.draw = draw
    return drawing.pictures(module, table)


def test_a_png_has_few_colours_and_looks_the_same(files, table):
    """Nowhere is a colour far from what it was, and on the whole none is off."""
    before, after = (
        np.asarray(Image.open(io.BytesIO(one)).convert("RGB"), float) for one in (as_drawn(table), files[".png"])
    )
    assert len(np.unique(after.reshape(-1, 3), axis=0)) <= drawing.COLOURS
    assert len(files[".png"]) < 0.6 * len(as_drawn(table))
    assert np.abs(before - after).mean() < 1
    assert np.abs(before - after).max() < 64
