"""The design in a browser: face, widths, theorem boxes, the lines of figures and chapters, citations, formulas."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from companion.build.publication_policy import published_claims
from companion.figures import store
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.site import tokens
from companion.site.sphinx.cards import CARD
from companion.site.sphinx.inline_text import figure_anchor
from companion.site.statements import Statements

DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
KILOBYTE = 1000
LINE = ".companion-line.companion-details"
# Open all folds, and lay out sections that are far from the window.
OPEN_ALL = """() => {
    delete document.documentElement.dataset.lazy;
    document.querySelectorAll('details').forEach(fold => { fold.removeAttribute('name'); fold.open = true });
}"""
# Return the mean number of characters in the full lines of paragraphs without formulas.
CHARACTERS = """() => {
    const counts = [];
    for (const paragraph of document.querySelectorAll('article section > p:not(:has(.math, code))')) {
        const range = document.createRange(), lines = new Map();
        const walker = document.createTreeWalker(paragraph, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) for (let i = 0; i < walker.currentNode.length; i++) {
            range.setStart(walker.currentNode, i);
            range.setEnd(walker.currentNode, i + 1);
            const line = Math.round(range.getBoundingClientRect().bottom / 12);
            lines.set(line, (lines.get(line) ?? 0) + 1);
        }
        counts.push(...[...lines.values()].slice(0, -1));
    }
    return counts.filter(count => count > 30).reduce((sum, count, _, all) => sum + count / all.length, 0);
}"""
# Return the width of each formula that is wider than its column, the width of the column, and what marks it.
WIDE = """() => {
    const size = node => parseFloat(getComputedStyle(node).fontSize);
    const scale = parseFloat(getComputedStyle(document.documentElement).getPropertyValue('--size-formula'));
    return [...document.querySelectorAll('article .katex-display')]
    .filter(node => node.scrollWidth > node.clientWidth + 1)
    .map(node => [node.closest('[id]').id, node.tabIndex, getComputedStyle(node).backgroundImage !== 'none',
                  size(node.firstElementChild) / size(node) / scale]);
}"""
# Wait until formulas are fitted to a new width.
FITTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"
# Return the number of findings, and for each picture among them the links in words to the same figure, and the figures.
FINDINGS = """() => [
    document.querySelectorAll('#findings > ul > li').length,
    [...document.querySelectorAll('.companion-findings > li > .companion-finding a')].map(link => {
        const target = link.getAttribute('href');
        const links = link.closest('li').querySelectorAll(`a[href='${target}']:not(:has(img))`);
        return [links.length, document.querySelectorAll(`figure${target}`).length];
    }),
]"""
# Return the shown width of each picture, and the width of its file.
PICTURES = """() => [...document.querySelectorAll('figure.companion-figure img')].filter(node => node.offsetWidth)
    .map(node => [node.getBoundingClientRect().width, Number(node.getAttribute('width'))])"""
NAMES = """() => [...document.querySelectorAll('article table code')]
    .filter(node => !node.textContent.includes(' ') && node.getClientRects().length > 1)
    .map(node => node.textContent)"""


def rgb(colour: str) -> str:
    """Return a hexadecimal colour in the form of computed styles."""
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    tab = browser.new_page(viewport=DESKTOP, color_scheme="light")
    yield tab
    tab.close()


@pytest.fixture
def chapter(page: Page, address: str, project: Project) -> Page:
    page.goto(f"{address}/book/{project.notebooks()[1]}.html")
    return page


def test_text_has_one_face_and_about_72_characters_in_a_line(chapter: Page, site: Path):
    chapter.evaluate("document.fonts.ready")
    loaded = chapter.evaluate("[...document.fonts].filter(face => face.status === 'loaded').map(face => face.family)")
    assert any("Book Serif" in family for family in loaded)
    for selector in ("article p", "article h1", ".bd-sidebar-primary", "figcaption"):
        family = chapter.locator(selector).first.evaluate("node => getComputedStyle(node).fontFamily")
        assert family.startswith('"Book Serif"'), selector
    assert 66 <= chapter.evaluate(CHARACTERS) <= 78
    fonts = list((site / "_static/fonts").glob("book-serif*.woff2"))
    assert 0 < sum(path.stat().st_size for path in fonts) < 120 * KILOBYTE
    assert (site / "_static/fonts/LICENSE.md").is_file()


def test_headings_are_graded(page: Page, address: str):
    """Each level is at least a sixth larger than the next, and the lowest is not smaller than the text."""
    page.goto(f"{address}/book/gaussian_limit.html")
    sizes = [
        page.locator(f"article {tag}").first.evaluate("node => parseFloat(getComputedStyle(node).fontSize)")
        for tag in ("h1", "h2", "h3", "section > p")
    ]
    assert all(larger > 1.1 * smaller for larger, smaller in itertools.pairwise(sizes)), sizes


def test_pictures_are_shown_at_their_own_size(chapter: Page):
    """Their text then has the size of text on the page."""
    widths = chapter.evaluate(PICTURES)
    assert widths
    assert all(abs(shown - own) <= 1 for shown, own in widths), widths


@pytest.mark.parametrize("scheme", tokens.THEMES)
def test_boxes_look_alike_and_their_rule_shows_the_source(
    browser: Browser, address: str, project: Project, profile, scheme
):
    """The colour of the rule is the token of the source, and the badge names the source."""
    statements = Statements.of(project, published_claims(project, profile))
    colours = {"paper": "from-paper", "derived": "derived", "heuristic": "heuristic"}
    names = {"paper": "from a paper", "derived": "derived here", "heuristic": "heuristic"}
    page = browser.new_page(viewport=DESKTOP, color_scheme=scheme)
    sources = set()
    for name in ("gaussian_limit", "sharp_rates", "finite_samples"):
        page.goto(f"{address}/book/{name}.html")
        looks = page.locator("div.proof[id]").evaluate_all(
            """all => all.map(node => { const look = getComputedStyle(node); return [node.id, look.borderLeftColor,
            look.backgroundColor, look.boxShadow, node.querySelector('.companion-badge')?.textContent.trim()] })"""
        )
        boxes = {label: look for label, *look in looks if label in statements.boxes}
        assert boxes
        for label, look in boxes.items():
            source = statements.source_of(label)
            sources.add(source)
            assert look == [rgb(tokens.COLOURS[colours[source]][scheme]), "rgba(0, 0, 0, 0)", "none", names[source]]
    assert sources == set(names)
    page.close()


def test_claims_are_quiet(chapter: Page):
    """A number has the colour of the text and a dotted underline; its check mark is smaller and coloured."""
    claim = chapter.locator("article p a.companion-claim").first
    look = claim.evaluate(
        "node => { const look = getComputedStyle(node); return [look.color, look.textDecorationStyle] }"
    )
    assert look == [rgb(tokens.COLOURS["ink"]["light"]), "dotted"]
    mark = claim.locator(".companion-mark")
    assert mark.inner_text() == "✓"
    assert mark.evaluate("node => getComputedStyle(node).color") == rgb(tokens.COLOURS["holds"]["light"])


def test_each_figure_has_one_line_with_its_parts(page: Page, address: str, project: Project, profile: str):
    """A part that the figure lacks is left out. Closed, the line needs at most one row."""
    for name in project.notebooks()[:3]:
        page.goto(f"{address}/book/{name}.html")
        lines = page.locator(LINE)
        figures = Notebook.named(project, name).figures
        assert lines.count() == len(figures)
        for line, figure in zip(lines.all(), figures, strict=True):
            record = store.read_record(project.shown_figures(profile) / name, figure)
            words = line.locator(":scope > details > summary").all_text_contents()
            expected = ["code"] if record.is_schematic else ["code", "data", "parameters"]
            assert words[-len(expected) - 2 :] == [*expected, "origin", "cite"]
            if record.claims:
                assert re.fullmatch(r"✓ \d+ claims? holds?(, \d+ not claimed here)?", words[0])
                assert f" {len(record.claims)} " in words[0]
            if line.is_visible():  # a technical figure is folded
                assert line.bounding_box()["height"] < 40


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_parts_open_below_the_line_without_scripts(browser: Browser, address: str, project: Project, viewport):
    """The keyboard opens them too. An open part has the full width, and opening another closes it."""
    context = browser.new_context(viewport=viewport, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/book/{project.notebooks()[1]}.html")
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
    context.close()


def test_a_figure_can_be_cited(browser: Browser, address: str, project: Project):
    """The button copies a BibTeX entry with the headline, the version and the commit."""
    context = browser.new_context(viewport=DESKTOP, permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    name = project.notebooks()[0]
    page.goto(f"{address}/book/{name}.html")
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
    context.close()


def test_chapters_begin_with_a_line_about_them(page: Page, address: str, project: Project, profile: str):
    """It has the reading time, the numbers of figures and claims, and links to files that exist."""
    claims = published_claims(project, profile)
    for name in project.notebooks()[:4]:
        page.goto(f"{address}/book/{name}.html")
        head = page.locator("article h1 + .companion-head")
        figures = Notebook.named(project, name).figures
        number = sum(claim.notebook == name for claim in claims)
        text = head.inner_text()
        assert re.match(r"\d+ min", text)
        assert f"{len(figures)} figure" in text
        assert f"{number} claim" in text
        links = head.locator("a.download").evaluate_all("all => all.map(link => link.href)")
        assert [Path(urlsplit(link).path).name for link in links][:2] == [f"{name}.ipynb", f"{name}-data.zip"]
        assert all(page.request.get(link).ok for link in links)


def test_chapters_show_the_figures_of_their_card_and_findings(page: Page, address: str, project: Project):
    """Below the line the figure of the chapter's card with its headline; each finding has a picture of its figure."""
    cards = dict(CARD.findall((project.book / "index.md").read_text(encoding="utf-8")))
    assert set(cards) == set(project.notebooks())
    for name in project.notebooks():
        page.goto(f"{address}/book/{name}.html", wait_until="domcontentloaded")
        lead, anchor = page.locator(".companion-lead a"), figure_anchor(cards[name])
        assert lead.get_attribute("href") == f"#{anchor}"
        assert lead.locator("img:visible").evaluate("image => image.decode().then(() => image.naturalWidth > 100)")
        assert len(lead.inner_text()) > 20
        findings, pictures = page.evaluate(FINDINGS)
        assert findings == 0 or len(pictures) >= 2
        assert all(links > 0 and figures == 1 for links, figures in pictures), (name, pictures)
    lead.click()
    expect(page.locator(f"figure#{anchor}")).to_be_in_viewport()


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


