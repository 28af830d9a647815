"""The interactive pictures: their readings equal the values of the library, and every way to move them works."""

import itertools
import random
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import jax
import jax.random as jr
import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

from chapters.laboratory import key_pairs, ranges, regression_heads, several_risks
from chapters.laboratory.clouds import draw_clouds, outputs, prompt_outputs
from companion.project.paths import Project
from lib import single_location as sl
from lib.finite_prompt import participation, score_error
from lib.icl import best_values

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 375, "height": 812}
PAGE = "book/laboratory.html"
SETTINGS = 50
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
FIGURES = ("live-plane", "live-needle", "live-several", "live-valley", "live-cloud", "live-pair")
ANCHORS = [f"fig-{figure}" for figure in FIGURES]


def number(text: str) -> float:
    """Return the value of a reading such as `1.234 × 10⁻⁵`, `10⁶` or `0.25`."""
    digits, cross, power = text.rpartition(" × ")
    if not cross and text.startswith("10") and text[2:3] in "⁰¹²³⁴⁵⁶⁷⁸⁹⁻" and text[2:]:
        return 10.0 ** int(text[2:].translate(RAISED))
    if not cross:
        return float(text.translate(RAISED))
    return float(digits.translate(RAISED)) * 10.0 ** int(power.removeprefix("10").translate(RAISED))


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


def shown_at(page: Page, figure: str, settings: list[tuple[float, ...]]) -> dict[str, np.ndarray]:
    """Return the readings of a picture, by name, for each setting of its sliders."""
    rows = []
    for values in settings:
        page.evaluate(MOVE, [f"fig-{figure}", list(values)])
        rows.append({name: number(text) for name, text in readings(page, figure).items()})
    return {name: np.asarray([row[name] for row in rows]) for name in rows[0]}


def test_the_plane_agrees_with_the_library(float64, lab: Page):
    rng = random.Random(1)
    settings = [(round(rng.uniform(0, 15) * 20) / 20, round(rng.uniform(0, 400)) / 10) for _ in range(SETTINGS)]
    shown = shown_at(lab, "live-plane", settings)
    taus, decades = np.asarray(settings).T
    log_lengths = np.log(np.round(10.0**decades))
    exact = np.asarray(participation(taus, log_lengths))
    np.testing.assert_allclose(shown["participation"], exact, rtol=SHOWN + OFF)
    np.testing.assert_allclose(shown["shrinkage"], 1 - exact, rtol=SHOWN, atol=OFF)
    np.testing.assert_allclose(shown["error"], score_error(taus, log_lengths), rtol=SHOWN + OFF)
    np.testing.assert_allclose(shown["freezing"], np.sqrt(2 * log_lengths), rtol=SHOWN)


def test_the_needle_agrees_with_the_library(float64, lab: Page):
    rng = random.Random(2)
    settings = [(round(rng.uniform(0, 80) * 4) / 4, round(rng.uniform(0.3, 12) * 20) / 20) for _ in range(SETTINGS)]
    shown = shown_at(lab, "live-needle", settings)
    snrs, decades = np.asarray(settings).T
    tasks = sl.Spiked(np.round(10.0**decades), snrs)
    np.testing.assert_allclose(shown["softmax"], sl.bayes_risk(tasks), rtol=SHOWN + OFF)
    np.testing.assert_allclose(shown["element_wise"], sl.best_elementwise_risk(tasks), rtol=SHOWN + OFF)
    np.testing.assert_allclose(shown["linear"], sl.best_risk(tasks, sl.linear), rtol=SHOWN + OFF)
    np.testing.assert_allclose(shown["largest_score"], sl.best_risk(tasks, sl.hardmax), rtol=SHOWN + OFF)


def test_several_tokens_agree_with_the_library(float64, lab: Page):
    rng, stops = random.Random(4), several_risks.RELEVANT
    settings = [(rng.randrange(ranges.LARGEST_SEVERAL_SNR + 1), rng.randrange(len(stops))) for _ in range(12)]
    shown = shown_at(lab, "live-several", settings)
    snrs, places = np.asarray(settings, dtype=float).T
    task = sl.Several(np.full(snrs.size, 100.0), np.asarray(stops, dtype=float)[places.astype(int)], snrs)
    for name, head in several_risks.HEADS.items():
        np.testing.assert_allclose(shown[name], sl.best_risk(task, head), rtol=SHOWN)


