"""The front page, and the pages with maps and the citation of the book."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from companion.build.publication_policy import published_claims
from companion.figures import store
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.project.provenance import commit_of
from companion.site.statements import Statements

DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture
def front(visit: Callable[..., Page]) -> Page:
    return visit("index")


def test_it_leads_with_an_interactive_figure(front: Page):
    """Two sentences precede it; the point can be moved, and the readings follow."""
    figure = front.locator(".companion-shown-live .lab")
    expect(figure).to_be_in_viewport()
    paragraphs = front.locator("article section > p").first.inner_text()
    assert paragraphs.count(".") == 2
    reading = figure.locator("[data-reading=softmax]")
    before = reading.inner_text()
    figure.locator("[role=slider]").first.focus()
    front.keyboard.press("Shift+ArrowRight")
    assert reading.inner_text() != before
    assert front.locator(".companion-shown-live img:visible").count() == 0
    assert front.locator(".companion-hero > p .katex").count() >= 3


def test_the_interactive_figure_is_a_picture_without_scripts(visit: Callable[..., Page], unscripted: Page):
    page = visit("index", PHONE, unscripted)
    expect(page.locator(".companion-shown-live img:visible")).to_have_count(1)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_its_numbers_are_those_of_the_build(front: Page, project: Project, profile: str):
    names = project.notebooks()
    figures = [(name, figure) for name in names for figure in Notebook.named(project, name).figures]
    records = [store.read_record(project.shown_figures(profile) / name, figure) for name, figure in figures]
    claims = len(published_claims(project, profile))
    assert claims >= sum(len(record.claims) for record in records)
    shown = " ".join(front.locator("article").inner_text().split())
    assert f"{len(figures)} figures in {len(names)} chapters make {claims} claims" in shown


def test_it_has_five_screens(front: Page):
    """On a desktop; the live figure and its definition are on the first."""
    front.wait_for_selector(".lab-readings")
    front.add_style_tag(content="section { content-visibility: visible !important; }")
    assert front.evaluate("document.documentElement.scrollHeight") <= 5 * DESKTOP["height"]
    expect(front.locator(".lab-readings")).to_be_in_viewport(ratio=1)
    assert front.locator(".companion-map").count() == 0


def test_it_lists_the_chapters_once(front: Page, project: Project):
    """In the order of the contents, with the numbers of the list of pages, and with summaries."""
    entries = front.locator(".companion-chapters li")
    links = entries.locator("p:first-child > a").evaluate_all("all => all.map(link => link.getAttribute('href'))")
    assert links == [f"{name}.html" for name in project.notebooks()]
    assert entries.locator(".companion-summary").count() == len(links)
    starts = front.locator(".companion-chapters ol").evaluate_all(
        "all => all.map(list => [list.start, list.children.length])"
    )
    assert [start for start, _ in starts] == [1 + sum(count for _, count in starts[:at]) for at in range(len(starts))]
    listed = front.locator(".bd-links .toctree-l1 > a").all_inner_texts()
    numbered = [int(text.partition(". ")[0]) for text in listed if text[0].isdigit()]
    assert numbered == list(range(1, len(links) + 1))


def test_curves_of_the_interactive_figure_have_names(front: Page):
    """The names move with the curves, and the headline with the setting."""
    figure = front.locator(".companion-shown-live .lab")
    names = figure.locator(".lab-panel").first.locator(".lab-name")
    assert set(names.all_text_contents()) == {"softmax", "hardmax", "element-wise", "linear attention"}
    before, headline = names.first.bounding_box(), figure.locator(".lab-says").inner_text()
    assert "10⁶" in headline
    figure.locator("#lab-needle-decades").fill("9")
    assert names.first.bounding_box()["x"] > before["x"]
    assert "10⁹" in figure.locator(".lab-says").inner_text()


@pytest.fixture
def maps(visit: Callable[..., Page]) -> Page:
    return visit("maps")


def test_the_map_names_every_chapter_and_marks_its_links(maps: Page, project: Project):
    """Links to the chapters that one builds on differ from links of those that build on it."""
    chapters = maps.locator(".companion-map").first
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


def test_the_map_of_the_papers_joins_them_with_their_chapters(maps: Page, project: Project, profile: str):
    """A paper has a line to each chapter with a statement of it, and leads to the list of its statements."""
    statements = Statements.of(project, published_claims(project, profile))
    assert statements is not None
    joined = maps.locator(".companion-map").nth(1)
    for paper in statements.index.papers:
        rows = [row for row in statements.index.statements if row.paper == paper]
        pages = {page for row in rows for page in row.pages}
        pages |= {statements.boxes[label].page for row in rows for label in statements.boxes_of(row)}
        pages |= {claim.notebook for row in rows for claim in statements.claims_of(row)}
        entry = joined.locator(f"a[data-chapter={paper}]")
        assert f"[{paper}]" in entry.text_content()
        assert entry.get_attribute("href") == f"statements.html#{rows[0].anchor}"
        classes = joined.locator(f".map-of-{paper}").evaluate_all("all => all.map(line => line.getAttribute('class'))")
        assert {part.removeprefix("map-of-") for name in classes for part in name.split()[1:]} - {paper} == pages & set(
            project.notebooks()
        )
    entry.locator("text").first.hover()
    assert joined.locator(".map-shown").count() == len(classes) > 0


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
