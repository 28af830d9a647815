"""Every page, opened as a reader would: nothing missing, nothing from elsewhere, nothing that does not fit."""

import csv
import io
import json
import re
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from companion.analysis.dependencies import digest
from companion.project.notebooks import Notebook
from companion.project.paths import Project, relative
from companion.project.repository import public_address

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
FIGURE = "figure.companion-figure"
LINK_TO_A_FIGURE = re.compile(r'href="[^"]*#(fig-[^"]+)"[^>]*>(Fig\. \d+)<')
TYPESET = "document.querySelectorAll('mjx-container').length >= document.querySelectorAll('.math').length"
DECODE_IMAGES = """async () => {
    const images = [...document.images];
    images.forEach(image => { if (image.checkVisibility()) image.loading = 'eager' });
    await Promise.all(images.map(image => image.checkVisibility() && image.decode().catch(() => null)));
    const missing = image => image.checkVisibility() && !image.naturalWidth;
    return images.filter(image => missing(image) || !image.alt.trim()).map(image => 'image: ' + image.src);
}"""
SCROLL_THROUGH = """async () => {
    for (let y = 0; y < document.documentElement.scrollHeight; y += 500) {
        scrollTo({ top: y, behavior: 'instant' });
        await new Promise(resolve => setTimeout(resolve, 30));
    }
}"""
MATH_ERRORS = "() => [...document.querySelectorAll('mjx-merror')].map(error => 'mathematics: ' + error.textContent)"
TOO_WIDE = """() => {
    const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    return wide > 0 ? [wide + ' pixels too wide'] : [];
}"""
CAPTIONS = f"""() => Object.fromEntries([...document.querySelectorAll('{FIGURE}')].map(figure => {{
    const caption = figure.querySelector('figcaption');
    return [figure.id, caption.checkVisibility() ? caption.innerText : ''];
}}))"""
# The page that says "not found" has no script, and so no theme to switch.
IN_THEME = "theme => [theme, undefined].includes(document.documentElement.dataset.theme)"
OPEN_ALL = "document.querySelectorAll('details').forEach(details => { details.open = true })"
# Colours on their way have come.
AT_REST = """async () => {
    await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    await Promise.all(document.getAnimations().map(one => one.finished.catch(() => null)));
}"""
# Rules about colours, and about the pictures that a theme shows: all else is the same on light and on dark paper.
OF_A_THEME = ["color-contrast", "link-in-text-block", "image-alt"]
# Rules the stock theme breaks on every page, none of them about our content.
THEME_RULES = {"label-content-name-mismatch", "region"}


@dataclass
class Visit:
    """What a reader finds on one page, loaded once: in light, then in dark, then on a phone."""

    url: str
    faults: list[str]
    inaccessible: list[str]
    anchors: set[str]
    links: list[str]
    downloads: list[str]
    captions: dict[str, str]


def watch(page: Page, host: str) -> list[str]:
    """What a reader should never meet, on whatever `page` opens from now on."""
    forbidden: list[str] = []

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
    return forbidden


def watched(page: Page, url: str) -> list[str]:
    """Open `url` and wait until it is at rest; what a reader should never meet, then and later."""
    forbidden = watch(page, urlsplit(url).netloc)
    page.goto(url)
    page.wait_for_load_state("networkidle")
    page.wait_for_function(TYPESET)
    return forbidden


def inaccessible(page: Page, rules: list[str] | None = None) -> list[str]:
    """What axe-core, once it is there, finds serious or critical, by all its rules or by some, beyond the theme's."""
    options = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
    violations = page.evaluate("async options => (await axe.run(options)).violations", options)
    found = [one for one in violations if one["impact"] in ("serious", "critical")]
    where = {one["id"]: "; ".join(node["html"][:160] for node in one["nodes"][:3]) for one in found}
    return [f"{one['id']}: {one['help']}: {where[one['id']]}" for one in found if one["id"] not in THEME_RULES]


def visit(page: Page, forbidden: list[str], url: str, *, ours: bool) -> Visit:
    """Read a page, in `ours` with every fold-out open; `forbidden` is where `watch` notes what it meets."""
    page.goto("about:blank")
    page.set_viewport_size(DESKTOP)
    page.emulate_media(color_scheme="light")
    forbidden.clear()
    page.goto(url)
    page.wait_for_function(TYPESET)
    anchors = set(page.eval_on_selector_all("[id]", "all => all.map(one => one.id)"))
    links = page.eval_on_selector_all("a[href]", "all => all.map(one => one.href)")
    downloads = page.eval_on_selector_all("a.download", "all => all.map(one => one.href)")
    captions = page.evaluate(CAPTIONS)
    for scheme in ("light", "dark"):
        in_theme(page, scheme)
        seen = page.evaluate(MATH_ERRORS) + page.evaluate(DECODE_IMAGES) + page.evaluate(TOO_WIDE)
        forbidden += [f"{scheme}: {fault}" for fault in seen]
    page.set_viewport_size(PHONE)
    forbidden += [f"on a phone: {fault}" for fault in page.evaluate(TOO_WIDE)]
    page.wait_for_load_state("networkidle")
    faults, found = list(forbidden), []  # axe-core asks for files of its own
    if ours:
        page.set_viewport_size(DESKTOP)
        page.evaluate(OPEN_ALL)
        page.add_style_tag(content="* { transition: none !important }")  # or it finds colours on their way
        page.evaluate(Axe().axe_script)
        page.wait_for_timeout(350)  # in which the theme makes stops of the code that is now laid out
        for scheme, rules in (("light", None), ("dark", OF_A_THEME)):
            in_theme(page, scheme)
            page.evaluate(AT_REST)
            found += [f"{scheme}: {fault}" for fault in inaccessible(page, rules)]
    return Visit(url, faults, found, anchors, links, downloads, captions)


