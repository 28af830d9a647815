"""The contents of a page mark the current section; formulas in plain text are set; the data of a chapter can be had."""

import io
import zipfile

import pytest
from playwright.sync_api import Browser

from companion.figures import store
from companion.project.notebooks import Notebook
from companion.project.paths import Project

DESKTOP = {"width": 1440, "height": 900}
# The heading of the section that is at the top of the window, and the marked entry of the contents.
CURRENT = """() => [...document.querySelectorAll('article section[id] > :is(h2, h3)')]
    .filter(node => node.getBoundingClientRect().top <= innerHeight * 0.3)
    .map(node => '#' + node.parentElement.id).pop()"""
MARKED = "() => [...document.querySelectorAll('.bd-sidebar-secondary a[aria-current]')].map(link => link.hash)"


@pytest.mark.parametrize("number", [0, 1])
def test_the_contents_mark_the_section_at_the_top(browser: Browser, address: str, project: Project, number: int):
    """Also after jumps into the middle of a long section; at the top, above the first section, they mark none."""
    page = browser.new_page(viewport=DESKTOP)
    page.goto(f"{address}/book/{project.notebooks()[number]}.html")
    page.wait_for_function("document.fonts.status === 'loaded'")
    high = page.evaluate("document.documentElement.scrollHeight")
    for share in (0.5, 0.15, 0.8, 0.02, 0.35, 0):
        page.evaluate("y => scrollTo({ top: y, behavior: 'instant' })", share * high)
        page.wait_for_timeout(300)
        current = page.evaluate(CURRENT)
        assert current or share < 0.1
        assert page.evaluate(MARKED) == ([current] if current else []), share
    page.close()


def test_the_last_section_can_be_marked(browser: Browser, address: str, project: Project):
    """A heading near the end of a page does not reach the top of the window."""
    page = browser.new_page(viewport=DESKTOP)
    page.goto(f"{address}/book/{project.notebooks()[0]}.html")
    last = page.locator(".bd-sidebar-secondary .toc-entry a").last
    last.click()
    page.wait_for_timeout(500)
    assert page.evaluate(MARKED) == [last.get_attribute("href")]
    page.close()


def test_the_data_of_a_chapter_is_one_archive(browser: Browser, address: str, project: Project):
    """It has the table and the record of every figure."""
    page, name = browser.new_page(), project.notebooks()[0]
    page.goto(f"{address}/book/{name}.html")
    href = page.locator("a.download[href$='.zip']").first.evaluate("link => link.href")
    with zipfile.ZipFile(io.BytesIO(page.request.get(href).body())) as archive:
        files = archive.namelist()
    figures = Notebook.named(project, name).figures
    tables = [f"{name}/{figure}{kind}" for figure in figures for kind in (store.DATA, store.RECORD)]
    assert sorted(files) == sorted([*tables, f"{name}/claims.json"])
    page.close()


@pytest.mark.parametrize(("width", "at_first"), [(1440, True), (390, False)])
def test_parts_of_the_list_of_pages_fold(browser: Browser, address: str, project: Project, width: int, at_first: bool):
    """All are open on a wide screen, and only the part of the page on a small one. Enter opens and closes a part."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(f"{address}/book/{project.notebooks()[3]}.html")
    if width < 900:
        page.locator("button.primary-toggle").first.click()
    parts = page.locator("button.companion-part")
    shown = page.locator(".bd-links p.caption + ul").evaluate_all("all => all.map(list => list.checkVisibility())")
    current = page.locator(".bd-links p.caption + ul").evaluate_all(
        "all => all.map(list => list.classList.contains('current'))"
    )
    assert len(shown) == parts.count() > 3
    assert sum(current) == 1
    assert shown == [at_first or mine for mine in current]
    for state in (not shown[-1], shown[-1]):
        parts.last.focus()
        page.keyboard.press("Enter")
        assert parts.last.get_attribute("aria-expanded") == str(state).lower()
        assert page.locator(".bd-links p.caption + ul").last.is_visible() == state
    page.close()
