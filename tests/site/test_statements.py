"""The statement index on the site: an entry a row, and the second-hand mark where a reader meets a statement."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from companion.build.publication_policy import published_claims
from companion.project.paths import Project
from companion.project.statements import Statements
from companion.site.sphinx.inline_text import ledger_anchor
from companion.site.sphinx.statement_index import PAGE, SECOND_HAND

# Of each element: what it says, shown or not, where its links lead on their pages, and the anchors in and around it.
TOLD = """selector => [...document.querySelectorAll(selector)].map(one => {
    const around = [];
    for (let outer = one.parentElement; outer; outer = outer.parentElement) around.push(outer.id);
    return {
        text: one.innerText,
        content: one.textContent,
        links: [...one.querySelectorAll('a[href*="#"]')].map(link => link.getAttribute('href').split('#').at(-1)),
        ids: [one, ...one.querySelectorAll('[id]')].map(named => named.id),
        within: around,
    };
})"""


@pytest.fixture(scope="session")
def statements(project: Project, site: Path, profile: str) -> Statements:
    found = Statements.of(project, published_claims(project, profile))
    assert found is not None
    return found


def test_every_statement_has_its_entry(browser: Browser, address: str, statements: Statements):
    """With where it was read, marked if that was second-hand, and a link to each of its claims."""
    page = browser.new_page()
    page.goto(f"{address}/book/{PAGE}.html")
    assert page.locator(".companion-statement").count() == len(statements.index.statements)
    entries = {anchor: entry for entry in page.evaluate(TOLD, ".companion-statement") for anchor in entry["ids"]}
    for row in statements.index.statements:
        text, links = entries[row.anchor]["text"], entries[row.anchor]["links"]
        assert statements.index.origins[row.read[0]].name.replace("'", "’") in text
        assert (SECOND_HAND in text) == statements.index.second_hand(row)
        for claim in statements.claims_of(row):
            assert links.count(ledger_anchor(claim.id)) == 1
    page.close()


def test_boxes_say_where_they_were_read(browser: Browser, address: str, statements: Statements):
    """Under each box that cites a paper, with a link into the index; under no other."""
    context = browser.new_context(java_script_enabled=False)  # all of it is there before any script runs
    page = context.new_page()
    for name in sorted({box.page for box in statements.boxes.values()}):
        page.goto(f"{address}/book/{name}.html")
        told = page.evaluate(TOLD, ".companion-read")
        for box in statements.boxes.values():
            if box.page == name:
                lines = [line for line in told if box.label in line["within"]]
                assert len(lines) == bool(statements.cited_by(box.label)), box.label
                for line in lines:
                    rows = statements.rows_of_box(box.label)
                    assert line["links"].count(rows[0].anchor) == 1
                    assert (SECOND_HAND in line["text"]) == any(map(statements.index.second_hand, rows))
    context.close()


def test_the_ledger_says_where_they_were_read(browser: Browser, address: str, statements: Statements):
    """For each claim whose source is a listed paper."""
    page = browser.new_page()
    page.goto(f"{address}/book/claims.html")
    entries = {anchor: entry["content"] for entry in page.evaluate(TOLD, ".companion-entry") for anchor in entry["ids"]}
    for claim in statements.claims:
        said = entries[ledger_anchor(claim.id)]
        assert ("Read in:" in said) == statements.cites_paper(claim), claim.id
    page.select_option("select[name=read]", SECOND_HAND)
    left = page.locator(".companion-entry:visible")
    assert 0 < left.count() < len(statements.claims)
    assert all(f"({SECOND_HAND})" in text for text in left.all_text_contents())
    page.close()
