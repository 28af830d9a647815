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


X = np.linspace(0, 7, 301)
TABLE = pd.DataFrame({"x": X, "y": np.sin(X)})
DOCSTRING = r"""The sine of $x$ has a norm $\|s\|^2\le\sqrt{2}$ & no
more.

Details follow.

Alt: A wave.
"""


def module_of(name, drawing=draw):
    """Return a figure module with this drawing."""
    module = ModuleType(name, DOCSTRING)
    module.draw = drawing
    return module


@pytest.fixture(scope="module")
def files():
    return rendering.pictures(module_of("sines"), TABLE)


def test_a_png_has_few_colours_and_looks_the_same(files):
    """No colour changes much, and the mean change is small. Programs show it in the size of the SVG."""
    with style():
        figure, buffer = draw(TABLE), io.BytesIO()
        figure.savefig(buffer, format="png", dpi=144)
        plt.close(figure)
    original, image = buffer.getvalue(), Image.open(io.BytesIO(files[".png"]))
    before, after = (np.asarray(each.convert("RGB"), float) for each in (Image.open(buffer), image))
    assert len(np.unique(after.reshape(-1, 3), axis=0)) <= rendering.COLOURS
    assert len(files[".png"]) < 0.6 * len(original)
    assert np.abs(before - after).mean() < 1
    assert np.abs(before - after).max() < 64
    assert image.info["dpi"] == pytest.approx((rendering.RESOLUTION, rendering.RESOLUTION), abs=0.02)
    assert image.size == (5 * rendering.RESOLUTION, 3 * rendering.RESOLUTION)


def test_labels_in_the_colours_of_curves_can_be_read():
    """The faintest colour is moved towards the text colour; a colour with enough contrast stays."""
    faintest, *_, strongest = sequence(5)
    assert contrast(faintest, PAPER) < 4.5 <= contrast(legible(faintest), PAPER) < 6
    assert legible(strongest) == pytest.approx(strongest[:3])
    assert legible(INK) == pytest.approx(to_rgb(INK))


def test_the_contrast_of_black_and_white_is_21():
    assert contrast("black", "white") == pytest.approx(21) == contrast("white", "black")
    assert contrast("#777777", "white") == pytest.approx(4.48, abs=0.01)  # the example of WCAG's explanations


def test_an_svg_has_only_what_every_program_reads(files):
    """Properties are attributes, links are those of SVG 1.1, and the first element is the headline in plain text."""
    root = ElementTree.fromstring(files[".svg"])
    assert root[0].tag.endswith("}title")
    assert root[0].text == "The sine of x has a norm ‖s‖²≤√2 & no more."
    assert not any(element.tag.endswith("}style") for element in root.iter())
    names = {name for element in root.iter() for name in element.attrib}
    assert names & {"style", "class", "href"} == set()
    assert any(element.get(HREF, "").startswith("#") for element in root.iter())


def test_ids_depend_on_the_figure_and_every_link_has_its_target():
    """Two pictures in one page thus have different ids, and the same figure always has the same."""
    ids = []
    for name in ("one.figures.sines", "other.figures.sines", "one.figures.sines"):
        picture = rendering.pictures(module_of(name), TABLE)[".svg"].decode()
        ids.append(re.findall(r' id="([^"]*)"', picture))
        assert len(ids[-1]) == len(set(ids[-1]))
        assert set(re.findall(r'(?:xlink:href="|url\()#([^")]+)', picture)) == set(ids[-1])
    assert ids[0] == ids[2]
    assert not set(ids[0]) & set(ids[1])


# Elements as matplotlib writes them: a curve, a letter, two marks of one look and a clipping frame.
WRITTEN = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="72.123456pt">
<metadata>2026</metadata><defs><style>*{stroke-linejoin: round; stroke-linecap: butt}</style></defs><g id="figure_1">
<path id="unused" d="M 1.23456 2 L 3.000001 4 z" style="fill: none; stroke: #0072b2"/><defs>
<path id="mark" d="M 0 0 L 1 1"/><path id="letter" transform="scale(0.015625)"
 d="M 800 0 Q 880 160 960 0 Q 1040 -160 1120 0 L 1120 80 z"/><clipPath id="frame"><rect x="0" height="9"/></clipPath>
</defs><g clip-path="url(#frame)"><use xlink:href="#mark" x="1.25" y="2" style="stroke: #d55e00"/>
<use xlink:href="#mark" x="3" y="4" style="stroke: #d55e00"/></g>
<use xlink:href="#letter" transform="translate(10.04 0)"/></g></svg>"""
PLAIN = """<?xml version="1.0" encoding="utf-8"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="72.12pt" \
stroke-linejoin="round"><path d="M1.23 2L3 4z" fill="none" stroke="#0072b2"/>
<defs><path d="M0 0L1 1" id="wjqxn1"/>
<path transform="scale(0.125)" d="m100 0q10 20 20 0t20 0v10z" id="wjqxn2"/>
<clipPath id="wjqxn0"><rect x="0" height="9"/>
</clipPath>
</defs>
<g clip-path="url(#wjqxn0)"><g stroke="#d55e00"><use xlink:href="#wjqxn1" x="1.25" y="2"/>
<use xlink:href="#wjqxn1" x="3" y="4"/>
</g>
</g>
<use xlink:href="#wjqxn2" x="10"/>
</svg>
"""


def test_an_svg_is_written_with_few_digits_and_marks_of_one_look_together():
    """Lengths have a hundredth of a point, and letters are relative, in units of 0.007 points."""
    assert plain(WRITTEN.encode(), "sines").decode() == PLAIN


def test_a_drawing_without_return_is_named():
    module = module_of("chapter.figures.sines", lambda table: draw(table) and None)
    with pytest.raises(TypeError, match=r"`chapter\.figures\.sines\.draw` must return the matplotlib figure.*Got None"):
        rendering.pictures(module, TABLE)


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