def in_theme(page: Page, scheme: str) -> None:
    """Let the machine be set to light or dark, and the page follow."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(IN_THEME, arg=scheme)


@pytest.fixture(scope="module")
def visits(browser: Browser, address: str, site: Path, project: Project) -> dict[str, Visit]:
    """Of every page of the site, found on disk, what there is: opened one after another, as a reader goes on."""
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html") if "_static" not in path.parts)
    ours = f"{project.book.name}/"
    assert any(name.startswith(ours) for name in pages)
    page = browser.new_page()
    forbidden = watch(page, urlsplit(address).netloc)
    found = {name: visit(page, forbidden, f"{address}/{name}", ours=name.startswith(ours)) for name in pages}
    page.close()
    return found


def test_every_page_is_whole(visits: dict[str, Visit]):
    """No console error, no failed or foreign request, mathematics typeset, pictures loaded and described, no scroll."""
    assert [f"{name}: {fault}" for name, visit in visits.items() for fault in visit.faults] == []


@pytest.mark.parametrize(("viewport", "scheme"), [(PHONE, "light"), (DESKTOP, "dark"), (PHONE, "dark")])
def test_chapter_is_whole_however_it_is_opened(browser: Browser, address: str, project: Project, viewport, scheme):
    """The same, where a phone or a dark screen opens a page in the first place."""
    page = browser.new_page(viewport=viewport, color_scheme=scheme)
    forbidden = watched(page, f"{address}/book/{project.notebooks()[0]}.html")
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert forbidden + page.evaluate(DECODE_IMAGES) + page.evaluate(TOO_WIDE) == []
    page.close()


def test_axe_finds_nothing_serious(visits: dict[str, Visit]):
    """On every page we write, in both themes, with every fold-out open."""
    assert [f"{name}: {fault}" for name, visit in visits.items() for fault in visit.inaccessible] == []


def test_every_figure_is_on_its_page(visits: dict[str, Visit], project: Project):
    """Each published figure is shown, numbered, captioned, and reachable under its stable anchor."""
    for name in project.notebooks():
        figures = Notebook.named(project, name).figures
        captions = visits[f"book/{name}.html"].captions
        assert list(captions) == [f"fig-{figure.replace('_', '-')}" for figure in figures]
        assert figures
        assert all(caption.startswith("Fig. ") for caption in captions.values())


def test_links_to_figures_say_their_numbers(visits: dict[str, Visit], site: Path, project: Project):
    """Wherever a page says `Fig. 12`, the link leads to the figure whose caption begins so."""
    captions = {name: caption for visit in visits.values() for name, caption in visit.captions.items()}
    found = 0
    for page in sorted(site.glob(f"{project.book.name}/*.html")):
        for anchor, words in LINK_TO_A_FIGURE.findall(page.read_text(encoding="utf-8")):
            found += 1
            assert captions[anchor].startswith(f"{words} "), f"{page.name}: {words} leads to {anchor}"
    assert found > len(captions)


def test_figures_fit_the_page(browser: Browser, address: str, project: Project):
    """On a phone no picture is wider than the screen, and on a desktop each fills the column."""
    for viewport, least in ((PHONE, 280), (DESKTOP, 600)):
        page = browser.new_page(viewport=viewport, color_scheme="light")
        watched(page, f"{address}/book/{project.notebooks()[0]}.html")
        page.evaluate(DECODE_IMAGES)
        widths = page.locator("img:visible").evaluate_all(
            "all => all.map(one => [one.getBoundingClientRect().right, !!one.closest('figure'), one.clientWidth])"
        )
        assert widths
        assert all(right <= viewport["width"] for right, _, _ in widths)
        assert all(width >= least for _, in_figure, width in widths if in_figure)
        page.close()


def test_the_theme_decides_which_picture_is_fetched(browser: Browser, address: str, project: Project):
    """Light pictures on light paper, dark ones on dark: one of the two is visible, and the other is never asked for."""
    for theme, other in (("light", "dark"), ("dark", "light")):
        page = browser.new_page(viewport=DESKTOP, color_scheme=theme)
        asked: list[str] = []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        watched(page, f"{address}/book/{project.notebooks()[0]}.html")
        page.evaluate(SCROLL_THROUGH)
        page.wait_for_load_state("networkidle")
        assert (
            len({url for url in asked if url.endswith(".svg") and "/figures/" in url}) == page.locator(FIGURE).count()
        )
        assert not [url for url in asked if "/figures/" in url and url.endswith(".dark.svg") != (theme == "dark")]
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", other)
        for figure in page.locator(FIGURE).all():
            (source,) = [one.get_attribute("src") for one in figure.locator("img").all() if one.is_visible()]
            assert source.endswith(".dark.svg") == (other == "dark")
        page.close()


def test_theme_button_works(browser: Browser, address: str, project: Project):
    """The button in the header changes the theme."""
    page = browser.new_page(viewport=DESKTOP, color_scheme="light")
    watched(page, f"{address}/book/{project.notebooks()[0]}.html")
    themes = set()
    for _ in range(3):
        themes.add(page.evaluate("document.documentElement.dataset.theme"))
        page.locator("button.theme-switch-button:visible").first.click()
    assert themes == {"light", "dark"}
    page.close()


def test_search_finds_tilted(browser: Browser, address: str):
    """A reader who searches a word of the first chapter is led there."""
    page = browser.new_page(viewport=DESKTOP)
    watched(page, f"{address}/search.html?q=tilted")
    page.wait_for_selector("#search-results ul.search li a")
    assert any("book/" in link.get_attribute("href") for link in page.locator("#search-results ul.search li a").all())
    page.close()


def test_data_under_each_figure_is_the_data(browser: Browser, visits: dict[str, Visit], project: Project):
    """Every download resolves; the CSV parses; its sha256 is the one in the record; the columns are explained."""
    page = browser.new_page()
    for name in project.notebooks():
        links = {Path(urlsplit(href).path).name: href for href in visits[f"book/{name}.html"].downloads}
        for figure in Notebook.named(project, name).figures:
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


def test_every_link_leads_somewhere(browser: Browser, address: str, visits: dict[str, Visit]):
    """Links inside the site: the page exists, and so does the anchor."""
    page, faults = browser.new_page(), []
    anchors = {urlsplit(visit.url).path: visit.anchors for visit in visits.values()}
    for url in sorted({link for visit in visits.values() for link in visit.links}):
        parts = urlsplit(url)
        if parts.netloc != urlsplit(address).netloc:
            continue
        if parts.path in anchors:
            whole = not parts.fragment or parts.fragment in anchors[parts.path]
        else:
            whole = page.request.get(f"{address}{parts.path}").ok
        if not whole:
            faults.append(url)
    page.close()
    assert not faults, "\n".join(faults)


def test_pages_serves_every_file(site: Path):
    """Without `.nojekyll` GitHub Pages drops folders that start with an underscore."""
    assert (site / ".nojekyll").is_file()


def test_no_file_tells_who_built_it_and_where(site: Path, project: Project):
    """Neither pages nor what is offered for download: no folder of the builder's, and not the name of the machine."""
    names = {str(project.root), f"{Path.home()}/", f"{tempfile.gettempdir()}/lpa-"}
    if sys.prefix != sys.base_prefix:
        names.add(sys.prefix)
    if len(socket.gethostname()) > 8:  # shorter ones may be words
        names.add(socket.gethostname())
    files = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    assert sum(path.suffix == ".ipynb" for path in files) >= len(project.notebooks())
    told = [
        (relative(path, site), name) for path, content in files.items() for name in names if name.encode() in content
    ]
    assert told == []


