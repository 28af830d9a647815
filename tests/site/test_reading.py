"""Reading aids: folded code, links back, keyboard use, contents, citations, and the size of pages."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from companion.analysis.dependencies import digest
from companion.project.notebooks import Notebook
from companion.project.paths import Project

MEGABYTE = 1_000_000
CODE = ".cell details.hide"
# Select a paragraph with a formula, copy it, and return the copied text.
COPY = """() => {
    const paragraph = document.querySelector('article p:has(> span.math)');
    getSelection().selectAllChildren(paragraph);
    const event = new ClipboardEvent('copy', { clipboardData: new DataTransfer(), bubbles: true, cancelable: true });
    paragraph.dispatchEvent(event);
    return event.clipboardData.getData('text/plain');
}"""
# The heading of the section that is at the top of the window, and the marked entry of the contents.
CURRENT = """() => [...document.querySelectorAll('article section[id] > :is(h2, h3)')]
    .filter(node => node.getBoundingClientRect().top <= innerHeight * 0.3)
    .map(node => '#' + node.parentElement.id).pop()"""
MARKED = "() => [...document.querySelectorAll('.bd-sidebar-secondary a[aria-current]')].map(link => link.hash)"
# Whether the tab shows the chapter that `chapter` loaded.
OPEN = "() => Boolean(window.chapterOfTests)"


@pytest.fixture
def chapter(tab: Page, visit: Callable[..., Page], project: Project) -> Page:
    """The second chapter, which is loaded once, unless a test leaves it."""
    if not tab.evaluate(OPEN):
        visit(project.notebooks()[1])
        tab.evaluate("() => { window.chapterOfTests = true }")
    return tab


def folded(page: Page) -> set[bool]:
    return set(page.locator(CODE).evaluate_all("all => all.map(node => !node.open)"))


def test_code_is_folded_and_one_button_unfolds_it(chapter: Page, address: str, project: Project):
    """The choice applies to the next page too, and can be undone."""
    assert folded(chapter) == {True}
    chapter.click(".companion-code-button")
    assert folded(chapter) == {False}
    chapter.goto(f"{address}/book/{project.notebooks()[2]}.html")
    assert folded(chapter) == {False}
    chapter.click(".companion-code-button")
    assert folded(chapter) == {True}


def test_a_number_links_to_its_claim_and_back(chapter: Page):
    """The fold opens, the claim is outlined, and a button leads back to where the number is."""
    number = chapter.locator("a.companion-claim[href^='#']").first
    number.scroll_into_view_if_needed()
    before = chapter.evaluate("scrollY")
    number.click()
    claim = chapter.locator(":target")
    claim.wait_for(state="visible")
    assert claim.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    claim.locator(".companion-back").click()
    chapter.wait_for_function("before => Math.abs(scrollY - before) < 400", arg=before)
    assert chapter.locator(".companion-back").count() == 0


def test_controls_can_be_focused_and_show_their_focus(chapter: Page):
    """Formulas can be focused only if they need scrolling."""
    stops = chapter.locator(".katex-display[tabindex='0']")
    assert stops.evaluate_all("all => all.filter(node => node.scrollWidth <= node.clientWidth).length") == 0
    for selector in ("a.companion-claim", ".companion-code-button", f"{CODE} > summary", "a.companion-zoom:visible"):
        chapter.locator(selector).first.focus()
        chapter.keyboard.press("Shift+Tab")
        chapter.keyboard.press("Tab")
        assert re.search("solid.* 3px", chapter.evaluate("getComputedStyle(document.activeElement).outline")), selector


def test_a_formula_that_does_not_fit_can_be_focused(chapter: Page):
    """This is updated when its font or its column changes, without a change of the window."""
    formula = chapter.locator(".katex-display:not([tabindex])").first
    formula.evaluate("node => { node.id = 'narrowed'; node.style.fontSize = '900%' }")
    chapter.locator("#narrowed[tabindex='0']").wait_for()
    formula = chapter.locator("#narrowed")
    formula.evaluate("node => { node.style.fontSize = '' }")
    chapter.locator("#narrowed:not([tabindex])").wait_for()
    formula.evaluate("node => { node.parentElement.style.width = '4em' }")
    chapter.locator("#narrowed[tabindex='0']").wait_for()


def test_copied_text_has_the_source_of_its_formulas(chapter: Page):
    assert re.search(r"\$[^$]*\\(hat|mu|sqrt)[^$]*\$", chapter.evaluate(COPY))


def test_the_contents_mark_the_section_at_the_top(chapter: Page):
    """Also after jumps into the middle of a long section. Above the first section they mark none."""
    chapter.wait_for_function("document.fonts.status === 'loaded'")
    high = chapter.evaluate("document.documentElement.scrollHeight")
    for share in (0.5, 0.15, 0.8, 0.02, 0.35, 0):
        chapter.evaluate("y => scrollTo({ top: y, behavior: 'instant' })", share * high)
        chapter.wait_for_timeout(300)
        current = chapter.evaluate(CURRENT)
        assert current or share < 0.1
        assert chapter.evaluate(MARKED) == ([current] if current else []), share
    # a heading near the end of a page does not reach the top of the window
    last = chapter.locator(".bd-sidebar-secondary .toc-entry a").last
    last.click()
    chapter.wait_for_timeout(500)
    assert chapter.evaluate(MARKED) == [last.get_attribute("href")]


@pytest.mark.parametrize(("width", "at_first"), [(1440, True), (390, False)])
def test_parts_of_the_list_of_pages_fold(visit: Callable[..., Page], project: Project, width: int, at_first: bool):
    """All are open on a wide screen, and only the part of the page on a small one. Enter opens and closes a part."""
    page = visit(project.notebooks()[3], {"width": width, "height": 900})
    if width < 900:
        page.locator("button.primary-toggle").first.click()
    lists, last = page.locator(".bd-links p.caption + ul"), page.locator("button.companion-part").last
    states = lists.evaluate_all("all => all.map(list => [list.checkVisibility(), list.classList.contains('current')])")
    assert len(states) == page.locator("button.companion-part").count() > 3
    assert sum(current for _, current in states) == 1
    assert all(shown == (at_first or current) for shown, current in states)
    for state in (not at_first, at_first):
        last.focus()
        page.keyboard.press("Enter")
        assert last.get_attribute("aria-expanded") == str(state).lower()
        assert lists.last.is_visible() == state


def test_a_figure_can_be_cited(visit: Callable[..., Page], project: Project):
    """The button copies a BibTeX entry with the headline, the number, the version and the commit."""
    name = project.notebooks()[0]
    page = visit(name)
    fold = page.locator(".companion-line.companion-details > .companion-cite").first
    fold.locator("summary").click()
    fold.locator("pre").hover()
    fold.locator("button.copybtn").click()
    page.wait_for_function("navigator.clipboard.readText().then(text => text.startsWith('@misc'))")
    entry = page.evaluate("navigator.clipboard.readText()")
    figure = Notebook.named(project, name).figures[0]
    assert entry.startswith(f"@misc{{{name}-{figure},")
    assert f"{name}/{figure}".replace("_", r"\_") in entry
    assert "Chapter 1, Figure 1 (" in entry
    assert f"Version {project.metadata['version']}" in entry
    assert re.search(r"year = \{\d{4}\}", entry)
    assert entry.count("{") == entry.count("}")


def test_the_site_is_small(site: Path):
    """It has at most 32 megabytes, no duplicate files, no source maps and no complete icon fonts.

    A sixth of this is the markup of formulas, which are typeset when the site is built.
    """
    files = [path for path in site.rglob("*") if path.is_file() and path.suffix != ".pdf"]  # that `site --pdf` adds
    assert sum(path.stat().st_size for path in files) <= 32 * MEGABYTE
    assert [path for path in files if path.suffix in (".map", ".ttf")] == []
    large = [path for path in files if path.stat().st_size > 1000]
    last = {digest(path.read_bytes()): path for path in large}
    assert set(large) - set(last.values()) == set()


def test_the_front_page_is_small(browser: Browser, address: str):
    """All files that it loads before scrolling are limited in size, plain and compressed."""
    context = browser.new_context()  # without files of other tests
    page = context.new_page()
    page.goto(f"{address}/book/index.html", wait_until="networkidle")
    sizes = page.evaluate(
        "performance.getEntries().filter(file => file.decodedBodySize)"
        ".map(file => [file.decodedBodySize, file.encodedBodySize])"
    )
    context.close()
    plain, compressed = map(sum, zip(*sizes, strict=True))
    assert 0.1 * MEGABYTE < compressed < 0.5 * MEGABYTE
    assert plain < 1.5 * MEGABYTE
