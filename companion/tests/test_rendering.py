"""Picture files are small and look the same as the original drawing."""

import io
import re
from types import ModuleType
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from PIL import Image

from companion.figures import rendering
from companion.figures.style import INK, PAPER, contrast, legible, sequence, style


def draw(table):
    """Draw a curve with many points, and text."""
    figure, axes = plt.subplots(figsize=(5, 3))
    axes.plot(table["x"], table["y"])
    axes.set(xlabel="$x$")
    return figure


@pytest.fixture(scope="module")
def table():
    x = np.linspace(0, 7, 301)
    return pd.DataFrame({"x": x, "y": np.sin(x)})


DOCSTRING = r"""The sine of $x$ has a norm $\|s\|^2\le\sqrt{2}$ & no
more.

Details follow.

Alt: A wave.
"""


def original_png(table: pd.DataFrame) -> bytes:
    with style("light"):
        figure, buffer = draw(table), io.BytesIO()
        figure.savefig(buffer, format="png", dpi=144)
        plt.close(figure)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def files(table):
    module = ModuleType("sines", DOCSTRING)
    module.draw = draw
    return rendering.pictures(module, table)


def test_a_png_has_few_colours_and_looks_the_same(files, table):
    """No colour changes much, and the mean change is small."""
    before, after = (
        np.asarray(Image.open(io.BytesIO(content)).convert("RGB"), float)
        for content in (original_png(table), files[".png"])
    )
    assert len(np.unique(after.reshape(-1, 3), axis=0)) <= rendering.COLOURS
    assert len(files[".png"]) < 0.6 * len(original_png(table))
    assert np.abs(before - after).mean() < 1
    assert np.abs(before - after).max() < 64


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_labels_in_the_colours_of_curves_can_be_read(theme):
    """The faintest colour is moved towards the text colour; a colour with enough contrast stays."""
    with style(theme):
        faintest, *_, strongest = sequence(5)
        assert contrast(faintest, PAPER[theme]) < 4.5 <= contrast(legible(faintest), PAPER[theme]) < 6
        assert legible(strongest) == pytest.approx(strongest[:3])
        assert legible(INK[theme]) == pytest.approx(to_rgb(INK[theme]))


def test_the_contrast_of_black_and_white_is_21():
    assert contrast("black", "white") == pytest.approx(21) == contrast("white", "black")
    assert contrast("#777777", "white") == pytest.approx(4.48, abs=0.01)  # the example of WCAG's explanations


def test_the_title_of_an_svg_is_the_headline_in_plain_text(files):
    """Both themes have it, as the first element."""
    for ending in (".svg", ".dark.svg"):
        first = ElementTree.fromstring(files[ending])[0]
        assert first.tag.endswith("}title")
        assert first.text == "The sine of x has a norm ‖s‖²≤√2 & no more."


def test_an_svg_keeps_every_length_to_a_hundredth_of_a_point(table):
    """Elements, text and colours stay the same and in order; the file is a third smaller."""
    with style("light"):
        figure, buffer = draw(table), io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
        plt.close(figure)
    original = buffer.getvalue()
    reduced = rendering.fewer_digits(original)
    before, after = (_elements(ElementTree.fromstring(content)) for content in (original, reduced))
    assert [words for words, _ in before] == [words for words, _ in after]
    lengths, rounded = (np.concatenate([numbers for _, numbers in elements]) for elements in (before, after))
    assert lengths.size > 1000
    assert 0 < np.abs(lengths - rounded).max() < 0.0051
    assert len(reduced) < 0.67 * len(original)
    assert rendering.fewer_digits(reduced) == reduced


def _elements(element, by_id=None, look=""):
    """Return (words, numbers) of every visible element in order, with references resolved and styles inherited."""
    kind, elements = element.tag.rpartition("}")[2], []
    by_id = by_id or {node.get("id"): node for node in element.iter()}
    if kind == "metadata":
        return []
    if kind != "g" or {*element.attrib} - {"id", "style"}:
        attributes, words, numbers = {"style": look, **element.attrib}, [kind], []
        for name, value in sorted(attributes.items(), key=lambda item: item[0].rpartition("}")[2]):
            if name == "id":
                continue
            resolved = by_id[value[1:]].get("d") if name.endswith("href") else value
            plain = re.sub(r"url\([^)]*\)", "url", "".join(resolved.split()) if name == "style" else resolved)
            numbers += [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", plain)]
            words.append(re.sub(r"-?\d+\.?\d*(?:e-?\d+)?|\s", "", plain))
        elements.append((words, numbers))
    for child in element:
        elements += _elements(
            child, by_id, element.get("style", "") if kind == "g" and "transform" not in element.attrib else ""
        )
    return elements


def test_a_drawing_without_return_is_named(table):
    module = ModuleType("chapter.figures.sines", DOCSTRING)
    module.draw = lambda table: draw(table) and None
    with pytest.raises(TypeError, match=r"`chapter\.figures\.sines\.draw` must return the matplotlib figure.*Got None"):
        rendering.pictures(module, table)


def test_caption_and_alt_are_read_from_the_source_if_the_interpreter_removed_them(tmp_path):
    """With `PYTHONOPTIMIZE=2` a module has no docstring."""
    path = tmp_path / "sines.py"
    path.write_text('r"""Sines.\n\n    Alt: Two\n    curves.\n"""\n', encoding="utf-8")
    module = ModuleType("sines")
    module.__file__, module.__doc__ = str(path), None
    assert rendering.caption_and_alt(module) == ("Sines.", "Two curves.")
    path.write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="Got 0 caption paragraphs and 0 alt texts"):
        rendering.caption_and_alt(module)
