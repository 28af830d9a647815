"""The front page, and the pages with maps, routes and the citation of the book."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from companion.figures import thumbnails
from companion.figures.record import PublishedClaim
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.project.provenance import commit_of
from companion.site.reading_time import of_page
from companion.site.statements import Statements

HEIGHT = 900
PHONE = {"width": 390, "height": 844}


@pytest.fixture
def front(visit: Callable[..., Page]) -> Page:
    return visit("index")


def test_it_leads_with_an_interactive_figure(front: Page):
    """The point can be moved, and the readings, the headline and the names of the curves follow."""
    figure = front.locator(".companion-shown-live .lab")
    expect(figure).to_be_in_viewport()
    expect(front.locator(".lab-readings")).to_be_in_viewport(ratio=1)
    assert front.locator(".companion-shown-live img:visible").count() == 0
    names, reading = figure.locator(".lab-panel").first.locator(".lab-name"), figure.locator("[data-reading=softmax]")
    assert set(names.all_text_contents()) == {"softmax", "hardmax", "element-wise", "linear attention"}
    before, place = reading.inner_text(), names.first.bounding_box()["x"]
    figure.locator("[role=slider]").first.focus()
    front.keyboard.press("Shift+ArrowRight")
    assert reading.inner_text() != before
    assert "10⁶" in figure.locator(".lab-says").inner_text()
    figure.locator("#lab-needle-decades").fill("9")
    assert names.first.bounding_box()["x"] > place
    assert "10⁹" in figure.locator(".lab-says").inner_text()
    assert front.locator(".companion-hero > p .katex").count() >= 3


def test_its_numbers_are_those_of_the_build(front: Page, project: Project, claims: list[PublishedClaim]):
    names = project.notebooks()
    figures = sum(len(Notebook.named(project, name).figures) for name in names)
    shown = " ".join(front.locator("article").inner_text().split())
    assert f"{figures} figures in {len(names)} chapters make {len(claims)} claims" in shown


def test_it_has_five_screens(front: Page):
    front.wait_for_selector(".lab-readings")
    front.add_style_tag(content="section { content-visibility: visible !important; }")
    assert front.evaluate("document.documentElement.scrollHeight") <= 5 * HEIGHT


def test_lines_stay_where_they_are_when_a_face_comes_late(browser: Browser, address: str):
    """On a slow connection the cumulative layout shift is below 0.01."""
    context = browser.new_context(viewport=PHONE, is_mobile=True)
    page = context.new_page()
    page.route("**/fonts/book-serif-*", lambda route: (page.wait_for_timeout(500), route.continue_()))
    page.add_init_script("""window.moved = 0;
        new PerformanceObserver((shifts) => { for (const shift of shifts.getEntries()) window.moved += shift.value; })
            .observe({ type: "layout-shift", buffered: true });""")
    page.goto(f"{address}/book/index.html")
    page.wait_for_selector(".lab-readings")
    page.wait_for_timeout(500)
    assert page.evaluate("window.moved") < 0.01
    context.close()


def test_it_lists_the_chapters_once(front: Page, project: Project):
    """In the order of the contents, with the numbers of the list of pages, and with summaries."""
    entries = front.locator(".companion-chapters li")
    links = entries.locator("p:first-child > a").evaluate_all("all => all.map(link => link.getAttribute('href'))")
    assert links == [f"{name}.html" for name in project.notebooks()]
    assert entries.locator(".companion-summary").count() == len(links)
    lists = front.locator(".companion-chapters ol")
    numbers = lists.evaluate_all("all => all.flatMap(list => [...list.children].map((_, at) => list.start + at))")
    listed = front.locator(".bd-links .toctree-l1 > a").all_inner_texts()
    numbered = [int(text.partition(". ")[0]) for text in listed if text[0].isdigit()]
    assert numbers == numbered == list(range(1, len(links) + 1))


def test_a_card_has_a_thumbnail(front: Page, project: Project):
    """The thumbnail has twice the displayed size; the card has the chapter's title and links to it."""
    links = front.locator(".companion-card a:has(img)")
    assert links.count() == 3
    for link in links.all():
        name = link.get_attribute("href").removesuffix(".html")
        assert link.text_content().strip() == Notebook.named(project, name).title
        image = link.locator("img:visible")
        image.evaluate("image => { image.loading = 'eager'; return image.decode() }")
        assert image.evaluate("image => image.naturalWidth") == 2 * thumbnails.SIZE[0]


