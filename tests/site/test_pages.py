"""Every page in a browser: it loads completely, only from its own host, and fits the screen."""

import csv
import io
import json
import re
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from companion.analysis.dependencies import digest
from companion.figures import store
from companion.project.notebooks import Notebook
from companion.project.paths import Project, relative
from companion.project.repository import public_address

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
FIGURE = "figure.companion-figure"
LINK_TO_A_PICTURE = re.compile(r'<img [^>]*src="([^"]*)"')
LINK_TO_A_FIGURE = re.compile(r'href="[^"]*#(fig-[^"]+)"[^>]*><span[^>]*>(Fig\. \d+)<')
DECODE_IMAGES = """async () => {
    const images = [...document.images];
    images.forEach(image => { if (image.checkVisibility()) image.loading = 'eager' });
    await Promise.all(images.map(image => image.checkVisibility() && image.decode().catch(() => null)));
    const missing = image => image.checkVisibility() && !image.naturalWidth;
    return images.filter(image => missing(image) || !image.alt.trim()).map(image => 'image: ' + image.src);
}"""
MATH_ERRORS = """() => [...document.querySelectorAll('.math:not(:has(> .katex, > .katex-display > .katex))')]
    .map(error => 'mathematics: ' + error.textContent)"""
TOO_WIDE = """() => {
    const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    return wide > 0 ? [wide + ' pixels too wide'] : [];
}"""
CAPTIONS = f"""() => Object.fromEntries([...document.querySelectorAll('{FIGURE}')].map(figure => {{
    const caption = figure.querySelector('figcaption');
    const folded = figure.closest('details.companion-technical');
    return [figure.id, folded ? caption.textContent.trim() : caption.checkVisibility() ? caption.innerText : ''];
}}))"""
# In an SVG, such as the map of chapters, `href` is an object.
LINKS = "all => all.map(node => new URL(node.href.baseVal ?? node.href, document.baseURI).href)"
# The page "not found" has no scripts and no theme.
IN_THEME = "theme => [theme, undefined].includes(document.documentElement.dataset.theme)"
# Pages lay out a section only when it comes near the window.
LAY_OUT_ALL = "delete document.documentElement.dataset.lazy"
OPEN_ALL = "document.querySelectorAll('details').forEach(details => { details.open = true })"
# Wait until all animations, such as those of colours, have ended.
AT_REST = """async () => {
    await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    await Promise.all(document.getAnimations().map(node => node.finished.catch(() => null)));
}"""
# The drawn form of formulas is half of the elements of a page, hidden from screen readers, and in the colour of the
# text around it. Without it axe-core is quicker.
REMOVE_DRAWN_FORMULAS = "document.querySelectorAll('.katex-html').forEach(node => node.remove())"
# The rules of axe-core that take nine tenths of its time, as they collect everything behind each word.
OF_WORDS = ["color-contrast", "link-in-text-block"]
# Rules about colours and about pictures of a theme; the results of all other rules do not depend on the theme.
OF_A_THEME = [*OF_WORDS, "image-alt"]
# One link or element with words of each kind: those with the same names, classes and ancestors in the same colour look
# alike.
KINDS_OF_WORDS = """() => {
    const kinds = new Map();
    for (const element of document.querySelectorAll('body *')) {
        const words = [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
        const counts = words || element.localName === 'a';
        if (!counts || !element.checkVisibility()) continue;
        const { color, fontSize, fontWeight } = getComputedStyle(element), kind = [color, fontSize, fontWeight];
        for (let node = element; node; node = node.parentElement) {
            kind.push(node.localName, node.getAttribute('class'), node.getAttribute('style'));
        }
        if (!kinds.has(kind.join())) kinds.set(kind.join(), element);
    }
    return [...kinds.values()];
}"""
# Rules that the Sphinx theme itself breaks on every page.
THEME_RULES = {"label-content-name-mismatch", "region"}


@dataclass
class Visit:
    """The observations on one page, loaded once: first in light, then in dark, then at the size of a phone."""

    url: str
    faults: list[str]
    inaccessible: list[str]
    anchors: set[str]
    links: list[str]
    downloads: list[str]
    captions: dict[str, str]


def watch(page: Page, host: str) -> list[str]:
    """Return a list to which all errors and requests to other hosts are appended while `page` is in use."""
    forbidden: list[str] = []

    def note_error(message):
        if message.type == "error":
            forbidden.append(f"console: {message.text}")

    def note_foreign(request):
        if urlsplit(request.url).netloc not in (host, ""):
            forbidden.append(f"another host: {request.url}")

    def note_error_status(response):
        if response.status >= 400:
            forbidden.append(f"{response.status}: {response.url}")

    page.on("console", note_error)
    page.on("pageerror", lambda error: forbidden.append(f"script error: {error}"))
    page.on("requestfailed", lambda request: forbidden.append(f"failed: {request.url}"))
    page.on("request", note_foreign)
    page.on("response", note_error_status)
    return forbidden


