"""Every page in a browser, opened once: it loads completely, fits both screens and themes, and has all its parts.

What a reader does on one page is in the other files of this folder.
"""

import re
import socket
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from companion.analysis.api_index import ApiIndex
from companion.analysis.dependencies import digest
from companion.figures import store
from companion.figures.record import PublishedClaim
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.site.reading_time import of_page
from companion.site.sphinx.inline_text import figure_anchor, ledger_anchor
from companion.site.sphinx.statement_index import SECOND_HAND
from companion.site.statements import Statements

DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 360, "height": 740}
LINK_TO_A_FIGURE = re.compile(r'href="[^"]*#(fig-[^"]+)"[^>]*><span[^>]*>(Fig\. [\d.]+)<')
# The contents of a page as it opens. In an SVG, such as the map of chapters, `href` is an object.
FACTS = """() => {
    delete document.documentElement.dataset.lazy;  // lay out sections that are far from the window, too
    const all = (selector, root = document) => [...root.querySelectorAll(selector)];
    const target = link => new URL(link.href.baseVal ?? link.href, document.baseURI).href;
    const links = node => all('a[href]', node).map(target);
    const anchors = node => all('a[href*="#"]', node).map(link => decodeURIComponent(link.hash.slice(1)));
    const read = node => [node.textContent, anchors(node)];
    const caption = figure => {
        const words = figure.querySelector('figcaption');
        if (figure.closest('details.companion-technical')) return words.textContent.trim();
        return words.checkVisibility() ? words.innerText : '';
    };
    const figures = all('figure.companion-figure'), head = document.querySelector('article h1 + .companion-head');
    const lead = document.querySelector('.companion-lead a'), image = lead?.querySelector('img');
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
        lead: lead && [lead.getAttribute('href'), lead.innerText, image.loading, image.fetchPriority],
        needs: document.querySelector('.companion-needs')?.textContent,
        terms: all('a.companion-term').map(node => node.textContent),
        findings: all('#findings > ul > li').length,
        pictures: all('.companion-findings > li > .companion-finding a').map(link => {
            const target = link.getAttribute('href');
            const words = all(`a[href='${target}']:not(:has(img))`, link.closest('li'));
            return [words.length, all(`figure${target}`).length];
        }),
        folds: all('.cell details.hide > summary p.collapsed').map(node => node.textContent),
        description: document.querySelector('meta[name=description]')?.content,
        version: document.querySelector('.companion-version')?.textContent,
        docstrings: all('details:is(.companion-docstring, .companion-rest):not([open])').length,
        unfolded: all('article pre').filter(
            node => node.checkVisibility() && /^ +(Args|Returns|Raises):$/m.test(node.textContent)).length,
        loaded: [all('link[rel=stylesheet]').length, all('head script[src], script[src]:not([defer])').length],
        cited: all("article a[href*='references.html#id']").map(node => node.textContent.trim()),
        listed: all('.companion-cited li').map(node => [node.querySelector('strong').innerText, links(node)]),
        boxes: Object.fromEntries(all('div.proof[id]').map(node => [node.id, [
            node.querySelector('.companion-badge')?.textContent.trim(),
            all('.companion-read', node).map(read),
            all('.companion-checked', node).flatMap(anchors),
        ]])),
        entries: Object.fromEntries(all('.companion-entry, .companion-statement').flatMap(
            node => [node, ...all('[id]', node)].map(named => [named.id, read(node)])
        )),
        signatures: all('dt.sig').map(node => [node.id, node.innerText.replace(/#$/, '').trim()]),
    };
}"""
OPEN_ALL = (
    """() => document.querySelectorAll('details').forEach(fold => { fold.removeAttribute('name'); fold.open = true })"""
)
# The faults of a page with open folds: pictures, formulas, and what does not fit the window. On a phone, a formula that
# does not fit at 70 % scrolls and shows it.
FAULTS = """async phone => {
    const all = selector => [...document.querySelectorAll(selector)], root = document.documentElement;
    const images = all('img').filter(image => image.checkVisibility());
    images.forEach(image => { image.loading = 'eager' });
    await Promise.all(images.map(image => image.decode().catch(() => null)));
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))));
    const named = image => image.alt.trim() || image.closest('a')?.innerText.trim();  // a title follows in the link
    const resized = image => image.offsetWidth && Math.abs(image.offsetWidth - image.getAttribute('width')) > 1;
    const plain = node => {
        const copy = node.cloneNode(true);
        copy.querySelectorAll('code, pre, .math').forEach(part => part.remove());
        return /[\\p{L}\\d)]\\^[\\p{L}\\d{(]|[\\p{L}\\d]_\\{/u.test(copy.textContent);
    };
    const wide = node => node.scrollWidth > node.clientWidth + 1;
    const size = node => parseFloat(getComputedStyle(node).fontSize);
    const smallest = 0.7 * parseFloat(getComputedStyle(root).getPropertyValue('--size-formula'));
    const scrolls = node => phone && node.tabIndex === 0 && getComputedStyle(node).backgroundImage !== 'none' &&
        Math.abs(size(node.firstElementChild) / size(node) / smallest - 1) < 0.015;
    const broken = node => !node.textContent.includes(' ') && node.getClientRects().length > 1;
    const faults = {
        'missing picture': images.filter(image => !image.naturalWidth),
        'formula cut': all('article .katex-display').filter(node => wide(node) && !scrolls(node)),
        'code cut': all('article pre, dt.sig').filter(wide),
        'code broken': all('article table code').filter(broken),
        'page wider than the window': root.scrollWidth > root.clientWidth ? [root] : [],
    };
    if (!phone) Object.assign(faults, {
        'picture without words': all('img').filter(image => !named(image)),
        'picture not in its own size': all('figure.companion-figure img').filter(resized),
        'formula not set': all('.math:not(:has(> .katex, > .katex-display > .katex))'),
        'formula as text': all('article details td, .companion-details li, dl.py > dd :is(p, li)').filter(plain),
        'formula or arrow may break': all('article .companion-unbroken, article .highlight .o').filter(
            node => getComputedStyle(node).whiteSpace !== 'nowrap'),
        'script of interactive figures': document.querySelector('.lab') ? [] : all('script[src*="/chapters/"]'),
        'empty mark of the version': all('[data-book=version]:empty'),
    });
    return Object.entries(faults).flatMap(
        ([fault, nodes]) => nodes.map(node => `${fault}: ${(node.src ?? node.textContent).slice(0, 80)}`)
    );
}"""
# Formulas are most of the elements of a page. As plain text they have the same colour, and axe-core is quicker.
REPLACE_FORMULAS = """document.querySelectorAll('.katex').forEach(node =>
    node.replaceWith(node.querySelector('annotation')?.textContent ?? node.textContent))"""
