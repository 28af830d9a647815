"""Print the built site as one PDF: one page after another, with a style for paper, by Chromium.

Folds are open. The PDF leaves out elements for screens (buttons, live figures) and, under figures, code, data,
parameters and origin, which are on the site. Links lead to places in the same file.
"""

import html
import json
import os
import shutil
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from bs4 import BeautifulSoup, Tag
from playwright.sync_api import Page as Tab
from playwright.sync_api import sync_playwright
from pypdf import PdfReader

from companion.io import atomic
from companion.io.errors import UserError
from companion.io.yaml import read_yaml
from companion.project.paths import MARK, Project
from companion.project.repository import site_address
from companion.site.sphinx.citations import pdf_name
from companion.site.sphinx.gallery import GALLERY

TEMPLATES = Path(__file__).with_name("templates")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
# Elements that only a screen can use.
SCREEN_ONLY = (
    "script, style, noscript, button, input, "
    ".companion-filter, .companion-head, .companion-live, .companion-map, .headerlink, .toctree-wrapper"
)
# Wait until pictures and fonts are loaded, and shrink formulas that are wider than their column.
READY = """async () => {
    await Promise.all([...document.images].map((image) => image.decode()));
    await document.fonts.ready;
    for (const formula of document.querySelectorAll('.katex')) {
        const room = formula.closest('div, td, th, li, p, dd, figcaption, section').clientWidth;
        const width = formula.getBoundingClientRect().width;
        if (width > room) formula.style.fontSize = `calc(var(--size-formula) * ${0.99 * room / width})`;
    }
}"""
# Return the elements that the paper would clip, each with its page of the book.
CLIPPED = """() => {
    const page = document.querySelector('main').getBoundingClientRect();
    const clipped = (element) => {
        const box = element.getBoundingClientRect();
        const isFormula = element.matches('.katex');  // what a formula has outside its box is drawn, too
        const scrolls = !isFormula && element.clientWidth && element.scrollWidth > element.clientWidth + 1;
        const right = box.left + Math.max(box.width, isFormula ? element.scrollWidth : 0);
        return scrolls || right > page.right + 1 || box.left < page.left - 1;
    };
    return [...document.querySelectorAll('pre, img, table, .katex')].filter(clipped).map((element) => {
        const start = (element.alt ?? element.textContent).trim().slice(0, 60);
        return `${element.closest('section.page')?.id}: ${element.tagName.toLowerCase()} ${start}`;
    });
}"""
# Write the numbers of the sheets on which pages begin into the contents.
NUMBER = """numbers => Object.entries(numbers).forEach(([name, number]) => {
    document.querySelector(`[data-number-of='${name}']`).textContent = number;
})"""


@dataclass(frozen=True)
class Page:
    """A page of the book: its name, its content, and the title of the part that starts with it, as HTML, or empty."""

    name: str
    article: Tag
    part: str

    @property
    def title(self) -> str:
        """The first heading of the page."""
        heading = self.article.find("h1")
        return " ".join(heading.get_text().split()) if heading else self.name


def print_book(project: Project, profile: str, pages: Sequence[Page] | None = None) -> Path:
    """Print the built site of `profile`, or only some of its pages, and return the path of the PDF.

    The HTML that it is printed from is next to it.

    Raises:
      UserError: if an element does not fit the paper.
    """
    target = project.build(profile).folder / pdf_name(project)
    pages = read_pages(project, profile) if pages is None else pages
    source = target.with_suffix(".html")
    hidden = target.with_name(f".{target.name}")
    atomic.write_text(source, assemble(project, profile, pages))
    with opened(source) as tab:
        if clipped := tab.evaluate(CLIPPED):
            raise UserError("\n".join(["These elements are wider than the paper:", *clipped]))
        for final in (False, True):  # the first PDF gives the page numbers for the contents of the second
            tab.pdf(path=hidden, prefer_css_page_size=True, print_background=True, outline=final, tagged=final)
            tab.evaluate(NUMBER, page_numbers(hidden, [page.name for page in pages]))
    os.replace(hidden, target)
    return target


def page_numbers(pdf: Path, names: list[str]) -> dict[str, int]:
    """Return the number of the PDF page on which each page of the book starts, by its name."""
    reader = PdfReader(pdf)
    destinations = reader.named_destinations
    return {name: (reader.get_destination_page_number(destinations[f"/{name}"]) or 0) + 1 for name in names}


