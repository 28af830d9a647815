"""A long page opens quickly: sections are laid out when the reader comes near them, and nothing is lost by that."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
LONG = "concentration"
# Whether a browser skips the last section, which is far from the window.
SKIPPED = """() => {
    const last = [...document.querySelectorAll('article.bd-article > section > section')].pop();
    return !last.firstElementChild.checkVisibility({ contentVisibilityAuto: true });
}"""
# The distance of the target of the address from the place where browsers put it.
PLACE = """() => {
    const target = document.querySelector(':target');
    return target.getBoundingClientRect().top - parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop);
}"""
AT_TOP = "() => { const near = document.elementFromPoint(innerWidth / 2, 200); return near.closest('[id]').id; }"


def test_opening_lays_out_less_than_the_page(browser: Browser, visit, tab: Page, tmp_path: Path):
    """Fonts, scripts and pictures that arrive later do not make the browser lay out distant sections either."""
    browser.start_tracing(page=tab, path=tmp_path / "trace.json", categories=["devtools.timeline"])
    page = visit(LONG, PHONE)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)
    assert page.evaluate(SKIPPED)
    elements = page.evaluate("document.querySelectorAll('article *').length")
    browser.stop_tracing()
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))["traceEvents"]
    laid_out = [event["args"]["beginData"]["dirtyObjects"] for event in events if event["name"] == "Layout"]
    assert 0 < sum(laid_out) < elements


@pytest.mark.parametrize(
    ("name", "viewport"), [("limits", PHONE), ("the-bounds-on-the-gradients", DESKTOP)], ids=["phone", "desktop"]
)
def test_links_lead_to_their_place(visit, address: str, name: str, viewport):
    """From another page, and from the contents of the page."""
    page = visit(f"{address}/book/{LONG}.html#{name}", viewport)
    page.wait_for_timeout(300)
    assert abs(page.evaluate(PLACE)) < 4
    page = visit(LONG, viewport)
    assert page.evaluate(SKIPPED)
    page.locator(f"a[href='#{name}']").first.evaluate("link => link.click()")
    page.wait_for_timeout(500)
    assert abs(page.evaluate(PLACE)) < 4


def test_a_reload_keeps_the_place(visit):
    page = visit(LONG, PHONE)
    for _ in range(25):
        page.mouse.wheel(0, 400)
        page.wait_for_timeout(40)
    page.wait_for_timeout(300)
    before = page.evaluate(AT_TOP)
    page.reload()
    page.wait_for_timeout(500)
    assert page.evaluate(AT_TOP) == before