# Rules about the colours of words: they take most of the time of axe-core, and only they depend on the theme.
OF_WORDS = {"color-contrast": "[data-kind]", "link-in-text-block": "a[href][data-kind]"}
# Mark one link or element with words of each kind: those with the same names, classes and ancestors in the same colour
# look alike.
MARK_KINDS = """() => {
    const kinds = new Map();
    document.querySelectorAll('[data-kind]').forEach(element => element.removeAttribute('data-kind'));
    for (const element of document.querySelectorAll('body *')) {
        const words = [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
        if (!words && element.localName !== 'a' || !element.checkVisibility()) continue;
        const { color, fontSize, fontWeight } = getComputedStyle(element), kind = [color, fontSize, fontWeight];
        for (let node = element; node; node = node.parentElement) {
            kind.push(node.localName, node.getAttribute('class'), node.getAttribute('style'));
        }
        kinds.set(kind.join(), element);
    }
    kinds.forEach(element => element.setAttribute('data-kind', ''));
}"""
# Run axe-core. The colours of words are checked once for each kind of element. If `ofTheme` is true, only they are.
AXE = """async ([ofWords, ofTheme]) => {
    axe.configure({ rules: Object.entries(ofWords).map(([id, selector]) => ({ id, selector })) });
    const which = ofTheme ? { runOnly: Object.keys(ofWords) } : {};
    return (await axe.run(document, { resultTypes: ['violations'], ...which })).violations;
}"""
# One page of each kind, which axe-core examines each time, with short lists. In the daily tests it examines all pages,
# in full: that takes as long as everything else in this file.
EXAMINED = (
    *("needle_in_a_long_prompt", "laboratory", "lib_attention", "index", "claims"),
    *("statements", "gallery", "maps", "notation"),
)
# Shorten lists, tables, code and the entries of the API: an element stays if it or a descendant is one of the first
# three of their kind, which is the name of the element and its classes.
SHORTEN_LISTS = """() => {
    const kinds = new Map(), lists = [
        '.companion-chapter', '.companion-statements', '.companion-gallery-cards', '.companion-users', 'tbody', 'pre',
    ];
    for (const entry of document.querySelectorAll(`article :is(:is(${lists}) > *, dl.py)`)) {
        const parts = [entry, ...entry.querySelectorAll('*')];
        const found = new Set(parts.map(part => `${part.localName}.${part.getAttribute('class')}`));
        if ([...found].every(kind => kinds.get(kind) >= 3)) entry.remove();
        else found.forEach(kind => kinds.set(kind, (kinds.get(kind) ?? 0) + 1));
    }
}"""
# Rules that the Sphinx theme itself breaks on every page.
THEME_RULES = {"label-content-name-mismatch", "region"}


