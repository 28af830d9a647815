"""The contents of a page mark the current section; formulas in plain text are set; the data of a chapter can be had."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Page

from companion.figures import store
from companion.project.notebooks import Notebook
from companion.project.paths import Project

# The heading of the section that is at the top of the window, and the marked entry of the contents.
CURRENT = """() => [...document.querySelectorAll('article section[id] > :is(h2, h3)')]
    .filter(node => node.getBoundingClientRect().top <= innerHeight * 0.3)
    .map(node => '#' + node.parentElement.id).pop()"""
MARKED = "() => [...document.querySelectorAll('.bd-sidebar-secondary a[aria-current]')].map(link => link.hash)"


@pytest.mark.parametrize("number", [0, 1])
def test_the_contents_mark_the_section_at_the_top(visit: Callable[..., Page], project: Project, number: int):
    """Also after jumps into the middle of a long section; at the top, above the first section, they mark none."""
    page = visit(project.notebooks()[number])
    page.wait_for_function("document.fonts.status === 'loaded'")
    high = page.evaluate("document.documentElement.scrollHeight")
    for share in (0.5, 0.15, 0.8, 0.02, 0.35, 0):
        page.evaluate("y => scrollTo({ top: y, behavior: 'instant' })", share * high)
        page.wait_for_timeout(300)
        current = page.evaluate(CURRENT)
        assert current or share < 0.1
        assert page.evaluate(MARKED) == ([current] if current else []), share


def test_the_last_section_can_be_marked(visit: Callable[..., Page], project: Project):
    """A heading near the end of a page does not reach the top of the window."""
    page = visit(project.notebooks()[0])
    last = page.locator(".bd-sidebar-secondary .toc-entry a").last
    last.click()
    page.wait_for_timeout(500)
    assert page.evaluate(MARKED) == [last.get_attribute("href")]


def test_the_data_of_a_chapter_is_one_archive(site: Path, project: Project):
    """It has the table and the record of every figure."""
    name, page = project.notebooks()[0], site / f"book/{project.notebooks()[0]}.html"
    link = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").select_one("a.download[href$='.zip']")
    with zipfile.ZipFile(page.parent / link["href"]) as archive:
        files = archive.namelist()
    figures = Notebook.named(project, name).figures
    tables = [f"{name}/{figure}{kind}" for figure in figures for kind in (store.DATA, store.RECORD)]
    assert sorted(files) == sorted([*tables, f"{name}/claims.json"])


@pytest.mark.parametrize(("width", "at_first"), [(1440, True), (390, False)])
def test_parts_of_the_list_of_pages_fold(visit: Callable[..., Page], project: Project, width: int, at_first: bool):
    """All are open on a wide screen, and only the part of the page on a small one. Enter opens and closes a part."""
    page = visit(project.notebooks()[3], {"width": width, "height": 900})
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
