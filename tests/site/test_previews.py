"""Previews: a card next to a link shows the theorem, claim or reference that the link leads to."""

from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Locator, Page, expect

from companion.project.paths import Project

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
CARD = "#companion-preview"
CLAIM = "article > section a.companion-claim[href^='#'], article section a.companion-claim[href^='#']"


@pytest.fixture
def chapter(visit: Callable[..., Page], project: Project) -> Page:
    """The second chapter with typeset formulas."""
    return visit(project.notebooks()[1], DESKTOP)


def words(text: str) -> str:
    return " ".join(text.split())


def statement(page: Page, link: Locator) -> str:
    """Return the statement of the claim that `link` leads to; it may be folded."""
    return words(page.locator(f"[id='{link.get_attribute('href')[1:]}'] strong").first.text_content())


def test_pointing_at_a_number_shows_its_claim(chapter: Page):
    """The card stays while the pointer is on it, adds no duplicate ids, fits the window, and disappears afterwards."""
    link, card = chapter.locator(CLAIM).first, chapter.locator(CARD)
    link.hover()
    expect(card).to_be_visible()
    assert statement(chapter, link) in words(card.text_content())
    box = card.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= DESKTOP["width"]
    assert box["y"] + box["height"] <= DESKTOP["height"]
    ids = chapter.eval_on_selector_all("[id]", "all => all.map(node => node.id)")
    assert len(ids) == len(set(ids))
    card.hover()
    chapter.wait_for_timeout(500)
    expect(card).to_be_visible()
    chapter.mouse.move(2, 2)
    expect(card).to_be_hidden()


def test_focus_opens_the_card_and_escape_closes_it(chapter: Page):
    """The card is the accessible description of the link; Escape keeps the focus on the link."""
    link, card = chapter.locator(CLAIM).first, chapter.locator(CARD)
    link.focus()
    chapter.keyboard.press("Shift+Tab")
    chapter.keyboard.press("Tab")
    expect(card).to_be_visible()
    assert link.get_attribute("aria-describedby") == card.get_attribute("id")
    chapter.keyboard.press("Escape")
    expect(card).to_be_hidden()
    assert link.get_attribute("aria-describedby") is None
    assert link.evaluate("link => link === document.activeElement")
    chapter.keyboard.press("Shift+Tab")
    chapter.keyboard.press("Tab")
    expect(card).to_be_visible()
    chapter.keyboard.press("Tab")
    shown = chapter.locator(f"{CARD}:visible").filter(has_text=statement(chapter, link))
    expect(shown).to_have_count(0)


def test_a_citation_shows_the_reference(chapter: Page):
    """The card has a link to the paper and replaces the tooltip of the browser while it is shown."""
    link, card = chapter.locator(".bibtex-citation a", has_text="BB26").first, chapter.locator(CARD)
    before = link.get_attribute("title")
    link.hover()
    expect(card).to_contain_text("a Measure-based Perspective")
    assert link.get_attribute("title") is None
    assert card.locator("a[href='https://arxiv.org/abs/2512.11784']").count() > 0
    chapter.mouse.move(2, 2)
    expect(card).to_be_hidden()
    assert link.get_attribute("title") == before


def test_a_theorem_of_another_page_is_shown_typeset(visit: Callable[..., Page], events, address: str):
    """It is fetched from the same site; its formulas are typeset and its links work."""
    page = visit("what_holds", DESKTOP)
    link, card = page.locator("article a[href$='gaussian_limit.html#bb26-lemma-2-1']").first, page.locator(CARD)
    link.hover()
    expect(card).to_contain_text("Lemma 2.1 of [BB26]")
    expect(card.locator(".katex-html").first).to_be_visible()
    assert "\\(" not in card.inner_text()
    assert all("/book/" in href for href in card.locator("a").evaluate_all("all => all.map(link => link.href)"))
    assert [url for url in events.requested if not url.startswith((address, "about:"))] == []


def test_a_link_to_a_figure_shows_its_picture_and_headline(visit: Callable[..., Page], project: Project):
    """This holds for figures of the same page and of others."""
    for name in (project.notebooks()[1], "what_holds"):
        page = visit(name, DESKTOP)
        link, card = page.locator("article a[href*='#fig-']:not(.headerlink)").first, page.locator(CARD)
        link.hover()
        expect(card.locator("img:visible")).to_have_count(1)
        page.wait_for_function("document.querySelector('#companion-preview img').naturalWidth > 0")
        assert words(link.inner_text()) in words(card.inner_text())
        box = card.bounding_box()
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= DESKTOP["height"]


def test_the_first_mention_of_a_term_shows_its_definition(visit: Callable[..., Page], site: Path):
    """The definition is a row of the notation or a box; a chapter does not link to its own definitions."""
    page = visit("needle_in_a_long_prompt", DESKTOP)
    term, card = page.locator("a.companion-term", has_text="signal strength"), page.locator(CARD)
    assert term.count() == 1
    term.hover()
    expect(card).to_contain_text("how much the scores reveal")
    expect(card.locator(".katex-html").first).to_be_visible()
    term.click()
    page.wait_for_url("**/notation.html#symbol-nu")
    expect(page.locator(":target")).to_be_in_viewport()
    own = BeautifulSoup((site / "book/measures.html").read_text(encoding="utf-8"), "html.parser")
    terms = [term.get_text() for term in own.select("a.companion-term")]
    assert terms
    assert not [term for term in terms if "tilt" in term.lower()]


def test_links_to_headings_have_no_card(chapter: Page):
    """A section can be long."""
    heading = chapter.locator("article section[id] > h2").nth(1)
    heading.evaluate("""node => {
        const link = document.createElement('a');
        link.href = `#${node.parentElement.id}`;
        link.textContent = link.id = 'to-a-heading';
        document.querySelector('article p').append(link);
    }""")
    chapter.locator("#to-a-heading").hover()
    chapter.wait_for_timeout(800)
    assert chapter.locator(f"{CARD}:visible").count() == 0


def test_a_tap_follows_the_link_and_a_long_press_shows_the_card(
    visit: Callable[..., Page], phone: Page, project: Project
):
    """On a phone the card is at the lower edge of the screen, and a long press does not follow the link."""
    page = visit(project.notebooks()[1], PHONE, phone)
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
    assert position["x"] >= 0
    assert position["x"] + position["width"] <= PHONE["width"]
    page.touchscreen.tap(5, 5)
    expect(card).to_be_hidden()
    link.tap()
    page.wait_for_function("location.hash !== ''")
    expect(card).to_be_hidden()


def test_previews_work_from_files(visit: Callable[..., Page], events, site: Path, project: Project):
    """Claims come from the page itself, and references from the list below the page."""
    page = visit((site / project.book.name / f"{project.notebooks()[1]}.html").as_uri(), DESKTOP)
    link, card = page.locator(CLAIM).first, page.locator(CARD)
    link.hover()
    expect(card).to_contain_text(statement(page, link)[:40])
    page.locator(".bibtex-citation a", has_text="BB26").first.hover()
    expect(card).to_contain_text("[BB26]")
    assert events.errors == []
