"""The ledger of claims: complete, filterable, linked both ways with theorem boxes."""

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


def test_theorems_and_ledger_link_each_other(
    browser: Browser, address: str, ledger: Page, claims: list[dict], house: House
):
    """From a claim to the box that states its theorem, and from the box back to the claim."""
    boxed = [claim for claim in claims if claim["box"]]
    assert boxed
    for claim in boxed:
        label = claim["box"]
        row = ledger.locator(f".companion-entry:has(#{ledger_anchor(claim['id'])})")
        target = row.locator(f"a[href*='#{label}']").first.evaluate("link => link.href")
        page = browser.new_page()
        page.goto(target)
        box = page.locator(f"#{label}")
        assert box.is_visible()
        assert box.locator(f"a[href*='#{ledger_anchor(claim['id'])}']").count() == 1
        page.close()
