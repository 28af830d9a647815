"""Faults that readers of the site found on phones, on zoomed pages, on paper, and in actions and colours."""

import re

import pytest
from playwright.sync_api import Page, expect

from companion.figures.style import contrast

DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
NEEDLE, LABORATORY = "needle_in_a_long_prompt", "laboratory"
# The smallest text of a published picture, in pixels at its own size, and the smallest that can be read on a phone.
SMALLEST_TEXT, READABLE = 12.2, 9.0


def colour(text: str) -> tuple[float, ...]:
    """Return the parts of a colour such as `rgb(255, 0, 0)`."""
    return tuple(float(part) / 255 for part in re.findall(r"[\d.]+", text)[:3])


def style(page: Page, selector: str, name: str) -> str:
    return page.locator(selector).first.evaluate("(node, name) => getComputedStyle(node)[name]", name)


def test_readings_never_cover_a_figure_on_a_low_screen(visit):
    """Such as a phone in landscape, or a page at 200 %. Elsewhere they stay in view, and are as wide as the figure."""
    page = visit(LABORATORY, {"width": 844, "height": 390})
    page.wait_for_selector(".lab-readings")
    assert style(page, ".lab-readings", "position") == "static"
    page.set_viewport_size({"width": 720, "height": 450})
    assert style(page, ".lab-readings", "position") == "static"
    page.set_viewport_size({"width": 800, "height": 1000})
    assert style(page, ".lab-readings", "position") == "sticky"
    inner, outer = (page.locator(part).first.bounding_box()["width"] for part in (".lab-readings", ".lab-panels"))
    assert inner == pytest.approx(outer, abs=1)


def test_readings_stay_in_view_only_with_the_picture(visit):
    """On a phone, they are not on the first screen of the front page."""
    page = visit("index", PHONE)
    page.wait_for_selector(".lab-readings")
    expect(page.locator(".lab-readings")).not_to_be_in_viewport()
    page.locator(".lab-panel").first.evaluate("node => node.scrollIntoView({ block: 'center', behavior: 'instant' })")
    expect(page.locator(".lab-readings")).to_be_in_viewport(ratio=1)


def test_a_figure_that_opens_below_the_screen_is_scrolled_into_view(visit):
    """Its first line says which figure it is. One that opens in view is not moved."""
    page = visit(NEEDLE, PHONE)
    action = page.locator("details.companion-live > summary").first
    page.wait_for_selector(".lab", state="attached")
    for _ in range(2):  # sections that come near the window are laid out, and change their heights
        action.evaluate("node => node.scrollIntoView({ block: 'end', behavior: 'instant' })")
        page.wait_for_timeout(200)
    assert action.bounding_box()["y"] > PHONE["height"] - 100
    action.click()
    page.wait_for_function(
        "document.querySelector('details.companion-live > summary').getBoundingClientRect().top < 120"
    )
    expect(page.locator(".companion-live-number")).to_have_text(
        re.compile(r"This is Fig\. \d+\.\d+, not the figure above\.")
    )
    expect(page.locator(".companion-live .lab-panel").first).to_be_in_viewport(ratio=1)
    page.wait_for_timeout(500)
    action.click()
    before = action.bounding_box()["y"]
    action.click()
    page.wait_for_timeout(500)
    assert action.bounding_box()["y"] == pytest.approx(before, abs=2)


def test_a_phone_has_no_maps_and_the_name_of_the_book(visit):
    page = visit("maps", PHONE)
    assert page.locator(".companion-map").count() > 0
    assert page.locator(".companion-map:visible").count() == 0
    assert page.locator("article h2:visible").count() == 0
    expect(page.locator(".companion-home")).to_be_in_viewport()
    name = page.locator("meta[property='og:site_name']").get_attribute("content")
    expect(page.locator(".companion-home")).to_have_text(name)
    expect(page.locator(".companion-here")).to_have_text("Maps of the chapters and the papers")
    page.set_viewport_size(DESKTOP)
    assert page.locator(".companion-map:visible").count() > 0
    expect(page.locator(".companion-home")).to_be_hidden()


def test_pictures_can_be_read_on_a_phone(visit):
    """They scroll in their frames, and say so, and that a tap enlarges them; small crops are not shown."""
    page = visit(NEEDLE, PHONE)
    scales = page.locator("figure.companion-figure > a > img").evaluate_all(
        "all => all.map(image => image.getBoundingClientRect().width / image.getAttribute('width'))"
    )
    assert scales
    assert min(scales) * SMALLEST_TEXT >= READABLE
    sign = "node => getComputedStyle(node, '::after').content"
    picture = page.locator("figure.companion-figure > a.companion-zoom").first
    assert "swipe sideways · ⤢ tap to enlarge" in picture.evaluate(sign)
    assert page.locator(".companion-finding").count() > 0
    assert page.locator(".companion-finding:visible").count() == 0


