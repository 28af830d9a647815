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
from companion.figures.plain_svg import HREF, plain
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
    with style():
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


def test_labels_in_the_colours_of_curves_can_be_read():
    """The faintest colour is moved towards the text colour; a colour with enough contrast stays."""
    faintest, *_, strongest = sequence(5)
    assert contrast(faintest, PAPER) < 4.5 <= contrast(legible(faintest), PAPER) < 6
    assert legible(strongest) == pytest.approx(strongest[:3])
    assert legible(INK) == pytest.approx(to_rgb(INK))


def test_the_contrast_of_black_and_white_is_21():
    assert contrast("black", "white") == pytest.approx(21) == contrast("white", "black")
    assert contrast("#777777", "white") == pytest.approx(4.48, abs=0.01)  # the example of WCAG's explanations


def test_the_title_of_an_svg_is_the_headline_in_plain_text(files):
    """It is the first element."""
    first = ElementTree.fromstring(files[".svg"])[0]
    assert first.tag.endswith("}title")
    assert first.text == "The sine of x has a norm ‖s‖²≤√2 & no more."


def test_a_png_has_its_resolution(files):
    """Programs then show it in the size of the SVG, five by three inches."""
    image = Image.open(io.BytesIO(files[".png"]))
    assert image.info["dpi"] == pytest.approx((rendering.RESOLUTION, rendering.RESOLUTION), abs=0.02)
    assert image.size == (5 * rendering.RESOLUTION, 3 * rendering.RESOLUTION)


def test_an_svg_has_only_what_every_program_reads(files):
    """Properties are attributes, and links are those of SVG 1.1."""
    root = ElementTree.fromstring(files[".svg"])
    assert not any(element.tag.endswith("}style") for element in root.iter())
    names = {name for element in root.iter() for name in element.attrib}
    assert names & {"style", "class", "href"} == set()
    assert any(element.get(HREF, "").startswith("#") for element in root.iter())


def test_ids_depend_on_the_figure_and_every_link_has_its_target(table):
    """Two pictures in one page thus have different ids, and the same figure always has the same."""
    ids = []
    for name in ("one.figures.sines", "other.figures.sines", "one.figures.sines"):
        module = ModuleType(name, DOCSTRING)
        module.draw = draw
        picture = rendering.pictures(module, table)[".svg"].decode()
        ids.append(re.findall(r' id="([^"]*)"', picture))
        assert len(ids[-1]) == len(set(ids[-1]))
        assert set(re.findall(r'(?:xlink:href="|url\()#([^")]+)', picture)) == set(ids[-1])
    assert ids[0] == ids[2]
    assert not set(ids[0]) & set(ids[1])


def test_an_svg_keeps_every_length_to_a_hundredth_of_a_point(table):
    """Elements and colours stay the same and in order, and the file is smaller. Letters differ invisibly."""
    with style():
        figure, buffer = draw(table), io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
        plt.close(figure)
    original = buffer.getvalue()
    reduced = plain(original, "sines")
    before, after = (drawn(ElementTree.fromstring(content)) for content in (original, reduced))
    assert [look for look, _ in before] == [look for look, _ in after]
    assert sum(len(exact) for _, exact in before) > 1000
    for (_, exact), (_, rounded) in zip(before, after, strict=True):
        # a control point of a smooth curve is at most 1.5 units off, of 0.125 · 0.12 points; places are 0.01 off
        assert np.abs(exact - rounded).max(initial=0) < 1.5 * 0.125 * 0.12 + 0.01
    assert len(reduced) < 0.5 * len(original)


def points(path: str) -> np.ndarray:
    """Return the points of a path with absolute or relative commands, control points of curves included."""
    found, place, start, control = [], np.zeros(2), np.zeros(2), np.zeros(2)
    for letter, text in re.findall(r"([a-zA-Z])([^a-zA-Z]*)", path):
        numbers = [float(number) for number in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", text)]
        size = {"m": 2, "l": 2, "h": 1, "v": 1, "q": 4, "t": 2, "c": 6, "z": 0}[letter.lower()]
        for first in range(0, max(len(numbers), 1), max(size, 1)):
            part = numbers[first : first + size]
            part = [*part, 0.0] if letter == "h" else [0.0, *part] if letter == "v" else part
            group = np.array(part).reshape(-1, 2) + (place if letter.islower() else 0)
            if letter == "t":
                group = np.vstack([2 * place - control, group])
            group = start[None] if letter == "z" else group
            control, place = group[0], group[-1]
            start = place if letter in "mM" and first == 0 else start
            found.append(group)
    return np.vstack(found)


def drawn(node, by_id=None, look=None, at=None):
    """Return the look and the points on the page of every visible path in order; links and inheritance are resolved."""
    at = np.eye(3) if at is None else at
    by_id = by_id or {element.get("id"): element for element in node.iter()}
    own = dict(part.split(":") for part in node.get("style", "").replace(" ", "").split(";") if part)
    own |= {name: value for name, value in node.attrib.items() if name.startswith(("fill", "stroke"))}
    look = {**(look or {}), **own}
    for kind, numbers in re.findall(r"(\w+)\(([^)]*)\)", node.get("transform", "")):
        first, *rest = map(float, re.split(r"[ ,]+", numbers))
        matrix = np.diag([first, rest[0] if rest else first, 1.0])
        if kind == "translate":
            matrix = np.array([[1, 0, first], [0, 1, rest[0]], [0, 0, 1]])
        at = at @ matrix
    tag = node.tag.rpartition("}")[2]
    if tag == "use":
        move = np.eye(3)
        move[:2, 2] = float(node.get("x", 0)), float(node.get("y", 0))
        return drawn(by_id[node.get(HREF)[1:]], by_id, look, at @ move)
    if tag == "path" and node.get("d"):
        corners = points(node.get("d")) @ at[:2, :2].T + at[:2, 2]
        shown = {name: value for name, value in look.items() if name not in ("stroke-linejoin", "stroke-dashoffset")}
        return [(shown, corners)]
    if tag in ("defs", "clipPath", "metadata"):
        return []
    return [path for child in node for path in drawn(child, by_id, look, at)]


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
