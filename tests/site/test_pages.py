"""Every page in a browser, opened once: it loads completely, fits both screens and themes, and has all its parts.

What a reader does on one page is in the other files of this folder.
"""

import csv
import io
import json
import re
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from companion.analysis.api_index import ApiIndex
from companion.analysis.dependencies import digest
from companion.build.publication_policy import published_claims
from companion.figures import store
from companion.figures.record import PublishedClaim
from companion.project.notebooks import Notebook
from companion.project.paths import Project, relative
from companion.project.repository import public_address
from companion.site.sphinx.inline_text import figure_anchor, ledger_anchor
from companion.site.sphinx.statement_index import SECOND_HAND
from companion.site.statements import Statements

DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 360, "height": 740}
LINK_TO_A_PICTURE = re.compile(r'<img [^>]*src="([^"]*)"')
LINK_TO_A_FIGURE = re.compile(r'href="[^"]*#(fig-[^"]+)"[^>]*><span[^>]*>(Fig\. [\d.]+)<')
DECODE_IMAGES = """async () => {
    const images = [...document.images];
    images.forEach(image => { if (image.checkVisibility()) image.loading = 'eager' });
    await Promise.all(images.map(image => image.checkVisibility() && image.decode().catch(() => null)));
    const missing = image => image.checkVisibility() && !image.naturalWidth;
    const named = image => image.alt.trim() || image.closest('a')?.innerText.trim();  // a title follows in the link
    return images.filter(image => missing(image) || !named(image)).map(image => 'image: ' + image.src);
}"""
# The contents of a page as it opens. In an SVG, such as the map of chapters, `href` is an object.
FACTS = """() => {
    delete document.documentElement.dataset.lazy;  // lay out sections that are far from the window, too
    const all = (selector, root = document) => [...root.querySelectorAll(selector)];
    const target = link => new URL(link.href.baseVal ?? link.href, document.baseURI).href;
    const links = node => all('a[href]', node).map(target);
    const around = node => { const ids = []; for (let n = node; n; n = n.parentElement) ids.push(n.id); return ids; };
    const caption = figure => {
        const words = figure.querySelector('figcaption');
        if (figure.closest('details.companion-technical')) return words.textContent.trim();
        return words.checkVisibility() ? words.innerText : '';
    };
    const article = document.querySelector('article'), first = article?.querySelector('.cell, figure');
    const before = document.createRange();
    if (first) { before.setStart(article, 0); before.setEndBefore(first); }
    const figures = all('figure.companion-figure'), head = document.querySelector('article h1 + .companion-head');
    const lead = document.querySelector('.companion-lead a');
    const withoutWords = figures.filter(node => {
        let above = (node.closest('details.companion-technical') ?? node).previousElementSibling;
        while (above && !above.matches('p, ul, ol, .proof')) above = above.previousElementSibling;
        return !above;
    });
    return {
        anchors: all('[id]').map(node => node.id),
        links: links(document),
        downloads: all('a.download').map(node => node.href),
        captions: Object.fromEntries(figures.map(figure => [figure.id, caption(figure)])),
        lines: all('.companion-line.companion-details').map(line => [
            all(':scope > details > summary', line).map(node => node.textContent),
            line.checkVisibility() ? line.getBoundingClientRect().height : 0,
        ]),
        head: head && [head.innerText, all('a.download', head).map(link => link.href)],
        lead: lead && [lead.getAttribute('href'), lead.innerText],
        findings: all('#findings > ul > li').length,
        pictures: all('.companion-findings > li > .companion-finding a').map(link => {
            const target = link.getAttribute('href');
            const words = all(`a[href='${target}']:not(:has(img))`, link.closest('li'));
            return [words.length, all(`figure${target}`).length];
        }),
        folds: all('.cell details.hide > summary p.collapsed').map(node => node.textContent),
        before: [before.toString().split(/\\s+/).length, first?.className],
        withoutWords: withoutWords.map(node => node.id),
        cited: all("article a[href*='references.html#id']").map(node => node.textContent.trim()),
        listed: all('.companion-cited li').map(node => [node.querySelector('strong').innerText, links(node)]),
        boxes: all('div.proof[id]').map(node => [node.id, node.querySelector('.companion-badge')?.textContent.trim()]),
        origins: all('.companion-read').map(node => [around(node), links(node), node.textContent]),
        checked: all('.companion-checked').map(node => [around(node), links(node)]),
        entries: Object.fromEntries(all('.companion-entry').map(node => [node.id, links(node)])),
        signatures: all('dt.sig').map(node => [node.id, node.innerText.replace(/#$/, '').trim()]),
    };
}"""
OPEN_ALL = (
    """() => document.querySelectorAll('details').forEach(fold => { fold.removeAttribute('name'); fold.open = true })"""
)
# Faults of formulas that do not depend on the size of the window.
FORMULAS = """() => {
    const all = selector => [...document.querySelectorAll(selector)];
    const unset = all('.math:not(:has(> .katex, > .katex-display > .katex))').map(node => node.textContent);
    const plain = all('article details td, .companion-details li, dl.py > dd :is(p, li)').map(node => {
        const copy = node.cloneNode(true);
        copy.querySelectorAll('code, pre, .math').forEach(part => part.remove());
        return copy.textContent;
    }).filter(text => /[\\p{L}\\d)]\\^[\\p{L}\\d{(]|[\\p{L}\\d]_\\{/u.test(text));
    return [...unset, ...plain].map(text => 'mathematics: ' + text);
}"""
# What does not fit the window. On a phone, a formula that does not fit at 70 % scrolls and shows it.
CUT = """async phone => {
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))));
    const wide = node => node.scrollWidth > node.clientWidth + 1, root = document.documentElement;
    const size = node => parseFloat(getComputedStyle(node).fontSize);
    const smallest = 0.7 * parseFloat(getComputedStyle(root).getPropertyValue('--size-formula'));
    const scrolls = node => phone && node.tabIndex === 0 && getComputedStyle(node).backgroundImage !== 'none' &&
        Math.abs(size(node.firstElementChild) / size(node) / smallest - 1) < 0.015;
    const broken = node => !node.textContent.includes(' ') && node.getClientRects().length > 1;
    const faults = [
        ...[...document.querySelectorAll('article .katex-display')].filter(node => wide(node) && !scrolls(node)),
        ...[...document.querySelectorAll('article table code')].filter(broken),
        ...[...document.querySelectorAll('article pre, dt.sig')].filter(wide),
    ].map(node => 'cut: ' + node.textContent.slice(0, 80));
    const over = root.scrollWidth - root.clientWidth;
    return over > 0 ? [over + ' pixels too wide', ...faults] : faults;
}"""
# The page "not found" has no scripts and no theme.
IN_THEME = "theme => [theme, undefined].includes(document.documentElement.dataset.theme)"
# Wait until all animations, such as those of colours, have ended.
AT_REST = """async () => {
    await new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    await Promise.all(document.getAnimations().map(node => node.finished.catch(() => null)));
}"""
# Formulas are most of the elements of a page. As plain text they have the same colour, and axe-core is quicker.
REPLACE_FORMULAS = """document.querySelectorAll('.katex').forEach(node =>
    node.replaceWith(node.querySelector('annotation')?.textContent ?? node.textContent))"""
