"""What makes pages pleasant: code that folds, pictures that grow, ways there and back, and not a byte too many."""

import gzip
import re
from collections import defaultdict
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from companion.analysis.dependencies import digest
from companion.figures import thumbnails
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.project.repository import public_address

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
MEGABYTE = 1_000_000
CODE = ".cell details.hide"
# Titles of folded code; words before the first cell or picture, and its class; pictures under a heading that has no
# words before them; works cited, and those listed under the page, each with its links.
READING = f"""() => {{
    const all = selector => [...document.querySelectorAll(selector)];
    const article = document.querySelector('article'), first = article.querySelector('.cell, figure');
    const range = document.createRange();
    range.setStart(article, 0);
    if (first) range.setEndBefore(first);
    return {{
        titles: all('{CODE} > summary p.collapsed').map(one => one.textContent),
        before: [range.toString().split(/\\s+/).length, first?.className],
        bare: all('figure.companion-figure').filter(one => {{
            let before = one.previousElementSibling;
            while (before && !before.matches('p, ul, ol, .proof')) before = before.previousElementSibling;
            return !before;
        }}).map(one => one.id),
        cited: all("article a[href*='references.html#id']").map(one => one.textContent.trim()),
        listed: all('.companion-cited li').map(one => [
            one.querySelector('strong').innerText, [...one.querySelectorAll('a')].map(link => link.href),
        ]),
    }};
}}"""


@pytest.fixture
def chapter(browser: Browser, address: str, project: Project):
    """The second chapter, in a browser that was never here."""
    context = browser.new_context(viewport=DESKTOP)
    page = context.new_page()
    page.goto(f"{address}/book/{project.notebooks()[1]}.html")
    yield page
    context.close()


@pytest.fixture(scope="module")
def readings(browser: Browser, address: str, project: Project) -> dict[str, dict]:
    """Of every chapter and the front page, each opened once, what several tests ask for."""
    page, found = browser.new_page(viewport=DESKTOP), {}
    for name in [*project.notebooks(), "index"]:
        page.goto(f"{address}/book/{name}.html")
        found[name] = page.evaluate(READING)
    page.close()
    return found


def folded(page: Page) -> set[bool]:
    return set(page.locator(CODE).evaluate_all("all => all.map(one => !one.open)"))


def test_code_is_folded_and_one_click_opens_it_for_good(chapter: Page, address: str, project: Project):
    """Every cell, under a line that says what it does; the choice holds for the next page, and can be taken back."""
    assert folded(chapter) == {True}
    titles = chapter.locator(f"{CODE} > summary").all_inner_texts()
    assert [title for title in titles if title != "Parameters of this run"][:2] == ["Parameters", "Setup"]
    assert len(set(titles)) == len(titles)
    chapter.click(".companion-code-button")
    assert folded(chapter) == {False}
    chapter.goto(f"{address}/book/{project.notebooks()[2]}.html")
    assert folded(chapter) == {False}
    chapter.click(".companion-code-button")
    assert folded(chapter) == {True}


def test_folds_say_what_cells_do(readings: dict[str, dict], project: Project):
    """In the letters of the first comment, whatever they mean to a browser."""
    for name in project.notebooks():
        said = {cell.partition("\n")[0].lstrip("# ").casefold() for cell in Notebook.named(project, name).code}
        titles = readings[name]["titles"]
        assert titles
        assert {title.casefold() for title in titles} <= said | {"parameters", "parameters of this run", "code"}, name


