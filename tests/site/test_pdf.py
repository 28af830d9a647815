"""Pages as a PDF: in order, with working links, and nothing cut off. The front page and two chapters are printed."""

import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from pypdf import PdfReader

from companion.project.paths import Project
from companion.site import pdf as printing

# PDF pages per page of the site: fewer would mean missing content, more would mean blank pages.
FEWEST, MOST = 3, 20
FIGURES = "figure.companion-figure"
# The name and the title of each page.
TITLES = "all => all.map(page => [page.id, page.querySelector('h1').textContent])"
# Height of A4 paper without margins, in CSS pixels.
TALLEST = (297 - 42) / 25.4 * 96
PRINTED = ("index", "gaussian_limit", "exact_finite_prompt")


@pytest.fixture(scope="module")
def pdf(project: Project, profile: str, site: Path) -> Path:
    """The PDF file of a few pages."""
    pages = printing.read_pages(project, profile, PRINTED)
    with ThreadPoolExecutor(1) as pool:  # a thread has one browser, and that of the tests is open
        return pool.submit(printing.print_book, project, profile, pages).result()


@pytest.fixture(scope="module")
def reader(pdf: Path) -> PdfReader:
    return PdfReader(pdf)


@pytest.fixture(scope="module")
def numbers(reader: PdfReader) -> dict[str, int]:
    """The sheet on which each page of the book starts, by its name."""
    places = {name.removeprefix("/"): place for name, place in reader.named_destinations.items()}
    return {name: reader.get_destination_page_number(place) + 1 for name, place in places.items() if "." not in name}


@pytest.fixture(scope="module")
def paper(browser: Browser, pdf: Path) -> Iterator[Page]:
    """The HTML page that was printed, laid out for print."""
    page = browser.new_page()
    page.emulate_media(media="print")
    page.goto(pdf.with_suffix(".html").as_uri())
    page.evaluate(printing.READY)
    yield page
    page.close()


def words(text: str) -> str:
    """Return the text without blanks and with ligatures such as `fi` split into letters."""
    return unicodedata.normalize("NFKC", "".join(text.split()))


def bookmarks(outline: list) -> Iterator[str]:
    for entry in outline:
        if isinstance(entry, list):
            yield from bookmarks(entry)
        else:
            yield str(entry.title)


def test_pages_are_printed_in_order(paper: Page, reader: PdfReader, numbers: dict[str, int]):
    """Each begins on a new sheet with its title; the contents and the bookmarks refer to that sheet."""
    titles = dict(paper.locator("section.page").evaluate_all(TITLES))
    assert titles.keys() == numbers.keys() == set(PRINTED)
    starts = [numbers[name] for name in titles]
    assert starts == sorted(set(starts))
    assert FEWEST * len(titles) < len(reader.pages) < MOST * len(titles)
    contents = words("".join(leaf.extract_text() for leaf in reader.pages[: starts[0] - 1]))
    marked = {words(title) for title in bookmarks(reader.outline)}
    for (name, title), start in zip(titles.items(), starts, strict=True):
        assert words(title) in words(reader.pages[start - 1].extract_text()), name
        assert f"{words(title)}{start}" in contents, name
        assert words(title) in marked, name


def test_every_link_works(reader: PdfReader, paper: Page):
    """Links lead to a place in the PDF or to a web address, and never to a local file."""
    places = reader.named_destinations
    within, outside = [], []
    for leaf in reader.pages:
        for annotation in leaf.get("/Annots", []):
            link = annotation.get_object()
            if "/Dest" in link:
                within.append(str(link["/Dest"]))
            elif "/A" in link:
                outside.append(str(link["/A"]["/URI"]))
    assert sorted(set(within) - set(places)) == []
    assert len(within) > 100
    assert [address for address in outside if not address.startswith("https://")] == []
    expected = set(paper.eval_on_selector_all("a[href^='#']", "all => all.map(node => decodeURIComponent(node.hash))"))
    assert {f"#{place.removeprefix('/')}" for place in within} == expected


def test_nothing_is_cut_off(paper: Page):
    """Code, tables, formulas and pictures fit the width of the paper, and each figure fits on one sheet."""
    assert paper.evaluate(printing.CLIPPED) == []
    heights = paper.locator(FIGURES).evaluate_all("all => all.map(node => node.getBoundingClientRect().height)")
    assert heights
    assert max(heights) < TALLEST
    assert paper.locator("img").evaluate_all("all => all.filter(node => !node.naturalWidth).length") == 0
    assert paper.locator(".math code").count() == 0


def test_clipped_content_is_reported(paper: Page):
    """The report for a block of code that does not wrap quotes its beginning."""
    code = paper.locator("section.page pre").first
    code.evaluate("node => { node.style.whiteSpace = 'pre'; node.prepend('x'.repeat(400)) }")
    (report,) = paper.evaluate(printing.CLIPPED)
    assert "pre xxx" in report
    code.evaluate("node => { node.style.whiteSpace = ''; node.firstChild.remove() }")


def test_figures_claims_and_code_are_printed(project: Project, paper: Page):
    """Each figure is printed once, in its light version and with its claims; the code of every notebook is unfolded."""
    figures = paper.locator(FIGURES)
    assert figures.count() == paper.locator(f"{FIGURES} img").count() == paper.locator(f"{FIGURES} img:visible").count()
    assert paper.locator(".companion-statement-of:visible").count() > figures.count()
    for name in PRINTED[1:]:
        assert paper.locator(f"section[id='{name}'] .cell pre:visible").count() > 1, name
    assert paper.locator("details, button, input, select").count() == 0


@pytest.mark.daily
def test_the_whole_book_is_printed(project: Project, profile: str, site: Path):
    """`companion site --pdf` refuses elements that are wider than the paper; each page of the book has its bookmark."""
    command = [sys.executable, "-m", "companion", "site", "--pdf", "--profile", profile]
    finished = subprocess.run(command, cwd=project.root, check=True, capture_output=True, text=True)
    target = project.build(profile).folder / printing.pdf_name(project)
    assert str(target) in finished.stdout
    pages = printing.read_pages(project, profile)
    written = {path.stem for path in project.book.glob("*.md")} - {"gallery"} | set(project.notebooks())
    assert {page.name for page in pages} == written  # the pictures of the gallery are in the chapters
    marked = {words(title) for title in bookmarks(PdfReader(target).outline)}
    assert {words(page.title) for page in pages} <= marked