# Rules about the colours of words: they take most of the time of axe-core, and only they depend on the theme.
OF_WORDS = {"color-contrast": "[data-kind]", "link-in-text-block": "a[href][data-kind]"}
# Mark one link or element with words of each kind that is not `known` from another page, and return the hashes of these
# kinds. Those with the same names, classes and ancestors in the same colour look alike.
MARK_KINDS = """known => {
    const seen = new Set(known), kinds = new Map();
    const hash = text => {
        let a = 7, b = 11;
        for (let i = 0; i < text.length; i++) {
            a = Math.imul(a ^ text.charCodeAt(i), 2654435761);
            b = Math.imul(b ^ text.charCodeAt(i), 1597334677);
        }
        return `${a}.${b}`;
    };
    document.querySelectorAll('[data-kind]').forEach(element => element.removeAttribute('data-kind'));
    for (const element of document.querySelectorAll('body *')) {
        const words = [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
        const counts = words || element.localName === 'a';
        if (!counts || !element.checkVisibility()) continue;
        const { color, fontSize, fontWeight } = getComputedStyle(element), kind = [color, fontSize, fontWeight];
        for (let node = element; node; node = node.parentElement) {
            kind.push(node.localName, node.getAttribute('class'), node.getAttribute('style'));
        }
        const key = hash(kind.join());
        if (!seen.has(key) && !kinds.has(key)) kinds.set(key, element);
    }
    kinds.forEach(element => element.setAttribute('data-kind', ''));
    return [...kinds.keys()];
}"""
# One page of each kind, which axe-core examines each time. It examines all pages in the daily tests: that takes as long
# as everything else in this file.
EXAMINED = (
    *("needle_in_a_long_prompt", "laboratory", "lib_attention", "index", "claims"),
    *("statements", "gallery", "maps", "notation"),
)
# Rules that the Sphinx theme itself breaks on every page.
THEME_RULES = {"label-content-name-mismatch", "region"}


