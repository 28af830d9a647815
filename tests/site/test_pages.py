"""Every page, opened as a reader would: nothing missing, nothing from elsewhere, nothing that does not fit."""

import csv
import io
import json
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, Page

from companion.address import public_address
from companion.house import House, relative
from companion.notebooks import Notebook
from companion.sources import digest

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
FIGURE = "figure.companion-figure"
TYPESET = "document.querySelectorAll('mjx-container').length >= document.querySelectorAll('.math').length"
DECODE_IMAGES = """async () => {
    const images = [...document.images];
    images.forEach(image => image.loading = 'eager');
    await Promise.all(images.map(image => image.decode().catch(() => null)));
    return images.filter(image => !image.naturalWidth || !image.alt.trim()).map(image => 'image: ' + image.src);
}"""
MATH_ERRORS = "() => [...document.querySelectorAll('mjx-merror')].map(error => 'mathematics: ' + error.textContent)"


@pytest.fixture(scope="session")
def pages(site: Path) -> list[str]:
    """All pages of the site, found on disk."""
    found = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if "_static" not in path.parts)
    assert any(name.startswith("book/") for name in found)
    return found


def visit(page: Page, url: str, forbidden: list[str]) -> None:
    """Open `url` and wait until it is at rest, noting in `forbidden` whatever a reader should never meet."""
    host = urlsplit(url).netloc

    def note_error(message):
        if message.type == "error":
            forbidden.append(f"console: {message.text}")

    def note_foreign(request):
        if urlsplit(request.url).netloc not in (host, ""):
            forbidden.append(f"another host: {request.url}")

    def note_refusal(answer):
        if answer.status >= 400:
            forbidden.append(f"{answer.status}: {answer.url}")

    page.on("console", note_error)
    page.on("pageerror", lambda error: forbidden.append(f"script error: {error}"))
    page.on("requestfailed", lambda request: forbidden.append(f"failed: {request.url}"))
    page.on("request", note_foreign)
    page.on("response", note_refusal)
    page.goto(url)
    page.wait_for_load_state("networkidle")
    page.wait_for_function(TYPESET)


def test_every_page_is_whole(browser: Browser, address: str, pages: list[str]):
    """No console error, no failed or foreign request, mathematics typeset, pictures loaded and described, no scroll."""
    faults = []
    for name in pages:
        for viewport, scheme in ((DESKTOP, "light"), (PHONE, "light"), (DESKTOP, "dark")):
            context = browser.new_context(viewport=viewport, color_scheme=scheme)
            page, forbidden = context.new_page(), []
            visit(page, f"{address}/{name}", forbidden)
            forbidden += page.evaluate(MATH_ERRORS) + page.evaluate(DECODE_IMAGES)
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if wide > 0:
                forbidden.append(f"{wide} pixels too wide")
            faults += [f"{name} at {viewport['width']} {scheme}: {fault}" for fault in forbidden]
            context.close()
    assert not faults, "\n".join(faults)


def test_every_figure_is_on_its_page(browser: Browser, address: str, house: House):
    """Each published figure is shown, numbered, captioned, and reachable under its stable anchor."""
    page = browser.new_page(viewport=DESKTOP)
    for name in house.notebooks():
        visit(page, f"{address}/book/{name}.html", [])
        figures = Notebook.named(house, name).figures
        assert page.locator(FIGURE).count() == len(figures) > 0
        for figure in figures:
            caption = page.locator(f"#fig-{figure.replace('_', '-')} figcaption")
            assert caption.is_visible()
            assert caption.inner_text().startswith("Fig. ")
    page.close()


def test_figures_stay_readable_on_a_phone(browser: Browser, address: str, house: House):
    """Each keeps a width at which labels can be read, and scrolls by itself; on a desktop it fits the column."""
    for viewport, scrolls in ((PHONE, True), (DESKTOP, False)):
        page = browser.new_page(viewport=viewport, color_scheme="light")
        visit(page, f"{address}/book/{house.notebooks()[0]}.html", [])
        for pictures in page.locator(f"{FIGURE} .companion-pictures").all():
            shown, whole = pictures.evaluate("box => [box.clientWidth, box.scrollWidth]")
            assert (whole > shown) == scrolls
            assert whole >= 600
        page.close()


def test_theme_switch_swaps_pictures(browser: Browser, address: str, house: House):
    """Light pictures on light paper, dark ones on dark, exactly one of the two visible."""
    page = browser.new_page(viewport=DESKTOP, color_scheme="light")
    visit(page, f"{address}/book/{house.notebooks()[0]}.html", [])
    shown = {}
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        for figure in page.locator(FIGURE).all():
            visible = [image.get_attribute("src") for image in figure.locator("img").all() if image.is_visible()]
            assert len(visible) == 1
            assert visible[0].endswith(".dark.svg") == (theme == "dark")
            shown.setdefault(theme, []).append(visible[0])
    assert len(shown["light"]) == len(shown["dark"]) > 0
    page.close()


