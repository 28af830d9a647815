"""The interactive pictures: their readings equal the values of the library, and every way to move them works."""

import itertools
import math
import random
import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import jax.random as jr
import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page, expect

from chapters.laboratory import key_pairs, ranges, regression_heads, several_risks
from chapters.laboratory.clouds import draw_clouds, outputs, prompt_outputs
from companion.project.paths import Project
from lib import single_location as sl
from lib.finite_prompt import participation, score_error
from lib.icl import LinearRegression, best_values, heads_risk

DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 375, "height": 812}
PAGE = "book/laboratory.html"
pytestmark = pytest.mark.usefixtures("quick_compilation")
SETTINGS = 48
# Readings have four digits; OFF bounds the interpolation error of the tables, which the claims of the chapter measure.
SHOWN, OFF = 5e-4, 1e-3
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻−", "0123456789--")
READINGS = """figure => Object.fromEntries([...document.querySelectorAll(`#${figure} [data-reading]`)].map(
    node => [node.dataset.reading, node.textContent]))"""
MOVE = """([figure, values]) => values.forEach((value, place) => {
    const slider = document.querySelectorAll(`#${figure} input[type=range]`)[place];
    slider.value = value;
    slider.dispatchEvent(new Event('input', { bubbles: true }));
})"""
# Move to one setting after the other, and return the readings of each. Nothing is painted in between.
READ_EACH = f"([figure, rows]) => rows.map(row => {{ ({MOVE})([figure, row]); return ({READINGS})(figure); }})"
FIGURES = ("live-plane", "live-needle", "live-several", "live-valley", "live-cloud", "live-pair")
ANCHORS = [f"fig-{figure}" for figure in FIGURES]


def number(text: str) -> float:
    """Return the value of a reading such as `1.234 × 10⁻⁵`, `10⁶` or `0.25`."""
    digits, power = re.fullmatch(r"(.*?)(?: × )?(?:10([⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+))?", text).groups()
    return float((digits or "1").translate(RAISED)) * 10.0 ** int((power or "0").translate(RAISED))


# The laboratory that was opened by these tests.
OPEN = "() => Boolean(window.laboratoryOfTests)"


@pytest.fixture
def laboratory(visit: Callable[..., Page], address: str) -> Callable[..., Page]:
    """Return a function that opens the laboratory, with the settings that it has at first or those of a query."""

    def opened(query: str = "", viewport: dict[str, int] = DESKTOP, **where: Page) -> Page:
        page = visit(f"{address}/{PAGE}{query}", viewport, **where)
        page.wait_for_selector("#fig-live-plane.lab-live")
        page.evaluate("() => { window.laboratoryOfTests = true }")
        return page

    return opened


@pytest.fixture
def lab(tab: Page, laboratory: Callable[..., Page]) -> Page:
    """The laboratory with any settings: it is loaded once, unless a test leaves it."""
    return tab if tab.evaluate(OPEN) else laboratory()


@pytest.fixture
def touched(phone: Page, laboratory: Callable[..., Page]) -> Page:
    """The laboratory with any settings on a phone, loaded once."""
    return phone if phone.evaluate(OPEN) else laboratory("", PHONE, page=phone)


def readings(page: Page, figure: str) -> dict[str, str]:
    return page.evaluate(READINGS, f"fig-{figure}")


def readings_at(page: Page, figure: str, rows: list[list[float]]) -> list[dict[str, str]]:
    """Return the readings of a picture for each setting of its sliders."""
    return page.evaluate(READ_EACH, [f"fig-{figure}", rows])


def shown_at(page: Page, figure: str, *settings: np.ndarray) -> dict[str, np.ndarray]:
    """Return the readings of a picture, by name, for settings of its sliders: one array per slider."""
    rows = readings_at(page, figure, np.column_stack(settings).tolist())
    return {name: np.asarray([number(row[name]) for row in rows]) for name in rows[0]}


def test_the_plane_agrees_with_the_library(float64, lab: Page):
    rng = np.random.default_rng(1)
    taus, decades = rng.integers(0, 301, SETTINGS) / 20, rng.integers(0, 401, SETTINGS) / 10
    shown, log_lengths = shown_at(lab, "live-plane", taus, decades), np.log(np.round(10.0**decades))
    exact = np.asarray(participation(taus, log_lengths))
    np.testing.assert_allclose(shown["participation"], exact, rtol=SHOWN + OFF)
    np.testing.assert_allclose(shown["shrinkage"], 1 - exact, rtol=SHOWN, atol=OFF)
    np.testing.assert_allclose(shown["error"], score_error(taus, log_lengths), rtol=SHOWN + OFF)
    np.testing.assert_allclose(shown["freezing"], np.sqrt(2 * log_lengths), rtol=SHOWN)