@dataclass
class Visit:
    """The observations on one page, which was opened once.

    Attributes:
      faults: errors, requests to other hosts, missing pictures, and what does not fit the window.
      inaccessible: the findings of axe-core on a page that it examined.
      facts: the contents of the page, with the names in FACTS.
    """

    url: str
    faults: list[str]
    inaccessible: list[str]
    facts: dict[str, Any]


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


def inaccessible(page: Page, known: set[str], *, of_a_theme: bool) -> list[str]:
    """Return the serious and critical violations that axe-core finds, except those of the theme.

    The colours of words are checked once for each kind of element that is not `known`; the kinds are added there. All
    other rules are left out if `of_a_theme` is true.
    """
    kinds = page.evaluate(MARK_KINDS, list(known))
    known.update(kinds)
    if of_a_theme and not kinds:
        return []
    violations = page.evaluate(
        """async ([ofWords, onlyThese]) => {
            axe.configure({ rules: Object.entries(ofWords).map(([id, selector]) => ({ id, selector })) });
            const which = onlyThese ? { runOnly: Object.keys(ofWords) } : {};
            return (await axe.run(document, { resultTypes: ['violations'], ...which })).violations;
        }""",
        [OF_WORDS, of_a_theme],
    )
    serious = [rule for rule in violations if rule["impact"] in ("serious", "critical")]
    where = {rule["id"]: "; ".join(node["html"][:160] for node in rule["nodes"][:3]) for rule in serious}
    return [f"{rule['id']}: {rule['help']}: {where[rule['id']]}" for rule in serious if rule["id"] not in THEME_RULES]


def examine(page: Page, known: dict[str, set[str]]) -> list[str]:
    """Return the findings of axe-core on an open page in both themes, with all folds open.

    `known` has the kinds of words that it has seen in each theme.
    """
    page.set_viewport_size(DESKTOP)
    page.wait_for_load_state("networkidle")
    page.evaluate(OPEN_ALL)
    page.add_style_tag(content="* { transition: none !important }")  # axe-core would read intermediate colours
    page.evaluate(REPLACE_FORMULAS)
    page.evaluate(Axe().axe_script)
    page.wait_for_timeout(350)  # a script makes scrollable code focusable
    violations = []
    for scheme in ("light", "dark"):
        use_theme(page, scheme)
        page.evaluate(AT_REST)
        found = inaccessible(page, known[scheme], of_a_theme=scheme == "dark")
        violations += [f"{scheme}: {violation}" for violation in found]
    return violations


def observe(page: Page, forbidden: list[str], url: str) -> Visit:
    """Open a page in light, with folds as they are, then all open, also on a phone.

    `forbidden` is the list that `watch` returned for `page`.
    """
    page.goto("about:blank")
    page.set_viewport_size(DESKTOP)
    page.emulate_media(color_scheme="light")
    forbidden.clear()
    page.goto(url)
    page.evaluate("document.fonts.ready")
    use_theme(page, "light")
    facts = page.evaluate(FACTS)
    page.evaluate(OPEN_ALL)
    messages = page.evaluate(DECODE_IMAGES) + page.evaluate(FORMULAS) + page.evaluate(CUT, False)
    page.set_viewport_size(PHONE)
    messages += [f"on a phone: {fault}" for fault in page.evaluate(CUT, True)]
    page.wait_for_load_state("networkidle")
    # a new list, because `forbidden` also notes what axe-core requests later
    return Visit(url, forbidden + messages, [], facts)


def file_of(site: Path, url: str) -> Path:
    """Return the file that the server sends for an address: the first page of a folder, if it is one."""
    path = site / unquote(urlsplit(url).path).lstrip("/")
    return path / "index.html" if path.is_dir() else path