def examine(page: Page) -> list[str]:
    """Return the serious findings of axe-core on an open page in both themes, with all folds open."""
    page.set_viewport_size(DESKTOP)
    page.wait_for_load_state("networkidle")
    page.evaluate(OPEN_ALL)
    page.add_style_tag(content="* { transition: none !important }")  # axe-core would read intermediate colours
    page.evaluate(REPLACE_FORMULAS)
    page.evaluate(Axe().axe_script)
    faults = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function("scheme => document.documentElement.dataset.theme === scheme", arg=scheme)
        page.wait_for_timeout(350)  # a script makes scrollable code focusable
        page.evaluate(MARK_KINDS)
        for rule in page.evaluate(AXE, [OF_WORDS, scheme == "dark"]):
            if rule["impact"] in ("serious", "critical") and rule["id"] not in THEME_RULES:
                where = "; ".join(node["html"][:160] for node in rule["nodes"][:3])
                faults.append(f"{scheme}: {rule['id']}: {rule['help']}: {where}")
    return faults


def observe(page: Page) -> dict[str, Any]:
    """Return the facts and the faults of an open page: with folds as they are, then with open folds, on a phone too."""
    page.evaluate("document.fonts.ready")
    facts = page.evaluate(FACTS)
    page.evaluate(OPEN_ALL)
    faults = page.evaluate(FAULTS, False)
    page.set_viewport_size(PHONE)
    faults += [f"on a phone: {fault}" for fault in page.evaluate(FAULTS, True)]
    page.wait_for_load_state("networkidle")
    return facts | {"faults": faults}


def file_of(site: Path, url: str) -> Path:
    """Return the file that the server sends for an address: the first page of a folder, if it is one."""
    path = site / unquote(urlsplit(url).path).lstrip("/")
    return path / "index.html" if path.is_dir() else path


@pytest.fixture(scope="module")
def names(site: Path) -> list[str]:
    """The file names of every page of the site, except the root, which a browser leaves before it is loaded."""
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html") if "_static" not in path.parts}
    return sorted(pages - {"index.html"})


