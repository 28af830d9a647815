"""Pictures as files: small, and the same to the eye."""

import io
import re
from types import ModuleType
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from companion.figures import rendering
from companion.figures.style import headline, style


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
    return rendering.pictures(module, table)


def test_a_png_has_few_colours_and_looks_the_same(files, table):
    """Nowhere is a colour far from what it was, and on the whole none is off."""
    before, after = (
        np.asarray(Image.open(io.BytesIO(one)).convert("RGB"), float) for one in (as_drawn(table), files[".png"])
    )
    assert len(np.unique(after.reshape(-1, 3), axis=0)) <= rendering.COLOURS
    assert len(files[".png"]) < 0.6 * len(as_drawn(table))
    assert np.abs(before - after).mean() < 1
    assert np.abs(before - after).max() < 64


def test_an_svg_keeps_every_length_to_a_hundredth_of_a_point(table):
    """And every mark, letter and colour in order; with a third less of bytes."""
    with style("light"):
        figure, buffer = draw(table), io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
        plt.close(figure)
    whole = buffer.getvalue()
    found = rendering.fewer_digits(whole)
    before, after = (_followed(ElementTree.fromstring(content)) for content in (whole, found))
    assert [words for words, _ in before] == [words for words, _ in after]
    lengths, kept = (np.concatenate([numbers for _, numbers in followed]) for followed in (before, after))
    assert lengths.size > 1000
    assert 0 < np.abs(lengths - kept).max() < 0.0051
    assert len(found) < 0.67 * len(whole)
    assert rendering.fewer_digits(found) == found


def _followed(element, named=None, look=""):
    """Every mark in order, what it refers to in its place, with its look: its words, and its numbers."""
    kind, found = element.tag.rpartition("}")[2], []
    named = named or {one.get("id"): one for one in element.iter()}
    if kind == "metadata":
        return []
    if kind != "g" or {*element.attrib} - {"id", "style"}:
        said, words, numbers = {"style": look, **element.attrib}, [kind], []
        for name, value in sorted(said.items(), key=lambda item: item[0].rpartition("}")[2]):
            if name == "id":
                continue
            meant = named[value[1:]].get("d") if name.endswith("href") else value
            plain = re.sub(r"url\([^)]*\)", "url", "".join(meant.split()) if name == "style" else meant)
            numbers += [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", plain)]
            words.append(re.sub(r"-?\d+\.?\d*(?:e-?\d+)?|\s", "", plain))
        found.append((words, numbers))
    for child in element:
        found += _followed(
            child, named, element.get("style", "") if kind == "g" and "transform" not in element.attrib else ""
        )
    return found
