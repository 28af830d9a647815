"""Pages without scripts: they are whole, and their folds open."""

import pytest
from playwright.sync_api import Page, expect

DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
# Pages, with selectors and the number of elements that each finds.
ELEMENTS = {
    "gaussian_limit": {
        ".math:not(:has(.katex-html))": 0,
        "figure.companion-figure:not(details *):not(:has(img:visible))": 0,
    },
    "index": {".companion-shown-live img:visible": 1},
    "gallery": {".companion-gallery-filter:visible": 0, ".companion-gallery-card:not(:has(a:visible))": 0},
    "laboratory": {".lab": 0, "figure[id^=fig-live] img:visible": 6},
}
LAST_SECTION = "article.bd-article > section > section >> nth=-1"


@pytest.mark.parametrize("name", ELEMENTS)
def test_a_page_is_whole_on_a_phone(visit, unscripted: Page, name: str):
    page = visit(name, PHONE, unscripted)
    assert {selector: page.locator(selector).count() for selector in ELEMENTS[name]} == ELEMENTS[name]
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.locator(LAST_SECTION).evaluate("node => getComputedStyle(node).contentVisibility") == "visible"


def test_folds_open(visit, unscripted: Page):
    """Those of code and of interactive figures. The link of a picture leads to its file."""
    page = visit("needle_in_a_long_prompt", page=unscripted)
    for fold, content in ((".cell details.hide", "pre"), ("details.companion-live", "img")):
        page.locator(f"{fold} > summary").first.click()
        expect(page.locator(f"{fold} {content}:visible").first).to_be_visible()
    assert page.locator("a.companion-zoom:visible").first.get_attribute("href").endswith(".svg")


def test_parts_of_a_figure_open_below_its_line(visit, unscripted: Page):
    """The keyboard opens them. An open part has the full width, and opening another closes it."""
    page = visit("gaussian_limit", PHONE, unscripted)
    line = page.locator(".companion-line.companion-details").first
    folds = line.locator(":scope > details")
    last = folds.last.locator("summary")
    for viewport in (PHONE, DESKTOP):
        page.set_viewport_size(viewport)
        last.scroll_into_view_if_needed()
        for fold in folds.all():
            fold.locator("summary").first.focus()
            page.keyboard.press("Enter")
            assert line.locator(":scope > details[open]").count() == 1
            content = fold.locator(":scope > :not(summary)").first
            assert content.is_visible()
            assert content.bounding_box()["y"] >= last.bounding_box()["y"] + last.bounding_box()["height"]
            assert line.bounding_box()["width"] <= viewport["width"]
        assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
