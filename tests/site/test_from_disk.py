"""Pages that are opened as files: nothing needs a server."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect


@pytest.fixture
def opened(visit: Callable[..., Page], events, site: Path) -> Callable[[str], Page]:
    """Return a function that opens the file of a page; no script may have failed before the end of the test."""
    yield lambda name: visit((site / f"book/{name}.html").as_uri())
    assert events["pageerror"] == []


def test_pictures_previews_and_the_search_work(opened: Callable[[str], Page], events):
    """References come from the list below the page. A PNG, which a browser makes of files of a host, is not offered."""
    page = opened("gaussian_limit")
    page.locator("a.companion-zoom:visible").first.click()
    page.locator("dialog.companion-large img").evaluate("image => image.decode()")
    page.keyboard.press("Escape")
    assert page.locator("a.companion-png").count() == 0
    assert page.locator("a.download[href$='.svg']").count() > 0
    assert events["requestfailed"] == []
    for selector, text in (("section a.companion-claim[href^='#']", "Measured"), (".bibtex-citation a", "[BB26]")):
        page.locator(selector).first.hover()
        expect(page.locator("#companion-preview")).to_contain_text(text)
    page.keyboard.press("/")
    page.fill("#pst-search-dialog input", "Proposition 7")
    expect(page.locator("#companion-hits a").first).to_contain_text("Proposition 7")
    expect(page.locator("#companion-hits a.companion-hit-passage").first).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url("file://**#*")


def test_the_ledger_is_filtered(opened: Callable[[str], Page]):
    page = opened("claims")
    page.fill("input[name=words]", "the")
    expect(page.locator(".companion-entry:visible").first).to_be_visible()


def test_the_laboratory_moves(opened: Callable[[str], Page]):
    page = opened("laboratory")
    reading = page.locator("#fig-live-plane [data-reading]").first
    before = reading.inner_text()
    page.locator("#fig-live-plane input[type=range]").first.fill("3")
    expect(reading).not_to_have_text(before)
