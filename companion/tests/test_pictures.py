"""Pictures of the site: one file for both themes, which looks like the two published files."""

import re
from types import ModuleType
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from companion.figures import rendering
from companion.site.sphinx.pictures import DARK, LIGHT, SVG, addresses, offered

STYLE = "fill:%s;stroke-width:2"
PICTURE = (
    f'<svg xmlns="{SVG}" width="9pt" height="9pt"><title>A × B</title><g>\n<path d="%s" style="{STYLE}"/>\n</g></svg>'
)
COPIED = (
    f'<svg xmlns="{SVG}"><defs><path id="i0" d="M0 0L1 1" style="stroke:{{0}}"/></defs>'
    '<use href="#i0" style="stroke:{1}"/><use href="#i0" transform="translate(2.5 0)" style="stroke:{1}"/></svg>'
)


def picture(colour: str, path: str = "M0 0L1 1") -> bytes:
    return (PICTURE % (path, colour)).encode()


def styles(content: bytes) -> list[tuple[str, str]]:
    """Return the style of each element of a picture, in the light and in the dark theme."""
    root = ElementTree.fromstring(content)
    sheet = "".join(node.text for node in root.iter(f"{{{SVG}}}style"))
    light, dark = (dict(re.findall(rf"{start}\.(\w+){{(.*?)}}", sheet)) for start in ("(?<!target )", ":root:target "))
    assert root.get("id") == "dark"
    plain = [
        (node.get("style", light.get(node.get("class"), "")), dark.get(node.get("class"), "")) for node in root.iter()
    ]
    return [style for style in plain if any(style)]


def test_one_file_has_the_styles_of_both_themes():
    """The title stays, the dark rules contain what differs, and a group without attributes is removed."""
    files = offered(picture("#ffffff"), picture("#121212"))
    assert list(files) == [LIGHT]
    assert styles(files[LIGHT]) == [("fill:#ffffff;stroke-width:2", "fill:#121212")]
    assert "<title>A × B</title>" in files[LIGHT].decode()
    assert b"<g" not in files[LIGHT]


@pytest.mark.parametrize("dark", [picture("#121212", "M0 0L1 2"), picture("#121212").replace(b"stroke-width:2", b"")])
def test_pictures_that_differ_in_more_than_colours_stay_two_files(dark, tmp_path):
    light = picture("#ffffff")
    assert set(offered(light, dark)) == {LIGHT, DARK}
    (tmp_path / "one.svg").write_bytes(light)
    (tmp_path / "one.dark.svg").write_bytes(dark)
    assert addresses(tmp_path, "one", "../one") == {"light": "../one.svg", "dark": "../one.dark.svg"}


def test_a_fragment_of_the_address_chooses_the_theme(tmp_path):
    (tmp_path / "one.svg").write_bytes(picture("#ffffff"))
    (tmp_path / "one.dark.svg").write_bytes(picture("#121212"))
    assert addresses(tmp_path, "one", "../one") == {"light": "../one.svg#light", "dark": "../one.svg#dark"}


def test_copies_inherit_the_colours_of_a_theme():
    """A rule for the root does not reach copies in every browser. Otherwise there are two files."""
    files = offered(COPIED.format("#ffffff", "#ffffff").encode(), COPIED.format("#121212", "#121212").encode())
    assert list(files) == [LIGHT]
    assert styles(files[LIGHT]) == [("stroke:#ffffff", "stroke:#121212")] * 2
    assert b'x="2.5"' in files[LIGHT]
    files = offered(COPIED.format("#ffffff", "#ff0000").encode(), COPIED.format("#121212", "#ff0000").encode())
    assert set(files) == {LIGHT, DARK}


def test_a_file_that_is_not_xml_stays():
    assert offered(b"<svg", b"no picture") == {LIGHT: b"<svg", DARK: b"no picture"}


def points(path: str) -> np.ndarray:
    """Return the points of a path with absolute or relative commands; a `z` is the first point again."""
    found, place, start, control = [], np.zeros(2), np.zeros(2), None
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
            control = group[0] if letter in "qtQ" else None
            place = group[-1]
            start = place if letter in "mM" and first == 0 else start
            found.append(group)
    return np.vstack(found)


@pytest.mark.parametrize(
    "path",
    [
        "M48.14 275.97L443.06 275.97L443.06 3L48.14 3z",
        "M0 2.75C0.73 2.75 1.43 2.46 1.94 1.94C2.46 1.43 2.75 0.73 2.75 0z",
        "M1 1L2 1L2 2.5zM5.25 5L6 0.07",
        "M0 0Q1 1 2 0Q3 -1 4 0Q5 7 6 0",
    ],
)
def test_relative_paths_have_the_same_points(path):
    root = ElementTree.fromstring(offered(picture("#ffffff", path), picture("#121212", path))[LIGHT])
    (drawn,) = root.iter(f"{{{SVG}}}path")
    assert len(drawn.get("d")) <= len(path)
    assert points(drawn.get("d")) == pytest.approx(points(path), abs=1e-9)


def test_a_line_to_the_first_point_before_the_end_is_left_out():
    """Browsers would draw a corner there whose direction depends on rounding errors."""
    files = offered(picture("#ffffff", "M1 1L2 1L2 2L1 1z"), picture("#121212", "M1 1L2 1L2 2L1 1z"))
    assert b'd="M1 1h1v1z"' in files[LIGHT]


def draw(table: pd.DataFrame):
    """Draw a curve, marks and text."""
    figure, axes = plt.subplots(figsize=(5, 3))
    axes.plot(table["x"], table["y"], "o-")
    axes.set(xlabel="$x$", ylabel="the sine of the number")
    return figure


def test_a_drawing_has_a_third_of_the_bytes_of_its_two_files():
    """Points of curves are the same, those of letters differ by at most a hundredth of a letter's height."""
    module = ModuleType("sines", "The sine.\n\nAlt: A wave.\n")
    module.draw = draw
    x = np.linspace(0, 7, 301)
    files = rendering.pictures(module, pd.DataFrame({"x": x, "y": np.sin(x)}))
    light, dark = files[LIGHT], files[DARK]
    made = offered(light, dark)
    assert list(made) == [LIGHT]
    assert len(made[LIGHT]) < 0.4 * (len(light) + len(dark))
    before, after = (list(ElementTree.fromstring(content).iter(f"{{{SVG}}}path")) for content in (light, made[LIGHT]))
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        letter = one.get("transform") == "scale(0.015625)"
        scale, within = (8, 12) if letter else (1, 1e-9)
        if "d" not in one.attrib:  # a space
            continue
        expected, drawn = points(one.get("d")), scale * points(other.get("d"))
        closed = len(expected) - len(drawn)  # without the lines to first points before `z`
        assert closed >= 0
        if not closed:
            assert drawn == pytest.approx(expected, abs=within)
