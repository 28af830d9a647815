"""The design in a browser: face, widths, theorem boxes, the lines of figures and chapters, citations, formulas."""

import re
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Page

from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.site import tokens

DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
LINE = ".companion-line.companion-details"
# Return the shown width of each picture, and the width of its file.
PICTURES = """() => [...document.querySelectorAll('figure.companion-figure img')].filter(node => node.offsetWidth)
    .map(node => [node.getBoundingClientRect().width, Number(node.getAttribute('width'))])"""


def test_pictures_are_shown_at_their_own_size(visit, project: Project):
    """Their text then has the size of text on the page."""
    widths = visit(project.notebooks()[1]).evaluate(PICTURES)
    assert widths
    assert all(abs(shown - own) <= 1 for shown, own in widths), widths


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_parts_open_below_the_line_without_scripts(visit, unscripted: Page, project: Project, viewport):
    """The keyboard opens them too. An open part has the full width, and opening another closes it."""
    page = visit(project.notebooks()[1], viewport, unscripted)
    line = page.locator(LINE).first
    folds = line.locator(":scope > details")
    last = folds.last.locator("summary")
    last.scroll_into_view_if_needed()
    for fold in folds.all():
        fold.locator("summary").first.focus()
        page.keyboard.press("Enter")
        assert line.locator(":scope > details[open]").count() == 1
        content = fold.locator(":scope > :not(summary)").first
        assert content.is_visible()
        bottom = last.bounding_box()["y"] + last.bounding_box()["height"]
        assert content.bounding_box()["y"] >= bottom
        assert line.bounding_box()["width"] <= viewport["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_a_figure_can_be_cited(visit, project: Project):
    """The button copies a BibTeX entry with the headline, the version and the commit."""
    name = project.notebooks()[0]
    page = visit(name)
    fold = page.locator(f"{LINE} > .companion-cite").first
    fold.locator("summary").click()
    fold.locator("pre").hover()
    fold.locator("button.copybtn").click()
    page.wait_for_function("navigator.clipboard.readText().then(text => text.startsWith('@misc'))")
    entry = page.evaluate("navigator.clipboard.readText()")
    figure = Notebook.named(project, name).figures[0]
    assert entry.startswith(f"@misc{{{name}-{figure},")
    assert f"{name}/{figure}".replace("_", r"\_") in entry
    assert f"Version {project.metadata['version']}" in entry
    assert re.search(r"year = \{\d{4}\}", entry)
    assert entry.count("{") == entry.count("}")


def test_every_page_ends_with_its_version(site: Path, redirections: dict[str, Path], project: Project):
    """All pages have the same line, and no mark in a citation is empty."""
    lines = set()
    for path in (site / project.book.name).glob("*.html"):
        if path.relative_to(site).as_posix() in redirections:
            continue
        text = path.read_text(encoding="utf-8")
        (line,) = re.findall(r'<p class="companion-version">(.*?)</p>', text)
        lines.add(re.sub(r"<[^>]*>", "", line))
        assert '<span data-book="version"></span>' not in text
    (line,) = lines
    assert line.startswith(f"Version {project.metadata['version']}")


def test_tokens_are_the_only_colours():
    """The style sheets name no colour, except that of a shadow in `companion.css`, and no token that does not exist."""
    names = ("design.css", "navigation.css")
    assets = files("companion.site.sphinx") / "assets"
    sheet = "".join((assets / name).read_text(encoding="utf-8") for name in names)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\(", sheet) == []
    written = tokens.css()
    for name in re.findall(r"var\(--((?:book|size|face)-[\w-]+)", sheet):
        assert f"--{name}:" in written