def use_theme(page: Page, scheme: str) -> None:
    """Set the colour scheme of the system, and wait until the page uses it."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(IN_THEME, arg=scheme)


@pytest.fixture(scope="module")
def names(site: Path, redirections: dict[str, Path]) -> list[str]:
    """The file names of every page of the site that stays open."""
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html") if "_static" not in path.parts}
    return sorted(pages - redirections.keys())


@pytest.fixture(scope="module")
def visits(browser: Browser, address: str, names: list[str], project: Project) -> dict[str, Visit]:
    """The observations on every page, by file name."""
    examined = {f"{project.book.name}/{name}.html" for name in EXAMINED}
    assert examined <= set(names)
    page = browser.new_page()
    forbidden, known = watch(page, urlsplit(address).netloc), {"light": set(), "dark": set()}
    observations = {}
    for name in names:
        observations[name] = observe(page, forbidden, f"{address}/{name}")
        if name in examined:
            observations[name].inaccessible = examine(page, known)
    page.close()
    return observations


@pytest.fixture(scope="module")
def chapters(visits: dict[str, Visit], project: Project) -> dict[str, dict[str, Any]]:
    """The facts of each chapter, by its name."""
    return {name: visits[f"book/{name}.html"].facts for name in project.notebooks()}


@pytest.fixture(scope="module")
def claims(project: Project, site: Path, profile: str) -> list[PublishedClaim]:
    return published_claims(project, profile)


@pytest.fixture(scope="module")
def statements(project: Project, claims: list[PublishedClaim]) -> Statements:
    index = Statements.of(project, claims)
    assert index is not None
    return index


def test_every_page_loads_completely_and_fits(visits: dict[str, Visit]):
    """No error, foreign request, unset formula, missing picture or alt text; nothing is cut, on a phone either."""
    assert [f"{name}: {fault}" for name, visit in visits.items() for fault in visit.faults] == []


def test_axe_finds_nothing_serious_on_a_page_of_each_kind(visits: dict[str, Visit]):
    assert [f"{name}: {fault}" for name, visit in visits.items() for fault in visit.inaccessible] == []


@pytest.mark.daily
def test_axe_finds_nothing_serious_on_any_page_of_the_book(
    browser: Browser, address: str, names: list[str], project: Project
):
    page, known, faults = browser.new_page(), {"light": set(), "dark": set()}, []
    for name in names:
        if name.startswith(f"{project.book.name}/"):
            page.goto(f"{address}/{name}")
            faults += [f"{name}: {fault}" for fault in examine(page, known)]
    page.close()
    assert faults == []


def test_every_redirection_leads_to_a_page(redirections: dict[str, Path], project: Project):
    """The root is not in `visits`: a browser leaves it before it is loaded."""
    assert redirections.keys() == {"index.html"}
    assert [name for name, target in redirections.items() if not target.is_file()] == []


def test_a_chapter_opens_on_a_phone_in_the_dark_theme(visit, events, project: Project):
    """These are the settings from the start, and not changed later as in `visits`."""
    page = visit(project.notebooks()[0], PHONE, color_scheme="dark")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert events.failed + events.errors + page.evaluate(DECODE_IMAGES) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_every_figure_is_on_its_page(chapters: dict[str, dict], project: Project):
    """Each published figure is shown with number, caption and its stable anchor, below words about it."""
    for name, facts in chapters.items():
        figures = Notebook.named(project, name).figures
        assert list(facts["captions"]) == [figure_anchor(figure) for figure in figures]
        assert figures
        assert all(caption.startswith("Fig. ") for caption in facts["captions"].values())
        assert facts["withoutWords"] == [], name


def test_links_to_figures_have_the_right_numbers(visits: dict[str, Visit], site: Path, project: Project):
    """A link with the text `Fig. 4.3` leads to the figure whose caption begins with `Fig. 4.3`."""
    captions = {name: caption for visit in visits.values() for name, caption in visit.facts["captions"].items()}
    checked = 0
    for page in sorted(site.glob(f"{project.book.name}/*.html")):
        for anchor, words in LINK_TO_A_FIGURE.findall(page.read_text(encoding="utf-8")):
            checked += 1
            assert captions[anchor].startswith(f"{words} "), f"{page.name}: {words} leads to {anchor}"
    assert checked > len(captions)


def test_each_figure_has_one_line_with_its_parts(chapters: dict[str, dict], project: Project, profile: str):
    """A part that the figure lacks is left out. Closed, the line needs at most one row."""
    for name, facts in chapters.items():
        figures = Notebook.named(project, name).figures
        for (words, height), figure in zip(facts["lines"], figures, strict=True):
            record = store.read_record(project.shown_figures(profile) / name, figure)
            expected = ["code"] if record.is_schematic else ["code", "data", "parameters"]
            assert words[-len(expected) - 2 :] == [*expected, "origin", "cite"], figure
            if record.claims:
                assert re.fullmatch(r"✓ \d+ claims? holds?(, \d+ not claimed here)?", words[0]), figure
                assert f" {len(record.claims)} " in words[0]
            assert height < 40, figure


def test_chapters_begin_with_a_line_about_them(
    chapters: dict[str, dict], claims: list[PublishedClaim], project: Project
):
    """It has the numbers of figures and claims, links to the notebook and the data, and the entry of the chapter."""
    for name, facts in chapters.items():
        text, links = facts["head"]
        assert "cite this chapter" in text
        assert f"{len(Notebook.named(project, name).figures)} figure" in text
        assert f"{sum(claim.notebook == name for claim in claims)} claim" in text
        assert [Path(urlsplit(link).path).name for link in links][:2] == [f"{name}.ipynb", f"{name}-data.zip"]


def test_chapters_show_the_figures_of_their_card_and_findings(chapters: dict[str, dict], project: Project):
    """Below the line the figure of the chapter's card with its headline; each finding has a picture of its figure."""
    for name, facts in chapters.items():
        anchor, headline = facts["lead"]
        assert anchor == f"#{figure_anchor(Notebook.named(project, name).card['figure'])}"
        assert len(headline) > 20
        assert facts["findings"] == 0 or len(facts["pictures"]) >= 2
        assert all(links > 0 and figures == 1 for links, figures in facts["pictures"]), name