def test_formulas_and_names_are_not_cut(page: Page, address: str, project: Project):
    """On a desktop every formula fits. On a phone one that does not fit at 70 % shows that it scrolls, by keys too."""
    wide = []
    for name in [*project.notebooks(), "notation", "benchmarks"]:
        page.set_viewport_size(DESKTOP)
        page.goto(f"{address}/book/{name}.html")
        page.evaluate("document.fonts.ready")
        page.evaluate(OPEN_ALL)
        for viewport in (DESKTOP, PHONE):
            page.set_viewport_size(viewport)
            page.evaluate(FITTED)
            assert page.evaluate(NAMES) == [], name
            if viewport == DESKTOP:
                assert page.evaluate(WIDE) == [], name
        wide += [(name, *formula) for formula in page.evaluate(WIDE)]
    page.set_viewport_size(DESKTOP)
    assert wide
    assert [formula for formula in wide if formula[2] != 0 or not formula[3] or not 0.69 < formula[4] < 0.71] == []


def test_tokens_are_the_only_colours(site: Path):
    """The style sheets name no colour, except that of a shadow in `companion.css`."""
    names = ("design.css", "navigation.css")
    sheet = "".join((site / "_static" / name).read_text(encoding="utf-8") for name in names)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\(", sheet) == []
    written = (site / "_static/tokens.css").read_text(encoding="utf-8")
    for name in re.findall(r"var\(--((?:book|size|face)-[\w-]+)", sheet):
        assert f"--{name}:" in written