def test_buttons_point_at_real_paths(visits: dict[str, Visit], project: Project):
    """Binder and Colab open the notebook the page was made from, in the repository that `_config.yml` names.

    While the address is unset, no link leads to either service.
    """
    if not (url := public_address(project)):
        services = ("mybinder.org", "colab.research.google.com")
        assert [link for visit in visits.values() for link in visit.links for one in services if one in link] == []
        return
    place = url.removeprefix("https://github.com/")
    for name in project.notebooks():
        source = relative(project.notebook(name), project.root)
        links = visits[f"book/{name}.html"].links
        binder = next(link for link in links if "mybinder.org" in link)
        colab = next(link for link in links if "colab.research.google.com" in link)
        assert binder.endswith(f"{place}/main?urlpath=lab/tree/{source}")
        assert colab.endswith(f"{place}/blob/main/{source}")


def test_notebook_pages_can_be_downloaded(browser: Browser, visits: dict[str, Visit], project: Project):
    """From the page on running them: the executed copy, with its outputs."""
    page = browser.new_page()
    for name in project.notebooks():
        (href,) = [href for href in visits["book/rerun.html"].downloads if href.endswith(f"/{name}.ipynb")]
        cells = page.request.get(href).json()["cells"]
        assert any(cell.get("outputs") for cell in cells)
    page.close()