def open_and_watch(page: Page, url: str) -> list[str]:
    """Open `url` and wait until it is loaded; return the list of `watch`."""
    forbidden = watch(page, urlsplit(url).netloc)
    page.goto(url)
    page.wait_for_load_state("networkidle")
    page.evaluate("document.fonts.ready")
    return forbidden


def inaccessible(page: Page, *, of_a_theme: bool) -> list[str]:
    """Return the serious and critical violations that axe-core finds, except those of the theme.

    The colours of words are checked once for each kind of element. The other rules that do not depend on the theme are
    left out if `of_a_theme` is true.
    """
    violations = page.evaluate(
        """async ([kinds, ofWords, ofATheme, onlyThese]) => {
            const resultTypes = ['violations'], include = [...eval(kinds)(), ...document.images];
            const some = await axe.run({ include }, { resultTypes, runOnly: ofATheme });
            if (onlyThese) return some.violations;
            const rules = Object.fromEntries(ofWords.map(rule => [rule, { enabled: false }]));
            const all = await axe.run(document, { resultTypes, rules });
            return [...some.violations, ...all.violations];
        }""",
        [KINDS_OF_WORDS, OF_WORDS, OF_A_THEME, of_a_theme],
    )
    serious = [rule for rule in violations if rule["impact"] in ("serious", "critical")]
    where = {rule["id"]: "; ".join(node["html"][:160] for node in rule["nodes"][:3]) for rule in serious}
    return [f"{rule['id']}: {rule['help']}: {where[rule['id']]}" for rule in serious if rule["id"] not in THEME_RULES]


def visit(page: Page, forbidden: list[str], url: str, *, ours: bool) -> Visit:
    """Load a page and collect its observations; on our own pages open every fold and run axe-core.

    `forbidden` is the list that `watch` returned for `page`.
    """
    page.goto("about:blank")
    page.set_viewport_size(DESKTOP)
    page.emulate_media(color_scheme="light")
    forbidden.clear()
    page.goto(url)
    page.evaluate(LAY_OUT_ALL)
    page.evaluate("document.fonts.ready")
    anchors = set(page.eval_on_selector_all("[id]", "all => all.map(node => node.id)"))
    links = page.eval_on_selector_all("a[href]", LINKS)
    downloads = page.eval_on_selector_all("a.download", "all => all.map(node => node.href)")
    captions = page.evaluate(CAPTIONS)
    for scheme in ("light", "dark"):
        use_theme(page, scheme)
        messages = page.evaluate(MATH_ERRORS) + page.evaluate(DECODE_IMAGES) + page.evaluate(TOO_WIDE)
        forbidden += [f"{scheme}: {message}" for message in messages]
    page.set_viewport_size(PHONE)
    forbidden += [f"on a phone: {fault}" for fault in page.evaluate(TOO_WIDE)]
    page.wait_for_load_state("networkidle")
    faults, violations = list(forbidden), []  # axe-core requests further files
    if ours:
        page.set_viewport_size(DESKTOP)
        page.evaluate(OPEN_ALL)
        page.add_style_tag(content="* { transition: none !important }")  # axe-core would read intermediate colours
        page.evaluate(REMOVE_DRAWN_FORMULAS)
        page.evaluate(Axe().axe_script)
        page.wait_for_timeout(350)  # a script makes scrollable code focusable
        for scheme in ("light", "dark"):
            use_theme(page, scheme)
            page.evaluate(AT_REST)
            violations += [f"{scheme}: {violation}" for violation in inaccessible(page, of_a_theme=scheme == "dark")]
    return Visit(url, faults, violations, anchors, links, downloads, captions)


