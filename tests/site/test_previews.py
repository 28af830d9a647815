"""A card beside a link with the theorem, the claim or the work that it leads to."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from companion.project.paths import Project

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
CARD = "#companion-preview"
CLAIM = "article > section a.companion-claim[href^='#'], article section a.companion-claim[href^='#']"
TYPESET = "document.querySelectorAll('mjx-container').length > 0"


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport=DESKTOP)
    yield context
    context.close()


@pytest.fixture
def chapter(context: BrowserContext, address: str, project: Project) -> Iterator[Page]:
    """The second chapter, its formulas set."""
    page = context.new_page()
    page.goto(f"{address}/book/{project.notebooks()[1]}.html")
    page.wait_for_function(TYPESET)
    yield page
    page.close()


def words(text: str) -> str:
    return " ".join(text.split())


def stated(page: Page, link: Locator) -> str:
    """What the claim that `link` leads to says, folded as it is."""
    return words(page.locator(f"[id='{link.get_attribute('href')[1:]}'] strong").first.text_content())


def test_pointing_at_a_number_shows_its_claim(chapter: Page):
    """The card stays while the pointer is on it, names nothing twice, fits the window, and goes with the pointer."""
    link, card = chapter.locator(CLAIM).first, chapter.locator(CARD)
    link.hover()
    expect(card).to_be_visible()
    assert stated(chapter, link) in words(card.text_content())
    box = card.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= DESKTOP["width"]
    assert box["y"] + box["height"] <= DESKTOP["height"]
    names = chapter.eval_on_selector_all("[id]", "all => all.map(one => one.id)")
    assert len(names) == len(set(names))
    card.hover()
    chapter.wait_for_timeout(500)
    expect(card).to_be_visible()
    chapter.mouse.move(2, 2)
    expect(card).to_be_hidden()


def test_keys_bring_it_and_escape_closes_it(chapter: Page):
    """Who comes to a link by keys has the card as its description; Escape leaves them where they were."""
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
    expect(card).not_to_contain_text(stated(chapter, link))


def test_a_citation_shows_the_work(chapter: Page):
    """In place of the browser's own words, which come back; with the link to where it can be read."""
    link, card = chapter.locator(".bibtex-citation a", has_text="BB26").first, chapter.locator(CARD)
    before = link.get_attribute("title")
    link.hover()
    expect(card).to_contain_text("a Measure-based Perspective")
    assert link.get_attribute("title") is None
    assert card.locator("a[href='https://arxiv.org/abs/2512.11784']").count() > 0
    chapter.mouse.move(2, 2)
    expect(card).to_be_hidden()
    assert link.get_attribute("title") == before


def test_a_theorem_of_another_page_is_shown_typeset(browser: Browser, address: str):
    """Fetched from the same site, with formulas as they are there and links that lead where they do there."""
    page = browser.new_page(viewport=DESKTOP)
    foreign = []
    page.on("request", lambda request: None if request.url.startswith(address) else foreign.append(request.url))
    page.goto(f"{address}/book/what_holds.html")
    link, card = page.locator("article a[href$='gaussian_limit.html#bb26-lemma-2-1']").first, page.locator(CARD)
    link.hover()
    expect(card).to_contain_text("Lemma 2.1 of [BB26]")
    expect(card.locator("mjx-container").first).to_be_visible()
    assert "\\(" not in card.inner_text()
    assert all("/book/" in href for href in card.locator("a").evaluate_all("all => all.map(link => link.href)"))
    assert foreign == []
    page.close()


def test_a_link_to_a_heading_or_a_figure_has_none(chapter: Page):
    """Only what is short enough to be read in a card is shown in one."""
    chapter.locator("article a[href^='#fig-']:not(.headerlink)").first.hover()
    chapter.wait_for_timeout(800)
    assert chapter.locator(f"{CARD}:visible").count() == 0


def test_a_tap_is_a_tap_and_a_finger_that_rests_is_a_question(browser: Browser, address: str, project: Project):
    """On a phone a tap follows the link at once; holding it shows the card, along the lower edge, and goes nowhere."""
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(f"{address}/book/{project.notebooks()[1]}.html")
    page.wait_for_function(TYPESET)
    link, card = page.locator(CLAIM).first, page.locator(CARD)
    link.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    box = link.bounding_box()
    touch = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    fingers = context.new_cdp_session(page)
    fingers.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [touch]})
    page.wait_for_timeout(800)
    expect(card).to_be_visible()
    fingers.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_timeout(300)
    expect(card).to_be_visible()
    assert page.evaluate("location.hash") == ""
    across = card.bounding_box()
    assert across["x"] >= 0
    assert across["x"] + across["width"] <= PHONE["width"]
    page.touchscreen.tap(5, 5)
    expect(card).to_be_hidden()
    link.tap()
    page.wait_for_function("location.hash !== ''")
    expect(card).to_be_hidden()
    context.close()


def test_previews_of_a_page_read_from_disk(browser: Browser, site: Path, project: Project):
    """What is on the page is shown; a work, which would have to be fetched, from the list under the page."""
    page, faults = browser.new_page(viewport=DESKTOP), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto((site / project.book.name / f"{project.notebooks()[1]}.html").as_uri())
    link, card = page.locator(CLAIM).first, page.locator(CARD)
    link.hover()
    expect(card).to_contain_text(stated(page, link)[:40])
    page.locator(".bibtex-citation a", has_text="BB26").first.hover()
    expect(card).to_contain_text("[BB26]")
    assert faults == []
    page.close()
