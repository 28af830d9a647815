"""The pages about the public names of the library."""

import pytest
from playwright.sync_api import Browser, Page

from companion.analysis.api_index import ApiIndex
from companion.project.paths import Project

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}


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
    assert entry.locator("a[href$='#bb26-lemma-2-1']").text_content() == "BB26, Lemma 2.1"
    assert page.locator("dl a[href*='references.html#']").count() >= 1