def test_the_valley_agrees_with_the_library(float64, lab: Page):
    rng = random.Random(3)
    dimensions, noises, lengths = (1, 2, 5, 10), (0.0, 0.1, 1.0), (0.85, 2.0, 3.65, 5.95)
    settings = [
        (
            round(rng.uniform(0.05, 1) * 200) / 200,
            round(rng.uniform(0, 2) * 200) / 200,
            rng.choice(lengths),
            rng.randrange(len(dimensions)),
            rng.randrange(len(noises)),
        )
        for _ in range(SETTINGS)
    ]
    shown = shown_at(lab, "live-valley", settings)
    tilt, share, decades, dimension, noise = np.asarray(settings).T
    d, variance = np.asarray(dimensions)[dimension.astype(int)], np.asarray(noises)[noise.astype(int)]
    for selected in (decades == choice for choice in lengths):
        log_length = np.log(np.round(10.0 ** decades[selected]))
        excess = regression_heads.excess(
            d[selected], variance[selected], log_length[0], tilt[selected], (share / tilt)[selected]
        )
        linear = regression_heads.linear_excess(d[selected], variance[selected], log_length)
        np.testing.assert_allclose(shown["excess"][selected], excess, rtol=SHOWN + OFF)
        np.testing.assert_allclose(shown["linear"][selected], linear, rtol=SHOWN + OFF)
        np.testing.assert_allclose(shown["ratio"][selected], excess / linear, rtol=SHOWN + 2 * OFF)