def test_the_needle_agrees_with_the_library(float64, lab: Page):
    rng = np.random.default_rng(2)
    snrs, decades = rng.integers(0, 321, SETTINGS) / 4, rng.integers(6, 241, SETTINGS) / 20
    shown = shown_at(lab, "live-needle", snrs, decades)
    tasks = sl.Spiked(np.round(10.0**decades), snrs)
    np.testing.assert_allclose(shown["softmax"], sl.bayes_risk(tasks), rtol=SHOWN + OFF)
    np.testing.assert_allclose(shown["element_wise"], sl.best_elementwise_risk(tasks), rtol=SHOWN + OFF)
    np.testing.assert_allclose(shown["linear"], sl.best_risk(tasks, sl.linear), rtol=SHOWN + OFF)
    np.testing.assert_allclose(shown["largest_score"], sl.best_risk(tasks, sl.hardmax), rtol=SHOWN + OFF)


def test_several_tokens_agree_with_the_library(float64, lab: Page):
    rng, stops = np.random.default_rng(4), np.asarray(several_risks.RELEVANT, dtype=float)
    snrs, places = rng.integers(0, ranges.LARGEST_SEVERAL_SNR + 1, 6), rng.integers(0, stops.size, 6)
    shown = shown_at(lab, "live-several", snrs, places)
    task = sl.Several(np.full(snrs.size, 100.0), stops[places], snrs.astype(float))
    for name, head in several_risks.HEADS.items():
        np.testing.assert_allclose(shown[name], sl.best_risk(task, head), rtol=SHOWN)


def test_the_valley_agrees_with_the_library(float64, lab: Page):
    rng, settings = np.random.default_rng(3), 6
    tilt, share = rng.integers(10, 201, settings) / 200, rng.integers(0, 401, settings) / 200
    decades = np.resize([0.85, 2.0, 3.65, 5.95], settings)
    dimension, noise = rng.integers(4, size=settings), rng.integers(3, size=settings)
    shown = shown_at(lab, "live-valley", tilt, share, decades, dimension, noise)
    d, variance = np.asarray([1, 2, 5, 10])[dimension], np.asarray([0.0, 0.1, 1.0])[noise]
    log_length = np.log(np.round(10.0**decades))
    tasks = [LinearRegression(np.eye(size), noise_std=np.sqrt(s2)) for size, s2 in zip(d, variance, strict=True)]
    heads = zip(tasks, tilt[:, None], (share / tilt)[:, None], log_length, strict=True)
    excess = np.asarray([heads_risk(*head) for head in heads]) - variance / 2
    linear = regression_heads.linear_excess(d, variance, log_length)
    np.testing.assert_allclose(shown["excess"], excess, rtol=SHOWN + OFF)
    np.testing.assert_allclose(shown["linear"], linear, rtol=SHOWN + OFF)
    np.testing.assert_allclose(shown["ratio"], excess / linear, rtol=SHOWN + 2 * OFF)


def test_the_pair_agrees_with_the_library(float64, lab: Page):
    """Also with both keys at zero, where the pair is debiased gradient descent, and for the opposite pair."""
    rng, settings, task = np.random.default_rng(5), 3, key_pairs.task()
    keys, decades = rng.integers(-60, 61, (settings, 2)) / 100, rng.integers(20, 81, settings) / 20
    shown = shown_at(lab, "live-pair", np.append(keys, [[0, 0]], axis=0), np.append(decades, 2))
    for place, log_length in enumerate(np.log(np.round(10.0**decades))):
        descent, gap = float(key_pairs.descent_excess(log_length)) / 2, abs(np.diff(keys[place])[0]) / 2
        pairs = (keys[place], np.asarray([gap, -gap]))
        excess, opposite = (best_values(task, pair, log_length)[1] - key_pairs.NOISE / 2 for pair in pairs)
        np.testing.assert_allclose(shown["descent"][place], descent, rtol=SHOWN)
        np.testing.assert_allclose(shown["excess"][place], excess, rtol=SHOWN + OFF)
        np.testing.assert_allclose(shown["ratio"][place], excess / descent, rtol=SHOWN + OFF)
        np.testing.assert_allclose(shown["opposite"][place], opposite / descent, rtol=SHOWN + OFF)
        assert shown["best"][place] <= 1
    assert shown["ratio"][-1] == shown["opposite"][-1] == 1


