"""Formulas in a browser: set without scripts, copied as TeX, numbered where the text refers to them."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

CARD = "#companion-preview"
# Select a paragraph with a formula, copy it, and return the copied text.
COPY = """() => {
    const paragraph = document.querySelector('article p:has(> span.math)');
    getSelection().selectAllChildren(paragraph);
    const event = new ClipboardEvent('copy', { clipboardData: new DataTransfer(), bubbles: true, cancelable: true });
    paragraph.dispatchEvent(event);
    return event.clipboardData.getData('text/plain');
}"""


def test_formulas_are_set_without_scripts(visit, unscripted: Page, project):
    page = visit(project.notebooks()[1], page=unscripted)
    formulas = page.locator("article .math")
    assert formulas.count() == page.locator("article .math .katex-html").count() > 0
    expect(page.locator("article .katex-display .katex-html").first).to_be_visible()


def test_a_page_loads_one_style_sheet_and_then_its_scripts(site: Path, project):
    """The script in the head that chooses the theme is not loaded."""
    for name in (*project.notebooks(), "index"):
        text = (site / project.book.name / f"{name}.html").read_text(encoding="utf-8")
        assert text.count('rel="stylesheet"') == 1, name
        assert not re.search(r"<script[^>]* src=", text.partition("</head>")[0]), name
        assert all("defer" in script for script in re.findall(r"<script[^>]* src=[^>]*>", text)), name


def test_copied_text_has_the_source_of_its_formulas(visit):
    text = visit("gaussian_limit").evaluate(COPY)
    assert re.search(r"\$[^$]*\\(hat|mu|sqrt)[^$]*\$", text)


@pytest.mark.parametrize(
    ("name", "target"),
    [("measures", "measures.html"), ("trained_at_other_lengths", "concentration.html")],
)
def test_a_link_to_a_formula_has_its_number_and_a_preview(visit, name, target):
    """The formula can be on another page; its number is next to it, with a permalink."""
    page = visit(name)
    link, card = page.locator("article a[href*='#equation-']:not(.headerlink)").first, page.locator(CARD)
    number = link.text_content()
    assert re.fullmatch(r"\(\d+\)", number)
    link.hover()
    expect(card.locator(".katex-html").first).to_be_visible()
    expect(card.locator(".eqno")).to_have_text(number)
    link.click()
    page.wait_for_url(f"**/{target}#equation-*")
    formula = page.locator(":target")
    expect(formula).to_be_in_viewport()
    assert formula.locator(".eqno").inner_text().startswith(number)
    assert formula.locator(".headerlink").count() == 1
