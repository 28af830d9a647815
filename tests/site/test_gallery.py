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


def test_pictures_are_loaded_when_they_are_shown(visit: Callable[..., Page], events):
    page = visit("gallery", color_scheme="dark")
    page.wait_for_load_state("networkidle")
    pictures = [url for url in events.requested if "/figures/" in url]
    assert 0 < len(pictures) < page.locator(CARD).count() / 2
    shown = page.locator(f"{CARD} img").filter(visible=True)
    assert shown.first.get_attribute("src").endswith(".svg")


def test_the_gallery_can_be_filtered(gallery: Page, project: Project, address: str):
    """By words, by part and by chapter; the address contains the filter."""
    every = gallery.locator(CARD).count()
    expect(gallery.locator(OUTPUT)).to_have_text(f"{every} of {every} figures")
    chapter = project.notebooks()[2]
    gallery.select_option("select[name=topic]", chapter)
    shown = gallery.locator(f"{CARD} a").filter(visible=True)
    hrefs = shown.evaluate_all("all => all.map(link => link.getAttribute('href'))")
    assert {href.partition(".html")[0] for href in hrefs} == {chapter}
    gallery.select_option("select[name=topic]", "part-1")
    gallery.fill("input[name=words]", "tilts")
    assert 0 < shown.count() < every
    count = gallery.locator(OUTPUT).inner_text()
    gallery.goto(gallery.url)
    expect(gallery.locator(OUTPUT)).to_have_text(count)
    gallery.select_option("select[name=topic]", "exact_finite_prompt")
    gallery.fill("input[name=words]", "freezing")  # "Attention freezes when …"
    expect(gallery.locator(f"{CARD} a[href$='#fig-tokens-under-the-bell']")).to_be_visible()
    gallery.select_option("select[name=topic]", "part-1")
    gallery.fill("input[name=words]", "zzzz")
    expect(gallery.locator(OUTPUT)).to_have_text(f"0 of {every} figures")
    assert gallery.locator("section.companion-gallery > h2").filter(visible=True).count() == 0


def test_the_gallery_works_without_scripts(visit: Callable[..., Page], unscripted: Page):
    page = visit("gallery", PHONE, unscripted)
    assert page.locator(f"{CARD} a:visible").count() == page.locator(CARD).count() > 50
    expect(page.locator(".companion-gallery-filter")).to_be_hidden()
