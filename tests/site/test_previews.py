"""Previews: a card next to a link shows what the link leads to."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

PHONE = {"width": 390, "height": 844}
CHAPTER, CARD = "gaussian_limit", "#companion-preview"
CLAIM, FIGURE = "article section a.companion-claim[href^='#']", "article a[href*='#fig-']:not(.headerlink)"
FORMULA = "article a[href*='#equation-']:not(.headerlink)"
# Links on a page, to places on the same page or on another, each with a text of its card: by default that of the link.
LINKS = {
    CHAPTER: [
        (CLAIM, "Measured"),
        (FIGURE, None),
        (".bibtex-citation a:has-text('BB26')", "a Measure-based Perspective"),
    ],
    "what_holds": [("article a[href$='gaussian_limit.html#bb26-lemma-2-1']", "Lemma 2.1 of [BB26]"), (FIGURE, None)],
    "needle_in_a_long_prompt": [("a.companion-term:has-text('signal strength')", "how much the scores reveal")],
    "index": [
        (".companion-chapters a[href='needle_in_a_long_prompt.html']", re.compile(r"\d+\. A needle in a long")),
    ],
    "measures": [(FORMULA, None)],
    "trained_at_other_lengths": [(FORMULA, None)],
}


@pytest.mark.parametrize("name", LINKS)
def test_a_card_shows_what_a_link_leads_to(visit, events, address: str, name: str):
    """Its formulas are set, its pictures loaded, all from this site; it fits the window. The last link is followed."""
    page = visit(name)
    for selector, text in LINKS[name]:
        link, card = page.locator(selector).first, page.locator(CARD)
        title = link.get_attribute("title")
        link.hover()
        expect(card).to_contain_text(text or link.inner_text())
        assert link.get_attribute("title") is None  # the browser would show it over the card
        expect(card.locator("img:visible, .katex-html, .companion-evidence, a").first).to_be_visible()
        page.wait_for_function(f"[...document.querySelectorAll('{CARD} img')].every(image => image.naturalWidth)")
        assert "\\(" not in card.inner_text()
        ids = page.eval_on_selector_all("[id]", "all => all.map(node => node.id)")
        assert len(ids) == len(set(ids))
        box, window = card.bounding_box(), page.viewport_size
        assert 0 <= box["x"] <= window["width"] - box["width"]
        assert 0 <= box["y"] <= window["height"] - box["height"]
        assert [url for url in events["request"] if not url.startswith((address, "about:", "data:"))] == []
        card.hover()
        page.wait_for_timeout(400)  # longer than it stays without the pointer
        expect(card).to_be_visible()
        page.mouse.move(2, 2)
        expect(card).to_be_hidden()
        assert link.get_attribute("title") == title
    to = link.evaluate("link => link.href")
    link.click()
    page.wait_for_url(to)
    if "#" in to:
        expect(page.locator(":target")).to_be_in_viewport()


def test_focus_opens_the_card_and_escape_closes_it(visit: Callable[..., Page]):
    """The card is the accessible description of the link; Escape keeps the focus on the link."""
    page = visit(CHAPTER)
    link, card = page.locator(CLAIM).first, page.locator(CARD)
    link.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    expect(card).to_be_visible()
    assert link.get_attribute("aria-describedby") == card.get_attribute("id")
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    assert link.get_attribute("aria-describedby") is None
    assert link.evaluate("link => link === document.activeElement")


def test_links_to_sections_and_other_pages_have_no_card(visit: Callable[..., Page]):
    """A section can be long."""
    page = visit("index")
    page.locator("article h2").first.evaluate("""heading => {
        const link = document.createElement('a');
        link.href = `#${heading.parentElement.id}`;
        link.textContent = link.id = 'to-a-section';
        document.querySelector('article p').append(link);
    }""")
    for selector in ("#to-a-section", "article a[href='what_holds.html']"):
        page.locator(selector).first.hover()
        page.wait_for_timeout(800)
        assert page.locator(f"{CARD}:visible").count() == 0


def test_a_tap_follows_the_link_and_a_long_press_shows_the_card(visit: Callable[..., Page], phone: Page):
    """On a phone the card is at the lower edge of the screen, and a long press does not follow the link."""
    page = visit(CHAPTER, PHONE, phone)
    link, card = page.locator(CLAIM).first, page.locator(CARD)
    link.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    box = link.bounding_box()
    touch = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    fingers = page.context.new_cdp_session(page)
    fingers.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [touch]})
    page.wait_for_timeout(800)
    expect(card).to_be_visible()
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_timeout(300)
    expect(card).to_be_visible()
    assert page.evaluate("location.hash") == ""
    position = card.bounding_box()
    assert 0 <= position["x"] <= PHONE["width"] - position["width"]
    page.touchscreen.tap(5, 5)
    expect(card).to_be_hidden()
    link.tap()
    page.wait_for_function("location.hash !== ''")
    expect(card).to_be_hidden()