def test_folded_code_has_its_first_comment_as_title(chapters: dict[str, dict], project: Project):
    """Special characters are kept. Text precedes the first cell and the first picture."""
    for name, facts in chapters.items():
        comments = {cell.partition("\n")[0].lstrip("# ").casefold() for cell in Notebook.named(project, name).code}
        assert facts["folds"]
        allowed = comments | {"parameters", "parameters of this run", "code"}
        assert {title.casefold() for title in facts["folds"]} <= allowed, name
        words, first = facts["before"]
        assert words > 60, name
        assert "cell" in first, name


def test_every_cited_source_is_listed_with_links(visits: dict[str, Visit], project: Project):
    """The list below the page has the citation key and at least one web address of each source."""
    listed = {}
    for name in [*project.notebooks(), "index"]:
        facts = visits[f"book/{name}.html"].facts
        listed = dict(facts["listed"])
        assert set(facts["cited"]) <= {key.strip("[]") for key in listed}, name
        assert all(links and all(link.startswith("https://") for link in links) for links in listed.values()), name
    assert "https://arxiv.org/abs/2512.11784" in listed["[BB26]"]
    assert "https://arxiv.org/abs/2509.21936" in listed["[D26]"]


def test_boxes_show_their_source(visits: dict[str, Visit], statements: Statements):
    """The badge names it, and each box that cites a paper, and no other, has a line with a link to the index."""
    names = {"paper": "from a paper", "derived": "derived here", "heuristic": "heuristic"}
    badges = {label: badge for visit in visits.values() for label, badge in visit.facts["boxes"]}
    for box in statements.boxes.values():
        assert badges[box.label] == names[statements.source_of(box.label)], box.label
        origins = visits[f"book/{box.page}.html"].facts["origins"]
        lines = [(links, text) for within, links, text in origins if box.label in within]
        assert len(lines) == bool(statements.cited_by(box.label)), box.label
        for links, text in lines:
            rows = statements.rows_of_box(box.label)
            assert [urlsplit(link).fragment for link in links].count(rows[0].anchor) == 1
            assert (SECOND_HAND in text) == any(map(statements.index.second_hand, rows))


def test_theorems_and_ledger_link_to_each_other(visits: dict[str, Visit], claims: list[PublishedClaim]):
    """A claim links to the box of its theorem, and the box links to the claim."""
    entries, linked = visits["book/claims.html"].facts["entries"], [claim for claim in claims if claim.box]
    assert linked
    boxes = {
        (label, urlsplit(link).fragment)
        for visit in visits.values()
        for within, links in visit.facts["checked"]
        for label in within
        for link in links
    }
    for claim in linked:
        row = ledger_anchor(claim.id)
        assert any(link.endswith(f"#{claim.box}") for link in entries[row]), row
        assert (claim.box, row) in boxes


def test_every_public_name_is_shown_once_with_its_signature(visits: dict[str, Visit], project: Project):
    """Names are in the order of the source, and each has its own anchor."""
    library = ApiIndex(project)
    for name, modules in library.pages.items():
        entries = [entry for module in modules for entry in library.modules[module].entries]
        expected = [[item.full, item.signature] for entry in entries for item in (entry, *entry.members)]
        assert visits[f"book/{name}.html"].facts["signatures"] == expected