def test_a_wide_table_shows_on_a_phone_that_it_scrolls(visit):
    """It has a shadow at its edge, and breaks no word of a link."""
    page = visit("benchmarks", PHONE)
    widths = page.locator("article table").evaluate_all(
        "all => all.map(table => table.scrollWidth - table.clientWidth)"
    )
    table = page.locator("article table").nth(widths.index(max(widths)))
    table.evaluate("node => node.scrollIntoView()")
    expect(table).to_have_attribute("tabindex", "0")
    assert "gradient" in table.evaluate("node => getComputedStyle(node).backgroundImage")
    page = visit("notation", PHONE)
    # a column is at least as wide as its longest word
    assert style(page, "article table a", "overflowWrap") != "anywhere"


def test_paper_has_text_and_figures_and_no_controls(visit):
    page = visit("claims", media="print")
    assert page.locator(".companion-filter:visible").count() == 0
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # opens the chapters of the ledger
    assert page.locator("details.companion-chapter:not([open])").count() == 0
    page = visit(NEEDLE, media="print")
    expect(page.locator("h1:visible")).to_have_text(re.compile(r"^\d+\. A needle in a long prompt"))
    for gone in ("#jb-print-toc", ".companion-line summary", ".companion-live", ".toggle-button", "article button"):
        assert page.locator(f"{gone}:visible").count() == 0, gone
    assert page.locator("article details:not([open]):visible").count() == 0
    expect(page.locator(".companion-lead img")).to_be_visible()
    assert style(page, "figure.companion-figure", "breakInside") == "avoid"
    # sections far from the window are printed; no formula is cut; boxes that hide what overflows would not be split
    assert style(page, "article.bd-article > section > section >> nth=-1", "contentVisibility") == "visible"
    assert style(page, ".katex-display", "overflowX") == "visible"
    assert style(page, ".katex-display > .katex", "whiteSpace") == "normal"
    boxes = page.locator("article .admonition:visible").evaluate_all(
        "all => all.map(box => [getComputedStyle(box).breakInside, getComputedStyle(box).overflow].join())"
    )
    assert set(boxes) == {"auto,visible"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_links_have_one_colour_and_enough_contrast(visit, scheme):
    page = visit("notation", color_scheme=scheme)
    assert style(page, "article table a", "color") == style(page, "article p a", "color")
    page.locator("article p a").first.hover()
    for word, paper in (("article p a", "body"), ("#pst-back-to-top", "#pst-back-to-top")):
        assert contrast(colour(style(page, word, "color")), colour(style(page, paper, "backgroundColor"))) >= 4.5


def test_the_first_action_of_a_figure_is_to_move_it(visit):
    page = visit(NEEDLE)
    figure = page.locator("figure.companion-figure:has(> details.companion-live)").first
    assert figure.evaluate("node => [...node.children].map(child => child.tagName)") == ["A", "DETAILS", "FIGCAPTION"]
    for action in ("details.companion-live > summary", ".companion-head a.download", ".companion-head summary"):
        assert style(page, action, "borderStyle") == "solid"
        assert style(page, action, "textDecorationLine") == "none"
    # links to files in the folds have the colour of others
    assert style(page, ".companion-data a.download", "color") == style(page, "article p a", "color")


def test_the_link_to_a_setting_is_copied(visit):
    page = visit(LABORATORY)
    link = page.locator(".lab-link").first
    link.click()
    expect(link).to_have_text("Link copied")
    assert page.evaluate("navigator.clipboard.readText()") == link.evaluate("node => node.href")


def test_interactive_figures_have_the_face_of_the_text(visit):
    """A focused point has one ring. Below its own figure, the message is that of the caption."""
    page = visit(LABORATORY)
    page.wait_for_selector(".lab-axis text")
    # it replaces the picture
    assert page.locator(".lab-live > a.companion-zoom:visible").count() == 0
    assert style(page, ".lab-axis text", "fontFamily") == style(page, "article p", "fontFamily")
    messages = page.locator("figure .lab-says").evaluate_all("all => all.map(node => [node.hidden, node.textContent])")
    assert any(is_hidden for is_hidden, _ in messages)
    # a message that follows the setting stays
    assert all("Softmax finds one token among" in text for is_hidden, text in messages if not is_hidden)
    knob = page.locator(".lab-knob").first
    knob.focus()
    page.keyboard.press("ArrowRight")
    assert knob.evaluate("node => getComputedStyle(node).outlineStyle") == "none"
    # the setting at the point is read before the words that it meets
    assert float(style(page, ".lab-panel:has(:focus-visible) .lab-words", "opacity")) < 0.5
    before, place = knob.get_attribute("aria-valuetext"), page.evaluate("scrollY")
    page.keyboard.press("PageDown")
    page.keyboard.press("PageUp")
    page.keyboard.press("PageUp")
    assert knob.get_attribute("aria-valuetext") != before
    assert page.evaluate("scrollY") == place