def test_the_pair_agrees_with_the_library(float64, lab: Page):
    """Also with both keys at zero, where the pair is debiased gradient descent, and for the opposite pair."""
    rng = random.Random(5)
    settings = [
        (rng.randrange(-60, 61) / 100, rng.randrange(-60, 61) / 100, round(rng.uniform(1, 4) * 20) / 20)
        for _ in range(12)
    ]
    settings = [pair for pair in settings if pair[0] != pair[1]]
    shown = shown_at(lab, "live-pair", [*settings, (0.0, 0.0, 2.0)])
    task = key_pairs.task()

    best = jax.jit(lambda keys, log_length: best_values(task, keys, log_length)[1] - key_pairs.NOISE / 2)
    for place, (first, second, decades) in enumerate(settings):
        log_length = np.log(np.round(10.0**decades))
        descent, gap = float(key_pairs.descent_excess(log_length)) / 2, abs(first - second) / 2
        excess, opposite = (float(best(np.asarray(keys), log_length)) for keys in ((first, second), (gap, -gap)))
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
    for size, angle, stop, law in settings:
        lab.evaluate(MOVE, ["fig-live-cloud", [size, angle, stop, law]])
        shown, name = readings(lab, "live-cloud"), ("Gaussian", "mixture")[law]
        query = size * np.asarray([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
        tokens = table[(table["law"] == name) & (table["kind"] == "token")][["x", "y"]].to_numpy()[: stops[stop]]
        np.testing.assert_allclose(pair(shown["prompt"]), prompt_outputs(tokens, query), atol=OFF)
        np.testing.assert_allclose(pair(shown["law"]), outputs(clouds[name].law, query), atol=OFF + SHOWN)


def pair(text: str) -> list[float]:
    """Return the coordinates of a point that is shown as `(0.125, −1.000)`."""
    return [float(part.translate(RAISED)) for part in text.strip("()").split(",")]


@pytest.mark.parametrize("figure", FIGURES)
def test_a_point_can_be_dragged(lab: Page, figure: str):
    """The readings, the sliders and the page address change with it."""
    knob = lab.locator(f"#fig-{figure} .lab-knob").first
    knob.scroll_into_view_if_needed()
    before, box = readings(lab, f"{figure}"), knob.locator(".lab-dot").bounding_box()
    values = lab.locator(f"#fig-{figure} input[type=range]").evaluate_all("all => all.map(node => node.value)")
    lab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    lab.mouse.down()
    lab.mouse.move(box["x"] + box["width"] / 2 - 30, box["y"] + box["height"] / 2 - 40, steps=4)
    lab.mouse.up()
    assert readings(lab, figure) != before
    moved = lab.locator(f"#fig-{figure} input[type=range]").evaluate_all("all => all.map(node => node.value)")
    assert moved != values
    lab.wait_for_function("location.search !== ''")
    after = lab.locator(f"#fig-{figure} .lab-dot").first.bounding_box()
    assert abs(after["x"] - box["x"] + 30) < 8


@pytest.mark.parametrize("figure", FIGURES)
def test_a_point_can_be_dragged_with_a_finger(touched: Page, figure: str):
    page = touched
    dot = page.locator(f"#fig-{figure} .lab-knob .lab-dot").first
    for _ in range(2):  # sections that come near the window are laid out, and change their heights
        dot.evaluate("node => node.scrollIntoView({ block: 'center', behavior: 'instant' })")
        page.wait_for_timeout(200)
    before, box = readings(page, figure), dot.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    touch = page.context.new_cdp_session(page)

    def send(kind: str, moved: int) -> None:
        points = [] if kind == "touchEnd" else [{"x": x - moved, "y": y - moved}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    for kind, moved in [("touchStart", 0), ("touchMove", 10), ("touchMove", 25)]:
        send(kind, moved)
    # what changes is in view while the finger is down: the readings, and the setting at the point
    assert readings(page, figure) != before
    for part in page.locator(f"#fig-{figure} [data-reading]").all():
        expect(part).to_be_in_viewport(ratio=0.99)
    tip = page.locator(f"#fig-{figure} .lab-tip:visible")
    expect(tip).to_have_count(1)
    expect(tip).to_be_in_viewport(ratio=0.99)
    assert tip.text_content() == page.locator(f"#fig-{figure} .lab-knob").first.get_attribute("aria-valuetext")
    send("touchEnd", 25)
    expect(tip).to_have_count(0)
    after = dot.bounding_box()
    assert abs(after["x"] - box["x"] + 25) < 8
    touch.detach()


def test_a_figure_shows_what_can_be_dragged(visit: Callable[..., Page], phone: Page):
    """A line precedes it; points have arrows until one moves, which a first touch beside them emphasises."""
    page = visit("index", PHONE, phone)
    figure = page.locator(".companion-shown-live .lab")
    hint, panel = figure.locator(".lab-hint"), figure.locator(".lab-panel").first
    assert hint.inner_text().startswith("Drag a point")
    assert hint.bounding_box()["y"] < panel.bounding_box()["y"]
    arrows = figure.locator(".lab-knob").first.locator(".lab-way")
    expect(arrows.first).to_be_visible()
    width = "node => getComputedStyle(node).strokeWidth"
    panel.evaluate("node => node.scrollIntoView({ block: 'center', behavior: 'instant' })")
    thin, box = arrows.first.evaluate(width), panel.bounding_box()
    touch = page.context.new_cdp_session(page)
    point = {"x": box["x"] + box["width"] / 3, "y": box["y"] + box["height"] / 3}
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [point]})
    assert arrows.first.evaluate(width) != thin
    touch.send("Input.dispatchTouchEvent", {"type": "touchCancel", "touchPoints": []})
    figure.locator("[role=slider]").first.focus()
    page.keyboard.press("ArrowRight")
    expect(arrows.first).to_be_hidden()


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_a_figure_plays_and_a_key_stops_it(visit: Callable[..., Page], motion: str):
    """The front page plays the needle from 10² to 10¹² tokens, in steps for readers who want no motion."""
    page = visit("index", DESKTOP, reduced_motion=motion)
    figure = page.locator(".companion-shown-live .lab")
    button, slider = figure.locator(".lab-play"), figure.locator("#lab-needle-decades")
    button.click()
    expect(button).to_have_text("■ Stop")
    seen = set()
    for _ in range(40):
        seen.add(float(slider.input_value()))
        if motion == "no-preference" and len(seen) > 4 and max(seen) > 3:
            break
        page.wait_for_timeout(50)
    assert min(seen) < 3 < max(seen)
    assert len(seen) > 4 if motion == "no-preference" else 2 <= len(seen) <= 4
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
        assert control.evaluate("node => node === document.activeElement")
        before = control.get_attribute("aria-valuetext")
        assert before
        lab.keyboard.press("ArrowRight")
        after = control.get_attribute("aria-valuetext")
        lab.keyboard.press("ArrowLeft")
        lab.keyboard.press("ArrowLeft")
        assert {after, control.get_attribute("aria-valuetext")} != {before}
    knob = lab.locator(f"#fig-{figure} .lab-knob").first
    knob.focus()
    lab.keyboard.press("ArrowRight")
    assert knob.locator(".lab-reach").evaluate("node => getComputedStyle(node).strokeWidth") == "3px"
    lab.keyboard.press("End")
    right = knob.bounding_box()["x"]
    lab.keyboard.press("Home")
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
    page = visit(lab.url, DESKTOP)
    assert {figure: readings(page, figure) for figure in FIGURES} == expected
    page = visit(link, DESKTOP)
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


def test_scripts_are_loaded_only_here_and_from_this_host(browser: Browser, address: str, project: Project):
    """The page contains its tables; page and scripts have less than a quarter of a megabyte per figure."""
    page, responses = browser.new_page(viewport=DESKTOP), {}
    page.on("response", lambda response: responses.update({response.url: response}))
    page.goto(f"{address}/book/{project.notebooks()[0]}.html")
    page.wait_for_load_state("networkidle")
    assert [url for url in responses if "/chapters/" in url] == []
    responses.clear()
    page.goto(f"{address}/{PAGE}")
    page.wait_for_selector("#fig-live-plane.lab-live")
    page.evaluate(MOVE, ["fig-live-plane", [3, 9]])
    page.wait_for_load_state("networkidle")
    assert {urlsplit(url).netloc for url in responses} == {urlsplit(address).netloc}
    loaded = {url: response for url, response in responses.items() if "/chapters/" in url or url.endswith(PAGE)}
    assert [url for url in loaded if url.endswith((".csv", ".json"))] == []
    assert sum(len(response.body()) for response in loaded.values()) < 250_000 * len(FIGURES)
    page.close()


def test_other_chapters_show_interactive_pictures(visit: Callable[..., Page], laboratory, project: Project):
    """They are folded, have the readings of the laboratory, react to keys, and their link unfolds them."""
    assert project.settings.live
    lab = laboratory()
    at_first = {figure: readings(lab, figure) for figure in FIGURES}
    for borrower, moving in project.settings.live.items():
        name = moving.partition("/")[2].replace("_", "-")
        page, place = visit(borrower.partition("/")[0], DESKTOP), f"live-{name}"
        page.wait_for_selector(".lab-live", state="attached")
        fold = page.locator(f"#fig-{borrower.partition('/')[2].replace('_', '-')} > details.companion-live")
        assert not fold.evaluate("node => node.open")
        fold.locator("summary").click()
        assert page.locator(".lab").count() == 1
        before = page.evaluate(READINGS, place)
        assert before == at_first[name]
        knob = fold.locator(".lab-knob").first
        knob.focus()
        page.keyboard.press("ArrowRight")
        after = page.evaluate(READINGS, place)
        assert after != before
        page = visit(fold.locator(".lab-link").evaluate("node => node.href"), DESKTOP)
        page.locator(f"#{place} .lab").wait_for(state="visible")
        assert page.evaluate(READINGS, place) == after


def test_without_scripts_static_pictures_are_shown(visit: Callable[..., Page], unscripted: Page, project: Project):
    page = visit(next(iter(project.settings.live)).partition("/")[0], page=unscripted)
    page.locator("details.companion-live > summary").click()
    assert page.locator("details.companion-live img:visible").count() == 1
    page = visit("laboratory", page=unscripted)
    for figure in FIGURES:
        assert page.locator(f"#fig-{figure} img:visible").count() == 1
    assert page.locator(".lab").count() == 0


def test_the_laboratory_works_from_files(visit: Callable[..., Page], events, site):
    page = visit((site / PAGE).as_uri(), DESKTOP)
    before = readings(page, "live-plane")
    page.evaluate(MOVE, ["fig-live-plane", [3, 9]])
    assert readings(page, "live-plane") != before
    page.wait_for_timeout(300)
    assert events.errors == []
