"""The pages of the library, as a reader finds and uses them."""

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


def test_every_name_stands_once_with_its_signature(page: Page, address: str, library: ApiIndex):
    """In the order of the files, as it is written, under its own anchor."""
    for name, modules in library.pages.items():
        open_page(page, address, name)
        shown = dict(
            page.locator("dt.sig").evaluate_all("all => all.map(one => [one.id, one.firstChild && one.innerText])")
        )
        entries = [entry for module in modules for entry in library.modules[module].entries]
        wanted = {one.full: one.signature for entry in entries for one in (entry, *entry.members)}
        assert list(shown) == list(wanted)
        assert {full: text.rstrip("#").strip() for full, text in shown.items()} == wanted


def test_a_name_leads_to_figures_and_back(page: Page, address: str, library: ApiIndex):
    """From a function to a figure whose code names it, and from the code under that figure to the function."""
    full, figure = "lib.attention.linear_attend", "one_prompt"
    open_page(page, address, library.page_of(full))
    entry = page.locator(f"dl:has(> dt[id='{full}'])")
    link = entry.locator(f"a[href$='#fig-{figure.replace('_', '-')}']")
    assert link.inner_text().endswith(f"({figure.replace('_', ' ')})")
    assert link.inner_text().startswith("Fig. ")
    page.goto(link.evaluate("one => one.href"), wait_until="domcontentloaded")
    assert page.locator(f".companion-users a[href$='#{full}']").count() >= 1


def test_a_docstring_cites_what_it_stands_on(page: Page, address: str, library: ApiIndex):
    """The box of a lemma, and the work where there is no box."""
    open_page(page, address, library.page_of("lib.attention.attend"))
    entry = page.locator("dl:has(> dt[id='lib.attention.attend'])")
    assert entry.locator("a[href$='#bb26-lemma-2-1']").inner_text() == "BB26, Lemma 2.1"
    assert "references.html#" in entry.locator("a", has_text="BB26").first.get_attribute("href")


def test_search_finds_a_function(page: Page, address: str):
    """By its name."""
    page.goto(f"{address}/search.html?q=stream_attend")
    page.wait_for_selector("#search-results ul.search li a")
    links = page.locator("#search-results ul.search li a").evaluate_all("all => all.map(one => one.href)")
    assert any(link.endswith("lib_attention.html#lib.attention.stream_attend") for link in links)


def test_long_signatures_wrap(page: Page, address: str, library: ApiIndex):
    """On a phone nothing is wider than the screen."""
    page.set_viewport_size(PHONE)
    for name in library.pages:
        open_page(page, address, name)
        assert page.evaluate(TOO_WIDE) <= 0
        edges = page.locator("dt.sig").evaluate_all("all => all.map(one => one.scrollWidth - one.clientWidth)")
        assert max(edges) <= 1
    page.set_viewport_size(DESKTOP)
