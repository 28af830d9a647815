"""Reading aids: folded code, enlarged pictures, links back, keyboard use, and the size of pages."""

import gzip
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Page

from companion.analysis.dependencies import digest
from companion.figures import thumbnails
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.project.repository import public_address

SITE_NAME = "Softmax attention, computed"
DESKTOP = {"width": 1280, "height": 900}
MEGABYTE = 1_000_000
CODE = ".cell details.hide"


@pytest.fixture
def chapter(visit: Callable[..., Page], project: Project) -> Page:
    """The second chapter, as readers find it at first."""
    return visit(project.notebooks()[1], DESKTOP)


def folded(page: Page) -> set[bool]:
    return set(page.locator(CODE).evaluate_all("all => all.map(node => !node.open)"))


def test_code_is_folded_and_one_button_unfolds_it(chapter: Page, address: str, project: Project):
    """Every fold has a different title; the choice applies to the next page too, and can be undone."""
    assert folded(chapter) == {True}
    chapter.evaluate("delete document.documentElement.dataset.lazy")  # lay out all sections
    titles = chapter.locator(f"{CODE} > summary").all_inner_texts()
    assert [title for title in titles if title != "Parameters of this run"][:2] == ["Parameters", "Setup"]
    assert len(set(titles)) == len(titles)
    chapter.click(".companion-code-button")
    assert folded(chapter) == {False}
    chapter.goto(f"{address}/book/{project.notebooks()[2]}.html")
    assert folded(chapter) == {False}
    chapter.click(".companion-code-button")
    assert folded(chapter) == {True}


def test_code_can_be_read_without_scripts(visit: Callable[..., Page], unscripted: Page, project: Project):
    """Folds open, the picture is shown once, and its link leads to the file."""
    page = visit(project.notebooks()[1], page=unscripted)
    page.locator(f"{CODE} > summary").first.click()
    assert page.locator(f"{CODE} pre").first.is_visible()
    figure = page.locator("figure.companion-figure").first
    assert figure.locator("img:visible").count() == 1
    assert figure.locator("a.companion-zoom:visible").get_attribute("href").endswith(".svg")


def test_no_line_begins_with_the_punctuation_after_a_formula(chapter: Page):
    separate = """() => [...document.querySelectorAll('article p span.math')]
        .filter(node => !node.closest('.companion-unbroken')).map(node => node.nextSibling)
        .filter(next => next?.nodeType === Node.TEXT_NODE && /^[.,;:!?)]/.test(next.textContent)).length"""
    assert chapter.evaluate(separate) == 0
    kept = chapter.locator("article p .companion-unbroken")
    assert kept.count() > 10
    assert set(kept.evaluate_all("all => all.map(node => getComputedStyle(node).whiteSpace)")) == {"nowrap"}


def test_a_page_is_printed_without_controls(visit: Callable[..., Page], project: Project):
    for name, controls in (
        (project.notebooks()[0], ".companion-code-button"),
        ("claims", ".companion-filter"),
    ):
        page = visit(name, DESKTOP)
        assert page.locator(controls).first.is_visible()
        page.emulate_media(media="print")
        assert page.locator(controls).filter(visible=True).count() == 0
        page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # opens the chapters of the ledger
    assert page.locator("details.companion-chapter:not([open])").count() == 0


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
        outline = chapter.evaluate("getComputedStyle(document.activeElement).outline")
        assert "solid" in outline, selector
        assert "3px" in outline, selector


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
    formula.evaluate("node => { node.parentElement.style.width = ''; node.removeAttribute('id') }")


def test_boxes_have_the_numbers_of_their_paper(site: Path):
    """The title of a box and the text of links to it contain the number of the lemma in the paper."""
    pages = [(site / f"book/{name}.html").read_text(encoding="utf-8") for name in ("gaussian_limit", "what_holds")]
    box, linking = (BeautifulSoup(page, "html.parser") for page in pages)
    title = box.select_one("#bb26-lemma-2-1 .admonition-title").get_text()
    assert title.strip() == "Lemma 2.1 of [BB26] (Gaussian prompts)"
    assert linking.select_one("a[href$='#bb26-lemma-2-1']").get_text() == "BB26, Lemma 2.1"


def test_the_site_is_small(site: Path, project: Project):
    """It has at most 32 megabytes, no duplicate files, no source maps and no complete icon fonts.

    A sixth of this is the markup of formulas, which are typeset when the site is built.
    """
    files = [path for path in site.rglob("*") if path.is_file() and path.suffix != ".pdf"]  # that `site --pdf` adds
    assert sum(path.stat().st_size for path in files) <= 32 * MEGABYTE
    assert [path for path in files if path.suffix in (".map", ".ttf")] == []
    by_digest = defaultdict(list)
    for path in files:
        if path.stat().st_size > 1000:
            by_digest[digest(path.read_bytes())].append(path.relative_to(site).as_posix())
    assert [paths for paths in by_digest.values() if len(paths) > 1] == []


def test_the_front_page_is_small(browser: Browser, address: str):
    """All files that it loads before scrolling are limited in size, plain and compressed."""
    context = browser.new_context(viewport=DESKTOP)
    page, bodies = context.new_page(), {}
    page.on("response", lambda response: bodies.update({response.url: response.body()} if response.ok else {}))
    page.goto(f"{address}/book/index.html")
    page.wait_for_load_state("networkidle")
    assert sum(map(len, bodies.values())) < 1.5 * MEGABYTE
    assert sum(len(gzip.compress(body)) for body in bodies.values()) < 0.5 * MEGABYTE
    context.close()


def test_a_card_has_a_thumbnail(visit: Callable[..., Page], project: Project):
    """The thumbnail has twice the displayed size and under 30 kB; the card has the chapter's title and links to it."""
    page = visit("index", DESKTOP)
    links = page.locator(".companion-card a:has(img)")
    names = links.evaluate_all("all => all.map(node => node.getAttribute('href').replace('.html', ''))")
    assert len(names) == 3
    for link, name in zip(links.all(), names, strict=True):
        assert link.text_content().strip() == Notebook.named(project, name).title
        image = link.locator("img:visible")
        image.evaluate("image => { image.loading = 'eager'; return image.decode() }")
        assert image.evaluate("image => image.naturalWidth") == 2 * thumbnails.SIZE[0]
        assert len(page.request.get(image.evaluate("image => image.src")).body()) < 30_000


def test_every_page_has_a_description(site: Path, redirections: dict[str, Path], project: Project):
    """Search engines and link previews use it; the address of the page is included only if it is known."""
    for path in sorted((site / project.book.name).glob("*.html")):
        if path.relative_to(site).as_posix() in redirections:
            continue
        head = path.read_text(encoding="utf-8").partition("<body")[0]
        description = re.search(r'<meta name="description" content="([^"]+)">', head)
        assert description, path.name
        assert 20 < len(description[1]) < 300, path.name
        assert "\\" not in description[1], path.name
        assert f'property="og:site_name" content="{SITE_NAME}"' in head, path.name
        assert ("og:url" in head) == (public_address(project) is not None)


def test_pages_work_from_files(visit: Callable[..., Page], events, site: Path, project: Project):
    """Pictures, folds and the ledger need no server."""
    page = visit((site / project.book.name / f"{project.notebooks()[0]}.html").as_uri())
    image = page.locator("figure img:visible").first
    image.scroll_into_view_if_needed()  # pictures are loaded when they come near
    image.evaluate("image => image.decode()")
    page.goto((site / project.book.name / "claims.html").as_uri())
    page.fill("input[name=words]", "the")
    assert page.locator(".companion-entry:visible").count() > 0
    assert events.failed + events.errors == []