@pytest.fixture(scope="module")
def visits(visit: Callable[..., Page], events, address: str, names: list[str], project: Project) -> dict[str, dict]:
    """The facts and the faults of every page, by file name. Each page is opened once."""
    examined = {f"{project.book.name}/{name}.html" for name in EXAMINED}
    assert examined <= set(names)
    visits = {}
    for name in names:
        page = visit(f"{address}/{name}")
        visits[name] = observe(page)
        foreign = [url for url in events["request"] if not url.startswith((address, "about:", "data:"))]
        visits[name]["faults"] += [*foreign, *events["requestfailed"], *events["console"], *events["pageerror"]]
        if name in examined:
            page.evaluate(SHORTEN_LISTS)
            visits[name]["faults"] += examine(page)
    return visits


@pytest.fixture(scope="module")
def chapters(visits: dict[str, dict], project: Project) -> dict[str, dict[str, Any]]:
    """The visits of chapters, by name."""
    return {name: visits[f"book/{name}.html"] for name in project.notebooks()}


@pytest.fixture(scope="module")
def statements(project: Project, claims: list[PublishedClaim]) -> Statements:
    index = Statements.of(project, claims)
    assert index is not None
    return index


def test_every_page_loads_completely_fits_and_is_accessible(visits: dict[str, dict]):
    """No error, foreign request, unset formula, missing picture or alt text; nothing is cut, on a phone either."""
    assert [f"{name}: {fault}" for name, facts in visits.items() for fault in facts["faults"]] == []


@pytest.mark.daily
def test_axe_finds_nothing_serious_on_any_page_of_the_book(visit, address: str, names: list[str], project: Project):
    book = [name for name in names if name.startswith(f"{project.book.name}/")]
    assert [f"{name}: {fault}" for name in book for fault in examine(visit(f"{address}/{name}"))] == []


def test_every_page_of_the_book_has_its_parts(visits: dict[str, dict], project: Project):
    """A description, the version, one style sheet before deferred scripts, unique anchors, and short docstrings."""
    for name in (name for name in visits if name.startswith(f"{project.book.name}/")):
        facts = visits[name]
        assert 20 < len(facts["description"]) < 300, name
        assert "\\" not in facts["description"], name
        assert facts["version"].startswith(f"Version {project.metadata['version']}"), name
        assert facts["loaded"] == [1, 0], name
        assert sorted(set(facts["anchors"])) == sorted(facts["anchors"]), name
        assert facts["unfolded"] == 0, name
    # the arguments and errors of a function open below it
    assert visits["book/concentration.html"]["docstrings"] > 0
    assert visits["book/lib_attention.html"]["docstrings"] > 20


def test_every_figure_is_on_its_page(chapters: dict[str, dict], project: Project):
    """Each published figure is shown with its caption and stable anchor, numbered by chapter."""
    for chapter, (name, facts) in enumerate(chapters.items(), start=1):
        figures = Notebook.named(project, name).figures
        assert list(facts["captions"]) == [figure_anchor(figure) for figure in figures]
        assert figures
        for number, caption in enumerate(facts["captions"].values(), start=1):
            assert caption.startswith(f"Fig. {chapter}.{number} "), name


def test_links_to_figures_have_the_right_numbers(visits: dict[str, dict], site: Path, project: Project):
    """A link with the text `Fig. 4.3` leads to the figure whose caption begins with `Fig. 4.3`."""
    captions = {name: caption for visit in visits.values() for name, caption in visit["captions"].items()}
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
        if facts["needs"]:
            assert f"Takes {round(of_page(project, name).minutes)} minutes" in facts["needs"], name


def test_chapters_show_the_figures_of_their_card_and_findings(chapters: dict[str, dict], project: Project):
    """Below the line the figure of the chapter's card with its headline; each finding has a picture of its figure."""
    for name, facts in chapters.items():
        anchor, headline, *fetched = facts["lead"]
        assert anchor == f"#{figure_anchor(Notebook.named(project, name).card['figure'])}"
        assert len(headline) > 20
        assert fetched == ["auto", "high"]  # the first picture, before those below
        assert facts["findings"] == 0 or len(facts["pictures"]) >= 2
        assert all(links > 0 and figures == 1 for links, figures in facts["pictures"]), name


