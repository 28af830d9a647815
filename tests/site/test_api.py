"""The pages about the public names of the library."""

import pytest
from playwright.sync_api import Browser, Page

from companion.analysis.api_index import ApiIndex
from companion.project.paths import Project

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def library(project: Project) -> ApiIndex:
    return ApiIndex(project)


@pytest.fixture(scope="module")
def page(browser: Browser, address: str):
    opened = browser.new_page(viewport=DESKTOP, color_scheme="light")
    yield opened
    opened.close()


def open_page(page: Page, address: str, name: str) -> None:
    page.goto(f"{address}/book/{name}.html", wait_until="domcontentloaded")
    page.evaluate("delete document.documentElement.dataset.lazy")  # lay out all sections


def test_every_name_is_shown_once_with_its_signature(page: Page, address: str, library: ApiIndex):
    """Names are in the order of the source, and each has its own anchor."""
    for name, modules in library.pages.items():
        open_page(page, address, name)
        shown = dict(
            page.locator("dt.sig").evaluate_all("all => all.map(node => [node.id, node.firstChild && node.innerText])")
        )
        entries = [entry for module in modules for entry in library.modules[module].entries]
        expected = {item.full: item.signature for entry in entries for item in (entry, *entry.members)}
        assert list(shown) == list(expected)
        assert {full: text.rstrip("#").strip() for full, text in shown.items()} == expected


def test_names_and_figures_link_to_each_other(page: Page, address: str, library: ApiIndex):
    """A function links to a figure whose code uses it, and the code of that figure links back."""
    full, figure = "lib.attention.linear_attend", "one_prompt"
    open_page(page, address, library.page_of(full))
    entry = page.locator(f"dl:has(> dt[id='{full}'])")
    link = entry.locator(f"a[href$='#fig-{figure.replace('_', '-')}']")
    assert link.inner_text().endswith(f"({figure.replace('_', ' ')})")
    assert link.inner_text().startswith("Fig. ")
    page.goto(link.evaluate("node => node.href"), wait_until="domcontentloaded")
    assert page.locator(f".companion-users a[href$='#{full}']").count() >= 1


def test_a_docstring_links_to_its_sources(page: Page, address: str, library: ApiIndex):
    """It links to the box of a lemma, or to the reference if there is no box."""
    open_page(page, address, library.page_of("lib.attention.attend"))
    entry = page.locator("dl:has(> dt[id='lib.attention.attend'])")
    assert entry.locator("a[href$='#bb26-lemma-2-1']").inner_text() == "BB26, Lemma 2.1"
    assert page.locator("dl a[href*='references.html#']").count() >= 1


def test_search_finds_a_function(page: Page, address: str):
    """A search for its name leads to its entry."""
    page.goto(f"{address}/search.html?q=stream_attend")
    page.wait_for_selector("#search-results ul.search li a")
    links = page.locator("#search-results ul.search li a").evaluate_all("all => all.map(node => node.href)")
    assert any(link.endswith("lib_attention.html#lib.attention.stream_attend") for link in links)


def test_long_signatures_wrap(page: Page, address: str, library: ApiIndex):
    """On a phone, no element is wider than the screen."""
    page.set_viewport_size(PHONE)
    for name in library.pages:
        open_page(page, address, name)
        assert page.evaluate(TOO_WIDE) <= 0
        edges = page.locator("dt.sig").evaluate_all("all => all.map(node => node.scrollWidth - node.clientWidth)")
        assert max(edges) <= 1
    page.set_viewport_size(DESKTOP)