def test_code_can_be_read_without_scripts(browser: Browser, address: str, project: Project):
    """A fold is the browser's own, one of the two pictures is shown, and its link leads to the file."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/book/{project.notebooks()[1]}.html")
    page.locator(f"{CODE} > summary").first.click()
    assert page.locator(f"{CODE} pre").first.is_visible()
    figure = page.locator("figure.companion-figure").first
    assert figure.locator("img:visible").count() == 1
    assert figure.locator("a.companion-zoom:visible").get_attribute("href").endswith(".svg")
    context.close()


def test_words_come_before_pictures_and_code(readings: dict[str, dict], project: Project):
    """What is shown and why stands first, in a chapter and under each heading that has a picture."""
    for name in project.notebooks():
        words, first = readings[name]["before"]
        assert words > 60, name
        assert "cell" in first, name
        assert readings[name]["bare"] == [], name


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_a_picture_grows_to_the_screen(browser: Browser, address: str, project: Project, viewport):
    """By click, tap or key, with the same words for those who do not see it; and it goes away again."""
    page = browser.new_page(viewport=viewport)
    page.goto(f"{address}/book/{project.notebooks()[0]}.html")
    link = page.locator("a.companion-zoom:visible").first
    link.focus()
    page.keyboard.press("Enter")
    large = page.locator("dialog.companion-large img")
    large.wait_for(state="visible")
    page.wait_for_function("document.querySelector('dialog.companion-large img').naturalWidth > 0")
    assert large.get_attribute("alt") == link.locator("img").get_attribute("alt")
    assert large.bounding_box()["width"] > link.bounding_box()["width"]
    page.keyboard.press("Escape")
    assert not large.is_visible()
    assert link.evaluate("link => link === document.activeElement")
    page.close()


def test_a_number_leads_to_its_claim_and_back(chapter: Page):
    """The fold opens, the claim is marked, and a button leads back to where the number stood."""
    number = chapter.locator("a.companion-claim[href^='#']").first
    number.scroll_into_view_if_needed()
    before = chapter.evaluate("scrollY")
    number.click()
    claim = chapter.locator(":target")
    claim.wait_for(state="visible")
    assert claim.evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
    claim.locator(".companion-back").click()
    chapter.wait_for_function("before => Math.abs(scrollY - before) < 400", arg=before)
    assert chapter.locator(".companion-back").count() == 0


def test_keys_stop_at_what_can_be_used(chapter: Page):
    """Formulas are no stops, but for those that have to be scrolled, and where one stops can be seen."""
    chapter.wait_for_function("document.querySelectorAll('mjx-container').length > 0")
    stops = chapter.locator("mjx-container[tabindex='0']")
    assert stops.evaluate_all("all => all.filter(one => one.scrollWidth <= one.clientWidth).length") == 0
    for selector in ("a.companion-claim", ".companion-code-button", f"{CODE} > summary", "a.companion-zoom:visible"):
        chapter.locator(selector).first.focus()
        chapter.keyboard.press("Shift+Tab")
        chapter.keyboard.press("Tab")
        outline = chapter.evaluate("getComputedStyle(document.activeElement).outline")
        assert "solid" in outline, selector
        assert "3px" in outline, selector


def test_a_formula_that_does_not_fit_becomes_a_stop(chapter: Page):
    """Also where neither the window nor a fold has changed: its letters got wider, or its column narrower."""
    formula = chapter.locator('mjx-container[display="true"]:not([tabindex])').first
    formula.evaluate("one => { one.id = 'narrowed'; one.style.fontSize = '900%' }")
    chapter.locator("#narrowed[tabindex='0']").wait_for()
    formula = chapter.locator("#narrowed")
    formula.evaluate("one => { one.style.fontSize = '' }")
    chapter.locator("#narrowed:not([tabindex])").wait_for()
    formula.evaluate("one => { one.parentElement.style.width = '4em' }")
    chapter.locator("#narrowed[tabindex='0']").wait_for()
    formula.evaluate("one => { one.parentElement.style.width = ''; one.removeAttribute('id') }")


def test_every_source_that_a_page_cites_is_linked(readings: dict[str, dict], project: Project):
    """By the key that claims have, under the page, with where it can be read; nothing is fetched here."""
    listed = {}
    for name in [*project.notebooks(), "index"]:
        listed = dict(readings[name]["listed"])
        assert set(readings[name]["cited"]) <= {key.strip("[]") for key in listed}, name
        assert all(links and all(link.startswith("https://") for link in links) for links in listed.values()), name
    assert "https://arxiv.org/abs/2512.11784" in listed["[BB26]"]
    assert "https://arxiv.org/abs/2509.21936" in listed["[D26]"]


def test_boxes_have_the_numbers_of_their_paper(browser: Browser, address: str):
    """A lemma of a paper is called as it is there, in its title and wherever it is linked."""
    page = browser.new_page()
    page.goto(f"{address}/book/gaussian_limit.html")
    assert page.locator("#bb26-lemma-2-1 .admonition-title").inner_text() == "Lemma 2.1 of [BB26] (Gaussian prompts)"
    page.goto(f"{address}/book/what_holds.html")
    assert page.locator("a[href$='#bb26-lemma-2-1']").first.inner_text() == "BB26, Lemma 2.1"
    page.close()


def test_the_site_is_light(site: Path):
    """Under thirty megabytes; no file twice, no map of sources, no page that loads all the icons of the world."""
    files = [path for path in site.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 30 * MEGABYTE
    assert [path for path in files if path.suffix in (".map", ".ttf")] == []
    same = defaultdict(list)
    for path in files:
        if path.stat().st_size > 1000:
            same[digest(path.read_bytes())].append(path.relative_to(site).as_posix())
    assert [paths for paths in same.values() if len(paths) > 1] == []


def test_the_front_page_comes_quickly(browser: Browser, address: str):
    """All that it asks for before anybody scrolls, as it is and as servers compress it."""
    context = browser.new_context(viewport=DESKTOP)
    page, bodies = context.new_page(), {}
    page.on("response", lambda answer: bodies.update({answer.url: answer.body()} if answer.ok else {}))
    page.goto(f"{address}/book/index.html")
    page.wait_for_load_state("networkidle")
    assert sum(map(len, bodies.values())) < 1.5 * MEGABYTE
    assert sum(len(gzip.compress(body)) for body in bodies.values()) < 0.5 * MEGABYTE
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chapter_has_a_card_with_a_picture_of_that_size(browser: Browser, address: str, project: Project, scheme):
    """Drawn for it, sharp on a fine screen, a few kilobytes; it leads to the chapter, whose title it has."""
    page = browser.new_page(viewport=DESKTOP, color_scheme=scheme)
    page.goto(f"{address}/book/index.html")
    links = page.locator(".companion-card a:has(img)")
    names = links.evaluate_all("all => all.map(one => one.getAttribute('href').replace('.html', ''))")
    assert names == project.notebooks()
    for link, name in zip(links.all(), names, strict=True):
        assert link.inner_text().strip() == Notebook.named(project, name).title
        image = link.locator("img:visible")
        image.evaluate("image => { image.loading = 'eager'; return image.decode() }")
        assert image.get_attribute("src").endswith(f"-{scheme}.png")
        assert image.evaluate("image => image.naturalWidth") == 2 * thumbnails.SIZE[0]
        assert len(page.request.get(image.evaluate("image => image.src")).body()) < 30_000
    page.close()


def test_a_page_says_what_it_is_about(site: Path, project: Project):
    """To search engines and link previews; where it is only if the address is known."""
    for path in sorted((site / project.book.name).glob("*.html")):
        head = path.read_text(encoding="utf-8").partition("<body")[0]
        described = re.search(r'<meta name="description" content="([^"]+)">', head)
        assert described, path.name
        assert 20 < len(described[1]) < 300, path.name
        assert "\\" not in described[1], path.name
        assert ("og:url" in head) == (public_address(project) is not None)
    assert (site / "sitemap.xml").is_file() == (public_address(project) is not None)


def test_pages_are_read_from_disk(browser: Browser, site: Path, project: Project):
    """A site that was unpacked somewhere needs no server: pictures, folds and the ledger work from files."""
    context = browser.new_context(viewport=DESKTOP)
    page, failed = context.new_page(), []
    page.on("requestfailed", lambda request: failed.append(request.url))
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.goto((site / project.book.name / f"{project.notebooks()[0]}.html").as_uri())
    page.locator("figure img:visible").first.evaluate("image => image.decode()")
    page.goto((site / project.book.name / "claims.html").as_uri())
    page.fill("input[name=words]", "the")
    assert page.locator(".companion-entry:visible").count() > 0
    assert failed == []
    context.close()