@contextmanager
def opened(source: Path) -> Generator[Tab]:
    """Open an HTML file in a browser with the layout of paper, and yield the tab when the page is complete."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        tab = browser.new_page(color_scheme="light")
        tab.set_default_timeout(300_000)
        tab.emulate_media(media="print")
        tab.goto(source.as_uri())
        tab.evaluate(READY)
        yield tab
        browser.close()


def find_browser() -> str:
    """Return the path of Chromium: $CHROMIUM, or a browser on the PATH. Raise a `UserError` if there is none."""
    for name in [os.environ.get("CHROMIUM"), *BROWSERS]:
        if name and (path := shutil.which(name)):
            return path
    raise UserError("A PDF needs Chromium, which is not installed. Install it, or set CHROMIUM=/path/to/it.")


def read_pages(project: Project, profile: str, names: Collection[str] | None = None) -> list[Page]:
    """Return the pages with these names (default: all), in the order of the table of contents, prepared for paper.

    A gallery is left out.
    """
    site = project.site(profile)
    contents = read_yaml(project.root / "_toc.yml")
    files = [(contents["root"], "")]
    for part in contents.get("parts", [contents]):
        first, *rest = _files(part)
        files += [(first, part.get("caption", "")), *((file, "") for file in rest)]
    pages: list[Page] = []
    for file, part in files:
        name = file.rpartition("/")[2]
        if names is not None and name not in names:
            continue
        soup = BeautifulSoup((site / f"{file}.html").read_text(encoding="utf-8"), "html.parser")
        article = soup.select_one("article")
        assert article is not None, file
        if not article.select_one(f".{GALLERY}"):  # its pictures are in the chapters
            _for_paper(article, site / project.book.name)
            pages.append(Page(name, article, f'<p class="part">{html.escape(part)}</p>\n' if part else ""))
    return pages


def _files(part: dict[str, Any]) -> Iterator[str]:
    for entry in part.get("chapters", part.get("sections", [])):
        yield entry["file"]
        yield from _files(entry)


def assemble(project: Project, profile: str, pages: Sequence[Page]) -> str:
    """Return the pages as one HTML document, which needs only files of the site."""
    site, address = project.site(profile), site_address(project)
    anchors = {f"{page.name}.{element['id']}" for page in pages for element in page.article.select("[id]")}
    anchors |= {page.name for page in pages}
    for page in pages:
        _rewrite_links(page, anchors, address and f"{address}{project.book.name}/")
    configuration = read_yaml(project.root / MARK)
    running = "@page leaf-{} {{ @top-left {{ content: {}; }} }}"
    return Template((TEMPLATES / "book.html.txt").read_text(encoding="utf-8")).substitute(
        title=html.escape(configuration["title"]),
        author=html.escape(configuration.get("author", "")),
        version=html.escape(project.metadata["version"]),
        chapters=html.escape(project.settings.chapters),
        static=(site / "_static").as_uri(),
        style=(TEMPLATES / "book.css.txt").read_text(encoding="utf-8"),
        running="\n".join(
            running.format(place, json.dumps(page.title, ensure_ascii=False)) for place, page in enumerate(pages)
        ),
        contents="\n".join(_row(page) for page in pages),
        pages="\n".join(_section(place, page) for place, page in enumerate(pages)),
    )


def _row(page: Page) -> str:
    number = f'<span class="number" data-number-of="{page.name}"></span>'
    return f'{page.part}<p class="row"><a href="#{page.name}">{html.escape(page.title)}</a>{number}</p>'


def _section(place: int, page: Page) -> str:
    inner = page.article.decode_contents(formatter="minimal")
    return f'<section class="page" id="{page.name}" style="page: leaf-{place}">\n{page.part}{inner}\n</section>'


def _for_paper(article: Tag, folder: Path) -> None:
    """Remove the elements for screens, open the folds, and replace addresses of pictures by addresses of files."""
    for element in article.select(SCREEN_ONLY):
        element.decompose()
    for line in article.select(".companion-line.companion-details"):
        if claims := line.select_one("details.companion-claims"):
            claims["class"] = "companion-details"
            line.replace_with(claims)
        else:
            line.decompose()
    for summary in article.select("details.hide > summary, .companion-badges summary"):
        summary.decompose()  # the first line of the content is the same text
    for summary in article.select("details > summary"):
        summary.name = "div"
    for details in article.select("details"):
        details.name = "div"
        details["class"] = " ".join([*details.get_attribute_list("class"), "unfolded"])
    for link in article.select("a.companion-zoom"):
        link.unwrap()
    for image in article.select("img"):
        image["src"] = Path(os.path.normpath(folder / unquote(urlsplit(str(image["src"])).path))).as_uri()
        del image["loading"]


def _rewrite_links(page: Page, anchors: set[str], folder: str | None) -> None:
    """Rewrite the links of a page, and make its ids unique in the PDF.

    A link leads to an anchor of the PDF, or else to the site if its address is known. Links to other sites stay. Any
    other link is replaced by its text.

    Args:
      page: the page, which is changed.
      anchors: all anchors of the PDF.
      folder: the address of the site's folder of pages, or None while it is unknown.
    """
    for link in page.article.select("a[href]"):
        href = urlsplit(str(link["href"]))
        name = Path(href.path).stem if href.path.endswith(".html") else "" if href.path else page.name
        anchor = f"{name}.{href.fragment}" if href.fragment else name
        if href.scheme:
            continue
        if anchor in anchors:
            link["href"] = f"#{anchor}"
        elif folder:
            link["href"] = urljoin(folder, href.geturl())
        else:
            link.unwrap()
    for element in page.article.select("[id]"):
        element["id"] = f"{page.name}.{element['id']}"