def test_the_cloud_agrees_with_the_library(float64, lab: Page, site):
    """Its tokens are those of the published table, its distributions those of the chapter."""
    rng, stops = random.Random(4), (1, 3, 10, 30, 100, 300)
    settings = [
        (rng.randrange(61) / 20, 5 * rng.randrange(-36, 37), rng.randrange(6), rng.randrange(2)) for _ in range(25)
    ]
    table = pd.read_csv(site / "figures/laboratory/live_cloud.csv")
    clouds = draw_clouds(1, key=jr.key(0))
    for (size, angle, stop, law), shown in zip(settings, readings_at(lab, "live-cloud", settings), strict=True):
        name = ("Gaussian", "mixture")[law]
        query = size * np.asarray([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
        tokens = table[(table["law"] == name) & (table["kind"] == "token")][["x", "y"]].to_numpy()[: stops[stop]]
        np.testing.assert_allclose(pair(shown["prompt"]), prompt_outputs(tokens, query), atol=OFF)
        np.testing.assert_allclose(pair(shown["law"]), outputs(clouds[name].law, query), atol=OFF + SHOWN)


def pair(text: str) -> list[float]:
    """Return the coordinates of a point that is shown as `(0.125, −1.000)`."""
    return [float(part.translate(RAISED)) for part in text.strip("()").split(",")]


@pytest.mark.parametrize("figure", FIGURES)
def test_a_point_can_be_dragged(lab: Page, figure: str):
    """The readings and the link to the setting change with it."""
    dot, link = lab.locator(f"#fig-{figure} .lab-dot").first, lab.locator(f"#fig-{figure} .lab-link")
    dot.scroll_into_view_if_needed()
    before, address, box = readings(lab, figure), link.get_attribute("href"), dot.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    lab.mouse.move(x, y)
    lab.mouse.down()
    lab.mouse.move(x - 30, y - 40, steps=4)
    lab.mouse.up()
    assert readings(lab, figure) != before
    assert link.get_attribute("href") != address
    assert abs(dot.bounding_box()["x"] - box["x"] + 30) < 8


@pytest.mark.parametrize("figure", FIGURES)
def test_a_point_can_be_dragged_with_a_finger(touched: Page, figure: str):
    """What changes is in view while the finger is down: the readings, and the setting at the point."""
    knob, dot = (touched.locator(f"#fig-{figure} {part}").first for part in (".lab-knob", ".lab-dot"))
    for _ in range(2):  # sections that come near the window are laid out, and change their heights
        dot.evaluate("node => node.scrollIntoView({ block: 'center', behavior: 'instant' })")
        touched.wait_for_timeout(200)
    before, box = readings(touched, figure), dot.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = touched.context.new_cdp_session(touched)
    for kind, moved in [("touchStart", 0), ("touchMove", 10), ("touchMove", 25)]:
        points = [{"x": x - moved, "y": y - moved}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert readings(touched, figure) != before
    for part in touched.locator(f"#fig-{figure} [data-reading]").all():
        expect(part).to_be_in_viewport(ratio=0.99)
    tip = touched.locator(f"#fig-{figure} .lab-tip:visible")
    expect(tip).to_have_text(knob.get_attribute("aria-valuetext"))
    expect(tip).to_be_in_viewport(ratio=0.99)
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(tip).to_have_count(0)
    assert abs(dot.bounding_box()["x"] - box["x"] + 25) < 8


def test_a_figure_shows_what_can_be_dragged(visit: Callable[..., Page], phone: Page):
    """A line precedes it, and points have arrows until one moves."""
    figure = visit("index", PHONE, phone).locator(".companion-shown-live .lab")
    hint = figure.locator(".lab-hint")
    assert hint.inner_text().startswith("Drag a point")
    assert hint.bounding_box()["y"] < figure.locator(".lab-panel").first.bounding_box()["y"]
    knob = figure.locator(".lab-knob").first
    expect(knob.locator(".lab-way").first).to_be_visible()
    knob.press("ArrowRight")
    expect(knob.locator(".lab-way").first).to_be_hidden()


# Collect the values that a slider shows from now on.
NOTE_VALUES = """slider => {
    window.seen = new Set();
    const note = () => { seen.add(slider.value); requestAnimationFrame(note); };
    requestAnimationFrame(note);
}"""


@pytest.mark.parametrize(("motion", "least", "most"), [("no-preference", 5, math.inf), ("reduce", 2, 4)])
def test_a_figure_plays_and_a_key_stops_it(visit: Callable[..., Page], motion: str, least: int, most: float):
    """The front page plays the needle from 10² to 10¹² tokens, in steps for readers who want no motion."""
    page = visit("index", reduced_motion=motion)
    figure = page.locator(".companion-shown-live .lab")
    button, slider = figure.locator(".lab-play"), figure.locator("#lab-needle-decades")
    slider.evaluate(NOTE_VALUES)  # in the page: a slow browser shows several steps before it answers
    button.click()
    expect(button).to_have_text("■ Stop")
    enough = f"seen.size >= {least} && Math.min(...seen) < 3 && Math.max(...seen) > 3"
    page.wait_for_function(f"() => ({enough})")
    if most < math.inf:
        page.wait_for_timeout(2000)
    seen = page.evaluate("[...seen]")
    assert least <= len(seen) <= most
    figure.locator("[role=slider]").first.press("ArrowRight")
    expect(button).to_have_text("▶ From 10² to 10¹² tokens")
    stopped = slider.input_value()
    page.wait_for_timeout(300)
    assert slider.input_value() == stopped


@pytest.mark.parametrize("figure", FIGURES)
def test_arrow_keys_move_every_control(lab: Page, figure: str):
    """Sliders and points can be focused, have a value for screen readers, and show their focus."""
    for control in lab.locator(f"#fig-{figure} :is(input[type=range], .lab-knob)").all():
        control.focus()
        values = [control.get_attribute("aria-valuetext")]
        for key in ("ArrowRight", "ArrowLeft", "ArrowLeft"):
            lab.keyboard.press(key)
            values.append(control.get_attribute("aria-valuetext"))
        assert all(values)
        assert len(set(values)) > 1
    knob = lab.locator(f"#fig-{figure} .lab-knob").first
    knob.press("End")
    assert knob.locator(".lab-reach").evaluate("node => getComputedStyle(node).strokeWidth") == "3px"
    right = knob.bounding_box()["x"]
    knob.press("Home")
    assert knob.bounding_box()["x"] < right


def test_a_setting_has_an_address(visit: Callable[..., Page], laboratory: Callable[..., Page]):
    """The link under a picture opens its setting; the address of the page opens the settings of all pictures."""
    lab = laboratory()
    lab.evaluate(MOVE, ["fig-live-plane", [7.5, 20]])
    lab.evaluate(MOVE, ["fig-live-needle", [25, 3]])
    lab.wait_for_function("location.search.includes('needle')")
    expected = {figure: readings(lab, figure) for figure in FIGURES}
    link = lab.locator("#fig-live-plane .lab-link").evaluate("node => node.href")
    assert parse_qs(urlsplit(link).query) == {"plane.tau": ["7.5"], "plane.decades": ["20"]}
    page = visit(lab.url)
    assert {figure: readings(page, figure) for figure in FIGURES} == expected
    page = visit(link)
    page.wait_for_function("scrollY > 0")
    assert readings(page, "live-plane") == expected["live-plane"]
    assert readings(page, "live-needle") != expected["live-needle"]
    page = laboratory("?plane.tau=1e9&plane.decades=nonsense&needle.nu=-3")
    assert page.locator("#lab-plane-tau").input_value() == "15"
    assert page.locator("#lab-plane-decades").input_value() == "6"
    assert page.locator("#lab-needle-nu").input_value() == "0"


def test_links_in_the_prose_are_valid_settings(laboratory: Callable[..., Page], lab: Page):
    """After opening a link, the picture's own link has the same setting. Each address joins one link per picture."""
    links = lab.locator("article a[href^='?']:not(.lab-link)").evaluate_all("all => all.map(node => node.href)")
    assert len(links) > 4
    by_figure = {part: [urlsplit(link).query for link in links if urlsplit(link).fragment == part] for part in ANCHORS}
    assert sum(map(len, by_figure.values())) == len(links)
    for queries in itertools.zip_longest(*by_figure.values(), fillvalue=""):
        page = laboratory(f"?{'&'.join(filter(None, queries))}")
        for part, query in zip(by_figure, queries, strict=True):
            current = page.locator(f"#{part} .lab-link").evaluate("node => node.href")
            assert parse_qs(query).items() <= parse_qs(urlsplit(current).query).items()


def test_other_chapters_show_interactive_pictures(visit: Callable[..., Page], laboratory, project: Project):
    """They are folded, have the readings of the laboratory and react to keys, and their link unfolds them."""
    lab = laboratory()
    at_first = {figure: readings(lab, figure) for figure in FIGURES}
    for borrower, moving in project.settings.live.items():
        chapter, figure = borrower.split("/")
        name = moving.partition("/")[2].replace("_", "-")
        page, place = visit(chapter), f"live-{name}"
        page.wait_for_selector(".lab-live", state="attached")
        fold = page.locator(f"#fig-{figure.replace('_', '-')} > details.companion-live")
        assert not fold.evaluate("node => node.open")
        fold.locator("summary").click()
        assert page.locator(".lab").count() == 1
        assert page.evaluate(READINGS, place) == at_first[name]
        fold.locator(".lab-knob").first.press("ArrowRight")
        moved = page.evaluate(READINGS, place)
        assert moved != at_first[name]
    page = visit(fold.locator(".lab-link").evaluate("node => node.href"))
    page.locator(f"#{place} .lab").wait_for(state="visible")
    assert page.evaluate(READINGS, place) == moved