def use_theme(page: Page, scheme: str) -> None:
    """Set the colour scheme of the system, and wait until the page uses it."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(IN_THEME, arg=scheme)


@pytest.fixture(scope="module")
def visits(
    browser: Browser, address: str, site: Path, redirections: dict[str, Path], project: Project
) -> dict[str, Visit]:
    """The observations on every page of the site that stays open, by file name."""
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html") if "_static" not in path.parts}
    pages -= redirections.keys()
    ours = f"{project.book.name}/"
    assert any(name.startswith(ours) for name in pages)
    page = browser.new_page()
    forbidden = watch(page, urlsplit(address).netloc)
    observations = {
        name: visit(page, forbidden, f"{address}/{name}", ours=name.startswith(ours)) for name in sorted(pages)
    }
    page.close()
    return observations


def test_every_page_loads_completely(visits: dict[str, Visit]):
    """No console error, failed or foreign request, unset formula, missing picture or alt text, or sideways scroll."""
    assert [f"{name}: {fault}" for name, visit in visits.items() for fault in visit.faults] == []


def test_every_redirection_leads_to_a_page(redirections: dict[str, Path], project: Project):
    """The root is not in `visits`: a browser leaves it before it is loaded."""
    assert redirections.keys() == {"index.html"}
    assert [name for name, target in redirections.items() if not target.is_file()] == []


@pytest.mark.parametrize(("viewport", "scheme"), [(PHONE, "light"), (DESKTOP, "dark"), (PHONE, "dark")])
def test_chapter_loads_completely_in_other_settings(browser: Browser, address: str, project: Project, viewport, scheme):
    """The page is opened with the size of a phone or the dark theme from the start."""
    page = browser.new_page(viewport=viewport, color_scheme=scheme)
    forbidden = open_and_watch(page, f"{address}/book/{project.notebooks()[0]}.html")
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    assert forbidden + page.evaluate(DECODE_IMAGES) + page.evaluate(TOO_WIDE) == []
    page.close()


def test_axe_finds_nothing_serious(visits: dict[str, Visit]):
    """All pages of the book are checked in both themes with all folds open."""
    assert [f"{name}: {fault}" for name, visit in visits.items() for fault in visit.inaccessible] == []


def test_every_figure_is_on_its_page(visits: dict[str, Visit], project: Project):
    """Each published figure is shown with number, caption and its stable anchor."""
    for name in project.notebooks():
        figures = Notebook.named(project, name).figures
        captions = visits[f"book/{name}.html"].captions
        assert list(captions) == [f"fig-{figure.replace('_', '-')}" for figure in figures]
        assert figures
        assert all(caption.startswith("Fig. ") for caption in captions.values())


def test_links_to_figures_have_the_right_numbers(visits: dict[str, Visit], site: Path, project: Project):
    """A link with the text `Fig. 12` leads to the figure whose caption begins with `Fig. 12`."""
    captions = {name: caption for visit in visits.values() for name, caption in visit.captions.items()}
    checked = 0
    for page in sorted(site.glob(f"{project.book.name}/*.html")):
        for anchor, words in LINK_TO_A_FIGURE.findall(page.read_text(encoding="utf-8")):
            checked += 1
            assert captions[anchor].startswith(f"{words} "), f"{page.name}: {words} leads to {anchor}"
    assert checked > len(captions)


def test_figures_fit_the_page(browser: Browser, address: str, project: Project):
    """On a phone no picture is wider than the screen; on a desktop every figure is at least 600 pixels wide."""
    for viewport, least in ((PHONE, 280), (DESKTOP, 600)):
        page = browser.new_page(viewport=viewport, color_scheme="light")
        open_and_watch(page, f"{address}/book/{project.notebooks()[0]}.html")
        page.evaluate(DECODE_IMAGES)
        widths = page.locator("img:visible").evaluate_all(
            "all => all.map(node => [node.getBoundingClientRect().right, !!node.closest('figure'), node.clientWidth])"
        )
        assert widths
        assert all(right <= viewport["width"] for right, _, _ in widths)
        assert all(width >= least for _, in_figure, width in widths if in_figure)
        page.close()


def test_the_site_offers_the_published_files(site: Path, project: Project, profile: str):
    """They have the checksums in their records; a PNG is made by the browser."""
    for name in project.notebooks():
        for figure in Notebook.named(project, name).figures:
            files = store.read_record(project.shown_figures(profile) / name, figure).files
            for suffix in (".svg", ".csv"):
                assert digest((site / "figures" / name / f"{figure}{suffix}").read_bytes()) == files[suffix]


def test_theme_button_works(browser: Browser, address: str, project: Project):
    """The button in the header changes the theme."""
    page = browser.new_page(viewport=DESKTOP, color_scheme="light")
    open_and_watch(page, f"{address}/book/{project.notebooks()[0]}.html")
    themes = set()
    for _ in range(3):
        themes.add(page.evaluate("document.documentElement.dataset.theme"))
        page.locator("button.theme-switch-button:visible").first.click()
    assert themes == {"light", "dark"}
    page.close()


def test_an_unknown_address_leads_to_the_front_page(browser: Browser, address: str, site: Path, project: Project):
    """A host shows the page at any address."""
    page, missing = browser.new_page(), f"{address}/{project.book.name}/old/page.html"
    text = (site / "404.html").read_text(encoding="utf-8")
    page.route(missing, lambda route: route.fulfill(status=404, content_type="text/html", body=text))
    page.goto(missing)
    front = f"{address}/{project.book.name}/index.html"
    page.wait_for_function("front => document.querySelector('a').href === front", arg=front)
    page.click("a")
    page.wait_for_url(front)
    page.close()


def test_downloads_of_each_figure_match_its_record(browser: Browser, visits: dict[str, Visit], project: Project):
    """All files exist, and the CSV has the recorded checksum and columns; a schematic has no CSV."""
    page = browser.new_page()
    for name in project.notebooks():
        links = {Path(urlsplit(href).path).name: href for href in visits[f"book/{name}.html"].downloads}
        for figure in Notebook.named(project, name).figures:
            bodies = {}
            schematic = store.read_record(project.published / name, figure).is_schematic
            for suffix in (".json", ".svg") if schematic else (".csv", ".json", ".svg"):
                response = page.request.get(links[f"{figure}{suffix}"])
                assert response.ok
                bodies[suffix] = response.body()
            record = json.loads(bodies[".json"])
            if schematic:
                continue
            assert digest(bodies[".csv"]) == record["files"][".csv"]
            rows = list(csv.reader(io.StringIO(bodies[".csv"].decode())))
            assert rows[0] == list(record["columns"])
            assert len(rows) > 1
            assert {len(row) for row in rows} == {len(rows[0])}
    page.close()


def test_every_internal_link_works(browser: Browser, address: str, visits: dict[str, Visit]):
    """The page exists, and so does the anchor."""
    page, faults = browser.new_page(), []
    anchors = {urlsplit(visit.url).path: visit.anchors for visit in visits.values()}
    for url in sorted({link for visit in visits.values() for link in visit.links}):
        parts = urlsplit(url)
        if parts.netloc != urlsplit(address).netloc:
            continue
        if parts.path in anchors:
            valid = not parts.fragment or parts.fragment in anchors[parts.path]
        else:
            valid = page.request.get(f"{address}{parts.path}").ok
        if not valid:
            faults.append(url)
    page.close()
    assert not faults, "\n".join(faults)


def test_site_has_a_nojekyll_file(site: Path):
    """Without it GitHub Pages ignores folders that begin with an underscore."""
    assert (site / ".nojekyll").is_file()


def test_no_file_identifies_the_builder(site: Path, project: Project):
    """Neither pages nor downloads contain a local path or the host name."""
    names = {str(project.root), f"{Path.home()}/", f"{tempfile.gettempdir()}/lpa-"}
    if sys.prefix != sys.base_prefix:
        names.add(sys.prefix)
    if len(socket.gethostname()) > 8:  # shorter names may be ordinary words
        names.add(socket.gethostname())
    files = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    assert sum(path.suffix == ".ipynb" for path in files) >= len(project.notebooks())
    leaks = [
        (relative(path, site), name) for path, content in files.items() for name in names if name.encode() in content
    ]
    assert leaks == []


def test_launch_buttons_open_the_notebook(visits: dict[str, Visit], project: Project):
    """Binder and Colab open the notebook of the page in the public repository.

    Without a public address, no page links to either service.
    """
    if not (url := public_address(project)):
        services = ("mybinder.org", "colab.research.google.com")
        assert [link for visit in visits.values() for link in visit.links for name in services if name in link] == []
        return
    repository = url.removeprefix("https://github.com/")
    for name in project.notebooks():
        source = relative(project.notebook(name), project.root)
        links = visits[f"book/{name}.html"].links
        binder = next(link for link in links if "mybinder.org" in link)
        colab = next(link for link in links if "colab.research.google.com" in link)
        assert binder.endswith(f"{repository}/main?urlpath=lab/tree/{source}")
        assert colab.endswith(f"{repository}/blob/main/{source}")


def test_executed_notebooks_can_be_downloaded(browser: Browser, visits: dict[str, Visit], project: Project):
    """The page `rerun` links to the executed notebook of every chapter, with outputs that link to the pictures."""
    page = browser.new_page()
    for name in project.notebooks():
        (href,) = [href for href in visits["book/rerun.html"].downloads if href.endswith(f"/{name}.ipynb")]
        cells = page.request.get(href).json()["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", [])]
        linked = LINK_TO_A_PICTURE.findall("".join(output.get("data", {}).get("text/html", "") for output in outputs))
        assert linked
        for source in linked:
            assert page.request.get(urljoin(href, source)).ok
    page.close()
