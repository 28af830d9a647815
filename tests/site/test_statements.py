"""The statement index on the site: an entry a row, and the second-hand mark where a reader meets a statement."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from companion.house import House
from companion.publication import published_claims
from companion.sphinx.statements import PAGE, SECOND_HAND
from companion.sphinx.text import ledger_anchor
from companion.statements import Statements


@pytest.fixture(scope="session")
def statements(house: House, site: Path, profile: str) -> Statements:
    found = Statements.of(house, published_claims(house, profile))
    assert found is not None
    return found


def test_every_statement_has_its_entry(browser: Browser, address: str, statements: Statements):
    """With where it was read, marked if that was second-hand, and a link to each of its claims."""
    page = browser.new_page()
    page.goto(f"{address}/book/{PAGE}.html")
    assert page.locator(".companion-statement").count() == len(statements.index.statements)
    for row in statements.index.statements:
        entry = page.locator(f".companion-statement:has(#{row.anchor})")
        text = entry.inner_text()
        assert statements.index.origins[row.read[0]].name.replace("'", "’") in text
        assert (SECOND_HAND in text) == statements.index.second_hand(row)
        for claim in statements.claims_of(row):
            assert entry.locator(f"a[href$='#{ledger_anchor(claim['id'])}']").count() == 1
    page.close()


def test_boxes_say_where_they_were_read(browser: Browser, address: str, statements: Statements):
    """Under each box that cites a paper, with a link into the index; under no other."""
    context = browser.new_context(java_script_enabled=False)  # all of it is there before any script runs
    page = context.new_page()
    for name in sorted({box.page for box in statements.boxes.values()}):
        page.goto(f"{address}/book/{name}.html")
        for box in statements.boxes.values():
            if box.page == name:
                line = page.locator(f"#{box.label} .companion-read")
                assert line.count() == bool(statements.cited_by(box.label)), box.label
                if line.count():
                    rows = statements.rows_of_box(box.label)
                    assert line.locator(f"a[href$='#{rows[0].anchor}']").count() == 1
                    assert (SECOND_HAND in line.inner_text()) == any(map(statements.index.second_hand, rows))
    context.close()


def test_the_ledger_says_where_they_were_read(browser: Browser, address: str, statements: Statements):
    """For each claim whose source is a listed paper."""
    page = browser.new_page()
    page.goto(f"{address}/book/claims.html")
    for claim in statements.claims:
        entry = page.locator(f"#{ledger_anchor(claim['id'])}").text_content()
        assert ("Read in:" in entry) == statements.cites_paper(claim), claim["id"]
    page.select_option("select[name=read]", SECOND_HAND)
    left = page.locator(".companion-entry:visible")
    assert 0 < left.count() < len(statements.claims)
    assert all(f"({SECOND_HAND})" in text for text in left.all_text_contents())
    page.close()
