"""The statement index on the site: one entry per row, and a mark on statements that were read second-hand."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from companion.build.publication_policy import published_claims
from companion.project.paths import Project
from companion.site.sphinx.inline_text import ledger_anchor
from companion.site.sphinx.statement_index import PAGE, SECOND_HAND
from companion.site.statements import Statements

# Return for each element its visible and full text, the anchors that it links to, its ids, and those of its ancestors.
DESCRIBE = """selector => [...document.querySelectorAll(selector)].map(node => {
    const around = [];
    for (let outer = node.parentElement; outer; outer = outer.parentElement) around.push(outer.id);
    return {
        text: node.innerText,
        content: node.textContent,
        links: [...node.querySelectorAll('a[href*="#"]')].map(link => link.getAttribute('href').split('#').at(-1)),
        ids: [node, ...node.querySelectorAll('[id]')].map(named => named.id),
        within: around,
    };
})"""


@pytest.fixture(scope="session")
def statements(project: Project, site: Path, profile: str) -> Statements:
    index = Statements.of(project, published_claims(project, profile))
    assert index is not None
    return index


def test_every_statement_has_its_entry(visit: Callable[..., Page], statements: Statements):
    """The entry has its origin, a mark if that is second-hand, and one link to each of its claims.

    Below, one line per statement with something to compare with the full texts links to its entry.
    """
    page = visit(PAGE)
    page.evaluate("delete document.documentElement.dataset.lazy")  # lay out all sections
    assert page.locator(".companion-statement").count() == len(statements.index.statements)
    entries = {anchor: entry for entry in page.evaluate(DESCRIBE, ".companion-statement") for anchor in entry["ids"]}
    for row in statements.index.statements:
        text, links = entries[row.anchor]["text"], entries[row.anchor]["links"]
        assert statements.index.origins[row.read[0]].name.replace("'", "’") in text
        assert (SECOND_HAND in text) == statements.index.second_hand(row)
        for claim in statements.claims_of(row):
            assert links.count(ledger_anchor(claim.id)) == 1
    lines = page.evaluate(DESCRIBE, "#to-check-against-the-full-text tbody tr")
    compared = [row for row in statements.index.statements if row.compare]
    assert [line["links"] for line in lines] == [[row.anchor] for row in compared]
    assert all(str(row.compare)[:20] in line["content"] for row, line in zip(compared, lines, strict=True))


def test_the_ledger_shows_where_sources_were_read(visit: Callable[..., Page], statements: Statements):
    """This holds for each claim whose source is a listed paper."""
    page = visit("claims")
    contents = {
        anchor: entry["content"] for entry in page.evaluate(DESCRIBE, ".companion-entry") for anchor in entry["ids"]
    }
    for claim in statements.claims:
        content = contents[ledger_anchor(claim.id)]
        assert ("Read in:" in content) == statements.cites_paper(claim), claim.id
    page.select_option("select[name=read]", SECOND_HAND)
    visible = page.locator(".companion-entry:visible")
    assert 0 < visible.count() < len(statements.claims)
    assert all(f"({SECOND_HAND})" in text for text in visible.all_text_contents())
