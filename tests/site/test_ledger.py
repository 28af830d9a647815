"""The ledger of claims: complete, filterable, linked both ways with theorem boxes."""

import re
from collections import Counter
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from companion.house import House
from companion.publication import published_claims
from companion.sphinx.text import ledger_anchor


@pytest.fixture
def ledger(browser: Browser, address: str):
    page: Page = browser.new_page()
    page.goto(f"{address}/book/claims.html")
    page.wait_for_function("document.querySelector('form.companion-filter output').textContent")
    yield page
    page.close()


@pytest.fixture(scope="session")
def claims(house: House, site) -> list[dict]:
    return published_claims(house, "smoke")


def test_every_claim_has_its_row(ledger: Page, claims: list[dict]):
    """One entry a claim, under its stable anchor, with its statement."""
    assert ledger.locator(".companion-entry").count() == len(claims) > 0
    for claim in claims:
        row = ledger.locator(f"#{ledger_anchor(claim['id'])}").inner_text()
        assert claim["statement"][:20] in row.replace("’", "'")  # the page's quotes are typographic


def test_filters_by_source_and_verdict(ledger: Page, claims: list[dict]):
    """Choosing a source shows its claims only; no published claim fails, so that choice shows none."""
    mine = [claim for claim in claims if claim["source"].startswith("[BB26")]
    assert 0 < len(mine) < len(claims)
    ledger.select_option("select[name=source]", "bb26")
    assert ledger.locator(".companion-entry:visible").count() == len(mine)
    ledger.select_option("select[name=source]", "")
    ledger.select_option("select[name=verdict]", "fails")
    assert ledger.locator(".companion-entry:visible").count() == 0
    ledger.select_option("select[name=verdict]", "holds")
    assert ledger.locator(".companion-entry:visible").count() == len(claims)


def test_theorems_and_ledger_link_each_other(browser: Browser, address: str, ledger: Page, claims: list[dict]):
    """From a claim to the box that states its theorem, and from the box back to the claim."""
    boxes: dict[str, list[tuple[str, str]]] = {}
    for claim in claims:
        if claim["box"]:
            row = ledger.locator(f".companion-entry:has(#{ledger_anchor(claim['id'])})")
            target = row.locator(f"a[href$='#{claim['box']}']").first.evaluate("link => link.href")
            boxes.setdefault(target, []).append((claim["box"], ledger_anchor(claim["id"])))
    assert boxes
    pages: dict[str, Page] = {}
    for target, linked in boxes.items():
        address_of_page = target.partition("#")[0]
        page = pages.get(address_of_page) or browser.new_page()
        if address_of_page not in pages:
            page.goto(target)
            pages[address_of_page] = page
        for label, anchor in linked:
            box = page.locator(f"#{label}")
            assert box.is_visible()
            assert box.locator(f".companion-checked a[href$='#{anchor}']").count() == 1
    for page in pages.values():
        page.close()


def test_every_anchor_is_on_its_page_once(site: Path):
    """A link goes to one place: no page has two elements of one name."""
    for path in sorted((site / "book").glob("*.html")):
        anchors = Counter(re.findall(r"<[^>]*\sid=\"([^\"]+)\"", path.read_text(encoding="utf-8")))
        assert [name for name, times in anchors.items() if times > 1] == [], path.name