def test_the_site_offers_the_published_files(site: Path, project: Project, profile: str):
    """They have the checksums in their records; a PNG is made by the browser."""
    for name in project.notebooks():
        for figure in Notebook.named(project, name).figures:
            files = store.read_record(project.shown_figures(profile) / name, figure).files
            for suffix in (".svg", ".csv"):
                assert digest((site / "figures" / name / f"{figure}{suffix}").read_bytes()) == files[suffix]


def test_theme_button_works(visit, project: Project):
    """The button in the header changes the theme."""
    page = visit(project.notebooks()[0])
    themes = set()
    for _ in range(3):
        themes.add(page.evaluate("document.documentElement.dataset.theme"))
        page.locator("button.theme-switch-button:visible").first.click()
    assert themes == {"light", "dark"}


def test_an_unknown_address_leads_to_the_front_page(tab: Page, address: str, site: Path, project: Project):
    """A host shows the page at any address."""
    page, missing = tab, f"{address}/{project.book.name}/old/page.html"
    text = (site / "404.html").read_text(encoding="utf-8")
    page.route(missing, lambda route: route.fulfill(status=404, content_type="text/html", body=text))
    page.goto(missing)
    front = f"{address}/{project.book.name}/index.html"
    page.wait_for_function("front => document.querySelector('a').href === front", arg=front)
    page.click("a")
    page.wait_for_url(front)
    page.unroute(missing)


def test_downloads_of_each_figure_match_its_record(site: Path, visits: dict[str, Visit], project: Project):
    """All files exist, and the CSV has the recorded checksum and columns; a schematic has no CSV."""
    for name in project.notebooks():
        links = {Path(urlsplit(href).path).name: href for href in visits[f"book/{name}.html"].facts["downloads"]}
        for figure in Notebook.named(project, name).figures:
            bodies = {}
            schematic = store.read_record(project.published / name, figure).is_schematic
            for suffix in (".json", ".svg") if schematic else (".csv", ".json", ".svg"):
                bodies[suffix] = file_of(site, links[f"{figure}{suffix}"]).read_bytes()
            record = json.loads(bodies[".json"])
            if schematic:
                continue
            assert digest(bodies[".csv"]) == record["files"][".csv"]
            rows = list(csv.reader(io.StringIO(bodies[".csv"].decode())))
            assert rows[0] == list(record["columns"])
            assert len(rows) > 1
            assert {len(row) for row in rows} == {len(rows[0])}


def test_every_internal_link_works(site: Path, address: str, visits: dict[str, Visit]):
    """The page exists, and so does the anchor."""
    faults = []
    anchors = {urlsplit(visit.url).path: set(visit.facts["anchors"]) for visit in visits.values()}
    for url in sorted({link for visit in visits.values() for link in visit.facts["links"]}):
        parts = urlsplit(url)
        if parts.netloc != urlsplit(address).netloc:
            continue
        if parts.path in anchors:
            valid = not parts.fragment or parts.fragment in anchors[parts.path]
        else:
            valid = file_of(site, url).is_file()
        if not valid:
            faults.append(url)
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
        assert [
            link for visit in visits.values() for link in visit.facts["links"] for name in services if name in link
        ] == []
        return
    repository = url.removeprefix("https://github.com/")
    for name in project.notebooks():
        source = relative(project.notebook(name), project.root)
        links = visits[f"book/{name}.html"].facts["links"]
        binder = next(link for link in links if "mybinder.org" in link)
        colab = next(link for link in links if "colab.research.google.com" in link)
        assert binder.endswith(f"{repository}/main?urlpath=lab/tree/{source}")
        assert colab.endswith(f"{repository}/blob/main/{source}")


def test_executed_notebooks_can_be_downloaded(site: Path, visits: dict[str, Visit], project: Project):
    """The page `rerun` links to the executed notebook of every chapter, with outputs that link to the pictures."""
    for name in project.notebooks():
        (href,) = [href for href in visits["book/rerun.html"].facts["downloads"] if href.endswith(f"/{name}.ipynb")]
        cells = json.loads(file_of(site, href).read_text(encoding="utf-8"))["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", [])]
        linked = LINK_TO_A_PICTURE.findall("".join(output.get("data", {}).get("text/html", "") for output in outputs))
        assert linked
        for source in linked:
            assert file_of(site, urljoin(href, source)).is_file()
