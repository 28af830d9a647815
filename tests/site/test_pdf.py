"""The book on paper: every page in order, links that lead somewhere, and nothing cut off."""

import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from pypdf import PdfReader

from companion.project.paths import Project
from companion.site import pdf as printing

# Of paper: less than a hundred leaves would miss chapters, five hundred would be blank.
PLAUSIBLE = range(100, 500)
FIGURES = "figure.companion-figure"
# A4 without margins, in pixels of CSS.
TALLEST = (297 - 42) / 25.4 * 96


@pytest.fixture(scope="module")
def pdf(project: Project, profile: str, site: Path) -> Path:
    """Printed by the command that people type."""
    command = [sys.executable, "-m", "companion", "pdf", "--profile", profile]
    finished = subprocess.run(command, cwd=project.root, check=True, capture_output=True, text=True)
    target = printing.pdf_of(project, profile)
    assert str(target) in finished.stdout
    return target


@pytest.fixture(scope="module")
def reader(pdf: Path) -> PdfReader:
    return PdfReader(pdf)


@pytest.fixture(scope="module")
def pages(project: Project, profile: str, site: Path) -> list[printing.Page]:
    return printing.read_pages(project, profile)


@pytest.fixture(scope="module")
def numbers(pdf: Path, pages: list[printing.Page]) -> dict[str, int]:
    return printing.numbers(pdf, [page.name for page in pages])


@pytest.fixture(scope="module")
def paper(browser: Browser, pdf: Path) -> Iterator[Page]:
    """What was printed, laid out as it was."""
    page = browser.new_page()
    page.emulate_media(media="print")
    page.goto(pdf.with_suffix(".html").as_uri())
    page.evaluate(printing.READY)
    yield page
    page.close()


def words(text: str) -> str:
    """Without blanks, and letter by letter: some fonts print `fi` as one."""
    return unicodedata.normalize("NFKC", "".join(text.split()))


def bookmarks(outline: list) -> Iterator[str]:
    for entry in outline:
        if isinstance(entry, list):
            yield from bookmarks(entry)
        else:
            yield str(entry.title)


def test_every_page_of_the_book_is_there_in_order(project: Project, reader: PdfReader, pages, numbers: dict[str, int]):
    """Each begins on a leaf of its own with its title; the contents name the leaf, and so do bookmarks."""
    written = {path.stem for path in project.book.glob("*.md")} | set(project.notebooks())
    assert {page.name for page in pages} == written
    starts = [numbers[page.name] for page in pages]
    assert starts == sorted(set(starts))
    assert len(reader.pages) in PLAUSIBLE
    contents = words("".join(leaf.extract_text() for leaf in reader.pages[: starts[0] - 1]))
    marked = {words(title) for title in bookmarks(reader.outline)}
    for page, start in zip(pages, starts, strict=True):
        title = words(page.title)
        assert title in words(reader.pages[start - 1].extract_text()), page.name
        assert f"{title}{start}" in contents, page.name
        assert title in marked, page.name


def test_every_link_leads_somewhere(reader: PdfReader, paper: Page):
    """To a place of the PDF that is there, or to the world; never to a file of the machine that printed it."""
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
    assert len(within) > 1000
    assert [address for address in outside if not address.startswith("https://")] == []
    asked = set(paper.eval_on_selector_all("a[href^='#']", "all => all.map(one => decodeURIComponent(one.hash))"))
    assert {f"#{place.removeprefix('/')}" for place in within} == asked


def test_nothing_is_cut_off(paper: Page):
    """Code, tables, formulas and pictures keep to the paper's width, and a figure fits on one leaf."""
    assert paper.evaluate(printing.CLIPPED) == []
    heights = paper.locator(FIGURES).evaluate_all("all => all.map(one => one.getBoundingClientRect().height)")
    assert heights
    assert max(heights) < TALLEST
    assert paper.locator("img").evaluate_all("all => all.filter(one => !one.naturalWidth).length") == 0
    assert paper.locator("mjx-merror").count() == 0


def test_what_is_cut_off_would_be_told(paper: Page):
    """A block of code that does not wrap is named with its page."""
    code = paper.locator("section.page pre").first
    code.evaluate("one => { one.style.whiteSpace = 'pre'; one.prepend('x'.repeat(400)) }")
    (told,) = paper.evaluate(printing.CLIPPED)
    assert "pre xxx" in told
    code.evaluate("one => { one.style.whiteSpace = ''; one.firstChild.remove() }")


def test_figures_claims_and_code_are_printed(project: Project, paper: Page):
    """Every figure once, in its light version, with what it claims; the code of every notebook, unfolded."""
    figures = paper.locator(FIGURES)
    assert figures.count() == paper.locator(f"{FIGURES} img").count() == paper.locator(f"{FIGURES} img:visible").count()
    assert paper.locator(".companion-statement-of:visible").count() > figures.count()
    for name in project.notebooks():
        assert paper.locator(f"section[id='{name}'] .cell pre:visible").count() > 1, name
    assert paper.locator("details, button, input, select").count() == 0


def test_there_must_be_a_site(project: Project, tmp_path: Path):
    """Without one, a sentence says how to make it."""
    for name in ("_config.yml", "pyproject.toml"):
        (tmp_path / name).write_bytes((project.root / name).read_bytes())
    command = [sys.executable, "-m", "companion", "pdf"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 2
    assert "companion build --profile laptop" in finished.stderr