def test_theme_button_works(browser: Browser, address: str, house: House):
    """The button in the header changes the theme."""
    page = browser.new_page(viewport=DESKTOP, color_scheme="light")
    visit(page, f"{address}/book/{house.notebooks()[0]}.html", [])
    themes = set()
    for _ in range(3):
        themes.add(page.evaluate("document.documentElement.dataset.theme"))
        page.locator("button.theme-switch-button:visible").first.click()
    assert themes == {"light", "dark"}
    page.close()


def test_search_finds_tilted(browser: Browser, address: str):
    """A reader who searches a word of the first chapter is led there."""
    page = browser.new_page(viewport=DESKTOP)
    visit(page, f"{address}/search.html?q=tilted", [])
    page.wait_for_selector("#search-results ul.search li a")
    assert any("book/" in link.get_attribute("href") for link in page.locator("#search-results ul.search li a").all())
    page.close()


def test_data_under_each_figure_is_the_data(browser: Browser, address: str, house: House):
    """Every download resolves; the CSV parses; its sha256 is the one in the record; the columns are explained."""
    page = browser.new_page(viewport=DESKTOP)
    for name in house.notebooks():
        visit(page, f"{address}/book/{name}.html", [])
        hrefs = page.eval_on_selector_all("a.download", "links => links.map(link => link.getAttribute('href'))")
        links = {Path(href).name: urljoin(page.url, href) for href in hrefs}
        for figure in Notebook.named(house, name).figures:
            bodies = {}
            for suffix in (".csv", ".json", ".svg", ".png"):
                answer = page.request.get(links[f"{figure}{suffix}"])
                assert answer.ok
                bodies[suffix] = answer.body()
            record = json.loads(bodies[".json"])
            assert {suffix: digest(bodies[suffix]) for suffix in (".csv", ".svg", ".png")}.items() <= record[
                "files"
            ].items()
            rows = list(csv.reader(io.StringIO(bodies[".csv"].decode())))
            assert rows[0] == list(record["columns"])
            assert len(rows) > 1
            assert {len(row) for row in rows} == {len(rows[0])}
    page.close()


def test_every_link_leads_somewhere(browser: Browser, address: str, pages: list[str]):
    """Links inside the site: the page exists, and so does the anchor."""
    page, faults, anchors = browser.new_page(), [], {}
    wanted = set()
    for name in pages:
        visit(page, f"{address}/{name}", [])
        anchors[urlsplit(page.url).path] = set(page.eval_on_selector_all("[id]", "all => all.map(one => one.id)"))
        wanted |= set(page.eval_on_selector_all("a[href]", "all => all.map(one => one.href)"))
    for url in sorted(wanted):
        parts = urlsplit(url)
        if parts.netloc != urlsplit(address).netloc:
            continue
        missing_anchor = parts.fragment and parts.fragment not in anchors.get(parts.path, {parts.fragment})
        if missing_anchor or not page.request.get(f"{address}{parts.path}").ok:
            faults.append(url)
    page.close()
    assert not faults, "\n".join(faults)


def test_pages_serves_every_file(site: Path):
    """Without `.nojekyll` GitHub Pages drops folders that start with an underscore."""
    assert (site / ".nojekyll").is_file()


def test_buttons_point_at_real_paths(browser: Browser, address: str, house: House):
    """Binder and Colab open the notebook the page was made from, in the repository `_config.yml` names."""
    place = public_address(house).removeprefix("https://github.com/")
    page = browser.new_page(viewport=DESKTOP)
    for name in house.notebooks():
        visit(page, f"{address}/book/{name}.html", [])
        source = relative(house.notebook(name), house.root)
        binder = page.locator("a[href*='mybinder.org']").first.get_attribute("href")
        colab = page.locator("a[href*='colab.research.google.com']").first.get_attribute("href")
        assert binder.endswith(f"{place}/main?urlpath=lab/tree/{source}")
        assert colab.endswith(f"{place}/blob/main/{source}")
    page.close()


def test_executed_notebooks_can_be_downloaded(browser: Browser, address: str, house: House):
    """From the front page: the executed copy, with its outputs."""
    page = browser.new_page(viewport=DESKTOP)
    visit(page, f"{address}/book/index.html", [])
    hrefs = page.eval_on_selector_all("a.download", "links => links.map(link => link.href)")
    for name in house.notebooks():
        (href,) = [href for href in hrefs if href.endswith(f"/{name}.ipynb")]
        cells = page.request.get(href).json()["cells"]
        assert any(cell.get("outputs") for cell in cells)
    page.close()
