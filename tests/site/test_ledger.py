"""The ledger of claims is complete, can be filtered, and is linked with theorem boxes in both directions."""

import posixpath
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page
from sphinx.util.inventory import InventoryFile

from companion.figures.plain_math import bound, number
from companion.figures.record import PublishedClaim
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.site.sphinx.inline_text import ledger_anchor, typeset
from companion.site.sphinx.statement_index import SECOND_HAND

# The entries of claims; those that are withheld at the parameters of this site have other numbers.
ENTRY = ".companion-entry:not(.verdict-withheld)"


READY = "document.querySelector('form.companion-filter output').textContent"


@pytest.fixture
def ledger(visit: Callable[..., Page]) -> Page:
    """The ledger, reloaded for each test."""
    page = visit("claims")
    page.wait_for_function(READY)
    return page


def test_other_books_can_link_to_figures_claims_and_statements(site: Path, project: Project, claims):
    """The inventory lists them all, and its anchors exist."""
    with (site / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", posixpath.join)
    figures = [f"{name}/{figure}" for name in project.notebooks() for figure in Notebook.named(project, name).figures]
    assert set(inventory["companion:figure"]) == set(figures)
    assert {claim.id for claim in claims} <= set(inventory["companion:claim"])
    assert inventory["companion:statement"]
    texts = {}
    for kind in ("figure", "claim", "statement"):
        for _, _, address, _ in inventory[f"companion:{kind}"].values():
            page, _, anchor = address.partition("#")
            texts.setdefault(page, (site / page).read_text(encoding="utf-8"))
            assert f'id="{anchor}"' in texts[page], address


def shown(ledger: Page) -> int:
    """Return the number of claims that are visible: their chapter is open, and they match the filters."""
    return ledger.locator(f"{ENTRY}:visible").count()


def test_every_claim_has_its_row(ledger: Page, claims: list[PublishedClaim], project: Project):
    """Claims are in the order of the book, each with its statement, measured value and threshold.

    Chapters are folded at first, so that the page is short.
    """
    rows = dict(ledger.locator(ENTRY).evaluate_all("all => all.map(node => [node.id, node.textContent])"))
    assert list(rows) == [ledger_anchor(claim.id) for claim in claims]
    for claim, row in zip(claims, rows.values(), strict=True):
        assert "".join(node.astext() for node in typeset(claim.statement)) in row.replace("’", "'")
        assert f"{number(claim.measured)} measured; {bound(claim)}" in row.replace("’", "'")
        assert not re.search(r"\de[-+]\d", row), "powers of ten must be typeset"
    places = list(dict.fromkeys((claim.notebook, claim.figure) for claim in claims))
    order = [(name, figure) for name in project.notebooks() for figure in [*Notebook.named(project, name).figures, ""]]
    assert places == [place for place in order if place in places]
    assert shown(ledger) == 0
    assert ledger.evaluate("document.documentElement.scrollHeight") < 6000
    ledger.click(".companion-open")
    assert shown(ledger) == len(claims)


def test_every_claim_is_judged_by_labelled_lines(ledger: Page, claims: list[PublishedClaim]):
    """Measured, expected, tolerance and, where there is one, the alternative."""
    names = ledger.locator(f"{ENTRY} > .companion-evidence").evaluate_all(
        "all => all.map(list => [...list.querySelectorAll('dt')].map(name => name.firstChild.textContent))"
    )
    words = ["Measured", "Expected", "Tolerance", "Alternative"]
    assert names == [words if claim.alternative else words[:3] for claim in claims]
    # far alternatives have no number that would be read as a rival
    assert re.search(r" \(more than 1,000 tolerances (from|beyond)", ledger.content())
    assert not re.search("[⁰¹²³⁴⁵⁶⁷⁸⁹] tolerances (from|beyond)", ledger.content())


def test_filters_by_words_source_and_verdict(ledger: Page, claims: list[PublishedClaim]):
    """Counts of chapters follow the filter, and a verdict that no claim has is no choice."""
    selected = [claim for claim in claims if claim.source.startswith("[BB26")]
    assert 0 < len(selected) < len(claims)
    ledger.select_option("select[name=source]", "bb26")
    assert shown(ledger) == len(selected)
    counts = ledger.locator(".companion-count:visible").all_inner_texts()
    withheld = ledger.locator(".companion-entry.verdict-withheld:visible").count()
    assert sum(int(text.split(" of ")[0]) for text in counts) == len(selected) + withheld
    ledger.select_option("select[name=source]", "")
    assert ledger.locator("select[name=verdict] option[value=fails]").count() == 0
    if ledger.locator("select[name=verdict]").count():
        ledger.select_option("select[name=verdict]", "holds")
        assert shown(ledger) == len(claims)
    ledger.fill("input[name=words]", f"{claims[0].id.upper()} measured")
    assert shown(ledger) == 1
    ledger.fill("input[name=words]", "no claim says this")
    assert shown(ledger) == 0
    ledger.fill("input[name=words]", "")
    ledger.select_option("select[name=read]", SECOND_HAND)
    read = ledger.locator(".companion-entry:visible").all_text_contents()
    assert 0 < len(read) < len(claims)
    assert all(f"({SECOND_HAND})" in text for text in read)


def test_filters_are_part_of_the_address(visit: Callable[..., Page], ledger: Page):
    """Opening the address elsewhere shows the same claims."""
    ledger.select_option("select[name=source]", "bb26")
    ledger.fill("input[name=words]", "gradient & more")
    ledger.fill("input[name=words]", "gradient")
    selected = shown(ledger)
    page = visit(ledger.url)
    page.wait_for_function(READY)
    assert page.input_value("select[name=source]") == "bb26"
    assert page.input_value("input[name=words]") == "gradient"
    assert 0 < shown(page) == selected


def test_a_link_to_a_claim_opens_its_row(visit: Callable[..., Page], address: str, claims: list[PublishedClaim]):
    """It unfolds the chapter of the claim."""
    anchor = ledger_anchor(claims[-1].id)
    page = visit(f"{address}/book/claims.html#{anchor}")
    row = page.locator(f"#{anchor}")
    row.locator("p").first.wait_for(state="visible")
    assert row.evaluate("row => row.matches(':target') && row.getBoundingClientRect().top < innerHeight")
