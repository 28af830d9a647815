"""The gallery: every figure with its picture, its message and a link, and a filter."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from companion.project.notebooks import Notebook
from companion.project.paths import Project

PHONE = {"width": 390, "height": 844}
CARD = ".companion-gallery-card"
OUTPUT = "form.companion-gallery-filter output"


@pytest.fixture
def gallery(visit: Callable[..., Page]) -> Page:
    return visit("gallery")


def test_every_figure_has_a_card_that_opens_it(gallery: Page, project: Project):
    """Cards are in the order of the book, with the headline of the figure."""
    figures = [(name, figure) for name in project.notebooks() for figure in Notebook.named(project, name).figures]
    links = gallery.locator(f"{CARD} a").evaluate_all("all => all.map(link => link.getAttribute('href'))")
    assert links == [f"{name}.html#fig-{figure.replace('_', '-')}" for name, figure in figures]
    gallery.locator(f"{CARD} a").nth(3).click()
    gallery.wait_for_url(f"**/{links[3]}")
    expect(gallery.locator(":target")).to_be_in_viewport()


def test_pictures_are_large_and_loaded_when_they_are_shown(visit: Callable[..., Page], events):
    page = visit("gallery")
    page.wait_for_load_state("networkidle")
    pictures = [url for url in events["request"] if "/figures/" in url]
    assert 0 < len(pictures) < page.locator(CARD).count() / 2
    shown = page.locator(f"{CARD} img:visible").first
    assert shown.get_attribute("src").endswith(".svg")
    for viewport in (page.viewport_size, PHONE):
        page.set_viewport_size(viewport)
        assert shown.bounding_box()["width"] > 240
    assert page.locator(f"{CARD} a").first.evaluate("node => getComputedStyle(node).lineHeight") < "30"


def test_the_gallery_can_be_filtered(gallery: Page, project: Project):
    """By words, by part and by chapter; the address contains the filter."""
    every = gallery.locator(CARD).count()
    expect(gallery.locator(OUTPUT)).to_have_text(f"{every} of {every} figures")
    places = [gallery.locator(f"form [name={name}]").bounding_box() for name in ("words", "topic")]
    middles = [box["y"] + box["height"] / 2 for box in places]
    assert middles[0] == pytest.approx(middles[1], abs=4)  # fields are in one line
    shown = gallery.locator(f"{CARD} a:visible")
    for topic, words in ((project.notebooks()[2], ""), ("part-1", "tilts")):
        gallery.select_option("select[name=topic]", topic)
        gallery.fill("input[name=words]", words)
        assert 0 < shown.count() < every
        count = gallery.locator(OUTPUT).inner_text()
        gallery.goto(gallery.url)
        expect(gallery.locator(OUTPUT)).to_have_text(count)
    gallery.select_option("select[name=topic]", "exact_finite_prompt")
    gallery.fill("input[name=words]", "freezing")  # "Attention freezes when …"
    expect(gallery.locator(f"{CARD} a[href$='#fig-tokens-under-the-bell']")).to_be_visible()
    gallery.fill("input[name=words]", "zzzz")
    expect(gallery.locator(OUTPUT)).to_have_text(f"0 of {every} figures")
    assert gallery.locator("section.companion-gallery > h2:visible").count() == 0