def test_the_map_names_every_chapter_and_marks_its_links(visit: Callable[..., Page], project: Project):
    """Links to the chapters that one builds on differ from links of those that build on it."""
    chapters = visit("maps").locator(".companion-map").first
    links = chapters.locator("a[data-chapter]")
    assert [link.get_attribute("data-chapter") for link in links.all()] == project.notebooks()
    assert links.first.get_attribute("href") == f"{project.notebooks()[0]}.html"
    name = project.notebooks()[3]
    chapters.locator(f"a[data-chapter={name}] text").hover()
    shown = chapters.locator(".map-link.map-shown")
    assert shown.count() == chapters.locator(f".map-link.map-of-{name}").count() > 0
    before = chapters.locator(f".map-link[data-later={name}]").count()
    assert 0 < before == chapters.locator("a.map-before").count() < shown.count()
    assert shown.count() - before == chapters.locator(".map-link.map-after").count()


def test_the_map_of_the_papers_joins_them_with_their_chapters(
    visit: Callable[..., Page], project: Project, claims: list[PublishedClaim]
):
    """A paper has a line to each chapter with a statement of it, and leads to the list of its statements."""
    statements = Statements.of(project, claims)
    joined = visit("maps").locator(".companion-map").nth(1)
    for paper in statements.index.papers:
        rows = [row for row in statements.index.statements if row.paper == paper]
        pages = {page for row in rows for page in row.pages}
        pages |= {statements.boxes[label].page for row in rows for label in statements.boxes_of(row)}
        pages |= {claim.notebook for row in rows for claim in statements.claims_of(row)}
        entry = joined.locator(f"a[data-chapter={paper}]")
        assert entry.get_attribute("href") == f"statements.html#{rows[0].anchor}"
        classes = joined.locator(f".map-of-{paper}").evaluate_all("all => all.flatMap(line => [...line.classList])")
        ends = {name.removeprefix("map-of-") for name in classes if name.startswith("map-of-")}
        assert ends - {paper} == pages & set(project.notebooks())


def test_routes_are_numbered_lists_with_the_minutes_of_their_chapters(visit: Callable[..., Page], project: Project):
    """The second list is the core; each total is the sum of the minutes shown."""
    page = visit("routes")
    lists = page.locator("article ol")
    pages = lists.evaluate_all("all => all.map(list => [...list.querySelectorAll('a')].map(link => link.pathname))")
    names = [[Path(path).stem for path in paths] for paths in pages]
    assert len(names) == 4
    assert names[1] == project.notebooks()[:12]
    totals = [int(number) for number in re.findall(r"Together (\d+) minutes", page.locator("article").text_content())]
    minutes = [sum(max(1, round(of_page(project, name).minutes)) for name in route) for route in names]
    assert totals[1:] == minutes[1:]
    assert totals[0] <= 30
    assert totals[1] <= 4 * 60


def test_the_citation_of_the_book_can_be_copied(visit: Callable[..., Page], project: Project):
    """It has the version, and, in a git repository, the commit and the date; without an address it says so."""
    entry = visit("cite").locator(".companion-book-entry")
    text = entry.text_content().strip()
    assert text.startswith("@software{")
    assert f"Version {project.metadata['version']}" in text
    if commit := commit_of(project.root):
        assert f"commit {commit['commit'][:8]}" in text
    assert ("url = " in text) != ("not yet at a public address" in text)
    expect(entry.locator("button.copybtn")).to_have_count(1)
