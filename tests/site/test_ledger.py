"""The ledger of claims: complete, filterable, linked both ways with theorem boxes."""

import re
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from companion.build.publication_policy import published_claims
from companion.figures.plain_math import bound, number, split_formulas
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.site.sphinx.inline_text import ledger_anchor

# By the name of each element and of all around it, where the links in it lead.
LINKS = """selector => {
    const found = {};
    for (const one of document.querySelectorAll(selector)) {
        const links = [...one.querySelectorAll('a[href]')].map(link => link.href);
        for (let outer = one; outer; outer = outer.parentElement) (found[outer.id] ??= []).push(...links);
    }
    return found;
}"""


@pytest.fixture(scope="module")
def tab(browser: Browser):
    page: Page = browser.new_page()
    yield page
    page.close()


@pytest.fixture
def ledger(tab: Page, address: str) -> Page:
    """The ledger, opened anew where it was open before."""
    tab.goto("about:blank")  # from one filter of the ledger to another the page would stay
    tab.goto(f"{address}/book/claims.html")
    tab.wait_for_function("document.querySelector('form.companion-filter output').textContent")
    return tab


@pytest.fixture(scope="session")
def claims(project: Project, site, profile) -> list[dict]:
    return published_claims(project, profile)


def shown(ledger: Page) -> int:
    """How many claims are in open chapters and fit the filters."""
    return ledger.locator(".companion-entry:visible").count()


def test_every_claim_has_its_row(ledger: Page, claims: list[dict]):
    """One entry a claim, under its stable anchor: what it says, what was measured, where it would fail."""
    assert ledger.locator(".companion-entry").count() == len(claims) > 0
    rows = dict(ledger.locator(".companion-entry").evaluate_all("all => all.map(one => [one.id, one.textContent])"))
    for claim in claims:
        row = rows[ledger_anchor(claim.id)].replace("’", "'")
        assert "".join(part for _, part in split_formulas(claim.statement)) in row
        assert f"{number(claim.measured)} measured; {bound(claim)}" in row
        assert not re.search(r"\de[-+]\d", row), "a power of ten is written as one"


def test_claims_stand_by_chapter_in_the_order_of_figures(ledger: Page, claims: list[dict], project: Project):
    """As a reader of the book meets them; chapters are folded, and the whole is short."""
    rows = ledger.locator(".companion-entry").evaluate_all("all => all.map(one => one.id)")
    assert rows == [ledger_anchor(claim.id) for claim in claims]
    places = list(dict.fromkeys((claim.notebook, claim.figure) for claim in claims))
    order = [(name, figure) for name in project.notebooks() for figure in Notebook.named(project, name).figures]
    assert places == [place for place in order if place in places]
    assert ledger.locator(".companion-chapter").count() == len({name for name, _ in places})
    assert shown(ledger) == 0
    assert ledger.evaluate("document.documentElement.scrollHeight") < 6000
    ledger.click(".companion-open")
    assert shown(ledger) == len(claims)


def test_filters_by_words_source_and_verdict(ledger: Page, claims: list[dict]):
    """Choosing a source shows its claims only; no published claim fails, so that choice shows none."""
    mine = [claim for claim in claims if claim.source.startswith("[BB26")]
    assert 0 < len(mine) < len(claims)
    ledger.select_option("select[name=source]", "bb26")
    assert shown(ledger) == len(mine)
    ledger.select_option("select[name=source]", "")
    ledger.select_option("select[name=verdict]", "fails")
    assert shown(ledger) == 0
    ledger.select_option("select[name=verdict]", "holds")
    assert shown(ledger) == len(claims)
    ledger.fill("input[name=words]", f"{claims[0]['id'].upper()} measured")
    assert shown(ledger) == 1
    ledger.fill("input[name=words]", "no claim says this")
    assert shown(ledger) == 0


def test_filters_stand_in_the_address(browser: Browser, ledger: Page):
    """Who is sent the address sees the same claims."""
    ledger.select_option("select[name=source]", "bb26")
    ledger.fill("input[name=words]", "gradient & more")
    ledger.fill("input[name=words]", "gradient")
    page = browser.new_page()
    page.goto(ledger.url)
    page.wait_for_function("document.querySelector('form.companion-filter output').textContent")
    assert page.input_value("select[name=source]") == "bb26"
    assert page.input_value("input[name=words]") == "gradient"
    assert 0 < shown(page) == shown(ledger)
    page.close()


def test_a_link_to_a_claim_opens_its_row(browser: Browser, address: str, claims: list[dict]):
    """Though its chapter is folded when the page is opened."""
    anchor = ledger_anchor(claims[-1]["id"])
    page = browser.new_page()
    page.goto(f"{address}/book/claims.html#{anchor}")
    row = page.locator(f"#{anchor}")
    row.locator("p").first.wait_for(state="visible")
    assert row.evaluate("row => row.matches(':target') && row.getBoundingClientRect().top < innerHeight")
    page.close()


def test_theorems_and_ledger_link_each_other(browser: Browser, address: str, ledger: Page, claims: list[dict]):
    """From a claim to the box that states its theorem, and from the box back to the claim."""
    boxes: dict[str, list[tuple[str, str]]] = {}
    links = ledger.evaluate(LINKS, ".companion-entry")
    for claim in claims:
        if claim.box:
            row = ledger_anchor(claim.id)
            target = next(link for link in links[row] if link.endswith(f"#{claim.box}"))
            boxes.setdefault(target, []).append((claim.box, row))
    assert boxes
    context = browser.new_context(java_script_enabled=False)  # what links is there before any script runs
    page = context.new_page()
    for target, linked in sorted(boxes.items()):
        if page.url.partition("#")[0] != target.partition("#")[0]:
            page.goto(target)
        checked = page.evaluate(LINKS, ".companion-checked")
        for label, anchor in linked:
            assert page.locator(f"#{label}").is_visible()
            assert [urlsplit(link).fragment for link in checked[label]].count(anchor) == 1
    context.close()


def test_every_anchor_is_on_its_page_once(site: Path):
    """A link goes to one place: no page has two elements of one name."""
    for path in sorted((site / "book").glob("*.html")):
        anchors = Counter(re.findall(r"<[^>]*\sid=\"([^\"]+)\"", path.read_text(encoding="utf-8")))
        assert [name for name, times in anchors.items() if times > 1] == [], path.name