def test_folded_code_has_its_first_comment_as_title(chapters: dict[str, dict], project: Project):
    """Special characters are kept."""
    for name, facts in chapters.items():
        comments = {cell.partition("\n")[0].lstrip("# ").casefold() for cell in Notebook.named(project, name).code}
        allowed = comments | {"parameters", "parameters of this run", "code"}
        assert facts["folds"]
        assert {title.casefold() for title in facts["folds"]} <= allowed, name


def test_the_first_mention_of_a_term_is_a_link(chapters: dict[str, dict]):
    """A chapter does not link to its own definitions."""
    assert chapters["needle_in_a_long_prompt"]["terms"].count("signal strength") == 1
    assert chapters["measures"]["terms"]
    assert not [term for term in chapters["measures"]["terms"] if "tilt" in term.lower()]


def test_every_cited_source_is_listed_with_links(visits: dict[str, dict], project: Project):
    """The list below the page has the citation key and at least one web address of each source."""
    for name in [*project.notebooks(), "index"]:
        facts = visits[f"book/{name}.html"]
        listed = dict(facts["listed"])
        assert set(facts["cited"]) <= {key.strip("[]") for key in listed}, name
        assert all(links and all(link.startswith("https://") for link in links) for links in listed.values()), name


def test_boxes_show_their_source_and_their_claims(
    visits: dict[str, dict], statements: Statements, claims: list[PublishedClaim]
):
    """The badge names it. Each box that cites a paper, and no other, links to the index; claims and boxes link."""
    badges = {"paper": "from a paper", "derived": "derived here", "heuristic": "heuristic"}
    boxes = {label: box for visit in visits.values() for label, box in visit["boxes"].items()}
    entries = visits["book/claims.html"]["entries"]
    for label in statements.boxes:
        badge, origins, checked = boxes[label]
        assert badge == badges[statements.source_of(label)], label
        assert len(origins) == bool(statements.cited_by(label)), label
        for text, anchors in origins:
            rows = statements.rows_of_box(label)
            assert anchors.count(rows[0].anchor) == 1
            assert (SECOND_HAND in text) == any(map(statements.index.second_hand, rows))
        for row in (ledger_anchor(claim.id) for claim in claims if claim.box == label):
            assert row in checked
            assert label in entries[row][1]


def test_statements_and_claims_show_where_they_were_read(visits: dict[str, dict], statements: Statements):
    """A statement has a mark if that is second-hand, and one link to each of its claims."""
    entries = visits["book/claims.html"]["entries"] | visits["book/statements.html"]["entries"]
    for row in statements.index.statements:
        text, anchors = entries[row.anchor]
        assert statements.index.origins[row.read[0]].name.replace("'", "’") in text
        assert (SECOND_HAND in text) == statements.index.second_hand(row), row.anchor
        assert all(anchors.count(ledger_anchor(claim.id)) == 1 for claim in statements.claims_of(row))
    for claim in statements.claims:
        assert ("Read in:" in entries[ledger_anchor(claim.id)][0]) == statements.cites_paper(claim), claim.id


def test_every_public_name_is_shown_once_with_its_signature(visits: dict[str, dict], project: Project):
    """Names are in the order of the source, and each has its own anchor."""
    library = ApiIndex(project)
    for name, modules in library.pages.items():
        entries = [entry for module in modules for entry in library.modules[module].entries]
        expected = [[item.full, item.signature] for entry in entries for item in (entry, *entry.members)]
        assert visits[f"book/{name}.html"]["signatures"] == expected


def test_names_of_the_library_link_to_figures_and_sources(visit):
    """To a figure whose code uses the function, which links back, and to the box of a lemma or else the reference."""
    page, name = visit("lib_attention"), "lib.attention.linear_attend"
    of_figure = page.locator(f"dl:has(> dt[id='{name}']) a[href$='#fig-one-prompt']")
    assert re.fullmatch(r"Fig\. [\d.]+ \(one prompt\)", of_figure.text_content())
    to_box = page.locator("dl:has(> dt[id='lib.attention.attend']) a[href$='#bb26-lemma-2-1']")
    assert to_box.text_content() == "BB26, Lemma 2.1"
    assert page.locator("dl a[href*='references.html#']").count() > 0
    page.goto(of_figure.evaluate("link => link.href"))
    assert page.locator(f".companion-users a[href$='#{name}']").count() > 0


def test_the_button_in_the_header_changes_the_theme(visit, project: Project):
    page = visit(project.notebooks()[0])
    themes = set()
    for _ in range(3):
        themes.add(page.evaluate("document.documentElement.dataset.theme"))
        page.locator("button.theme-switch-button:visible").first.click()
    assert themes == {"light", "dark"}


def test_the_root_and_unknown_addresses_lead_to_the_front_page(tab: Page, address: str, site: Path, project: Project):
    """A host shows the page "not found" at any address."""
    front, missing = f"{address}/{project.book.name}/index.html", f"{address}/{project.book.name}/old/page.html"
    tab.goto(address)
    tab.wait_for_url(front)
    text = (site / "404.html").read_text(encoding="utf-8")
    tab.route(missing, lambda route: route.fulfill(status=404, content_type="text/html", body=text))
    tab.goto(missing)
    tab.wait_for_function("front => document.querySelector('a').href === front", arg=front)
    tab.click("a")
    tab.wait_for_url(front)
    tab.unroute(missing)
    assert (site / ".nojekyll").is_file()  # without it GitHub Pages ignores folders that begin with an underscore


def test_each_figure_offers_its_published_files(site: Path, visits: dict[str, dict], project: Project, profile: str):
    """They have the checksums in its record; a schematic has no table. One archive has the data of a chapter."""
    for name in project.notebooks():
        links = {Path(urlsplit(href).path).name: href for href in visits[f"book/{name}.html"]["downloads"]}
        tables = set()
        for figure in Notebook.named(project, name).figures:
            record = store.read_record(project.shown_figures(profile) / name, figure)
            for suffix in (".svg",) if record.is_schematic else (".svg", store.DATA):
                assert digest(file_of(site, links[f"{figure}{suffix}"]).read_bytes()) == record.files[suffix], figure
            assert file_of(site, links[f"{figure}{store.RECORD}"]).is_file()
            tables |= {f"{name}/{figure}{kind}" for kind in (store.DATA, store.RECORD)}
        with zipfile.ZipFile(file_of(site, links[f"{name}-data.zip"])) as archive:
            assert set(archive.namelist()) - {f"{name}/claims.json"} == tables


def test_every_internal_link_works(site: Path, address: str, visits: dict[str, dict]):
    """The page exists, and so does the anchor."""
    anchors = {f"/{name}": {"", *facts["anchors"]} for name, facts in visits.items()}
    links = {link for facts in visits.values() for link in facts["links"] if link.startswith(f"{address}/")}

    def works(link: str) -> bool:
        path, fragment = urlsplit(link).path, urlsplit(link).fragment
        return fragment in anchors[path] if path in anchors else file_of(site, link).is_file()

    assert [link for link in sorted(links) if not works(link)] == []


def test_no_file_identifies_the_builder(site: Path, project: Project):
    """Neither pages nor downloads contain a local path, nor a host name that is long enough to be no ordinary word."""
    names = [str(project.root), f"{Path.home()}/", sys.prefix, socket.gethostname()]
    files = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    local = [name.encode() for name in names if len(name) > 8 or "/" in name]
    assert [(path.name, name) for path, content in files.items() for name in local if name in content] == []
