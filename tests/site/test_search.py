"""The search: results while typing, hits that open at their place, and the page of results."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from companion.project.paths import Project
from companion.site.sphinx.search_index import INDEX

DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
DIALOG = "#pst-search-dialog"
FIELD, HITS = f"{DIALOG} input", "#companion-hits a"
# Commands and groups of TeX.
TEX = re.compile(r"\\[a-zA-Z(\[]|\$|[\^_]\{")


@pytest.fixture
def page(browser: Browser, address: str, project: Project) -> Iterator[Page]:
    """The first chapter with an open search."""
    page = browser.new_page(viewport=DESKTOP)
    page.goto(f"{address}/book/{project.notebooks()[0]}.html")
    page.keyboard.press("/")
    expect(page.locator(FIELD)).to_be_focused()
    yield page
    page.close()


def hits(page: Page, query: str) -> list[str]:
    """Type a query and return the texts of the results."""
    page.fill(FIELD, query)
    expect(page.locator(HITS).last).to_contain_text(f"“{query}”")
    return [" ".join(text.split()) for text in page.locator(HITS).all_inner_texts()[:-1]]


def serious(page: Page) -> list[str]:
    violations = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    known = {"label-content-name-mismatch", "region"}  # rules that the theme itself breaks
    return [v["id"] for v in violations if v["impact"] in ("serious", "critical") and v["id"] not in known]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Proposition 7", "Proposition 7 "),
        ("lemma 2.1", "Lemma 2.1 of [BB26] "),
        ("Fig. 12", "Fig. 12 "),
        ("2 ln L", "Fig. "),
        ("2lnL", "Fig. "),
        ("thm 4.3", "Theorem 4.3 "),
        ("tau", "Symbol τ: "),
        ("τ", "Symbol τ: "),
        ("tilted_mean", "Library tilted_mean: "),
        ("notation", "Page Notation"),
        ("hard phase", "Definition hard phase: "),
        ("participation", "Definition participation: "),
        ("bayes risk", "Definition Bayes risk: "),
        ("sub-gaussian", "Definition sub-Gaussian: "),
    ],
)
def test_results_are_shown_while_typing(page: Page, query: str, first: str):
    assert hits(page, query)[0].startswith(first)


@pytest.mark.parametrize("query", ["participation", "excess risk", "gaussian"])
def test_definitions_and_boxes_precede_names_of_the_library(page: Page, query: str):
    """The definition and the boxes with this word in their title are before all names, which are found too."""
    kinds = [text.partition(" ")[0] for text in hits(page, query)]
    boxes = {"Definition", "Proposition", "Remark", "Lemma", "Theorem"}
    assert "Library" in kinds
    assert not [kind for kind in kinds[kinds.index("Library") :] if kind in boxes]


@pytest.mark.parametrize(
    "forms", [("freeze", "freezing", "freezes", "frozen"), ("query", "queries"), ("train", "training", "trained")]
)
def test_other_endings_of_a_word_find_the_same(page: Page, forms: tuple[str, ...]):
    found = [hits(page, form) for form in forms]
    assert len(found[0]) > 5
    assert all(other == found[0] for other in found)


def test_a_search_for_2_ln_l_finds_the_threshold(page: Page):
    found = hits(page, "2 ln L")
    assert sum("2 ln L" in text for text in found) >= 6
    assert any("signal strength" in text for text in found)


def test_enter_opens_the_place_of_the_hit(page: Page):
    hits(page, "Proposition 7")
    page.keyboard.press("Enter")
    page.wait_for_url("**/*.html#*")
    box = page.locator(":target")
    expect(box).to_be_in_viewport()
    expect(box.locator(".admonition-title").first).to_contain_text("Proposition 7")


def test_a_claim_opens_with_its_fold(page: Page, site: Path, project: Project):
    entries = json.loads((site / INDEX).read_text(encoding="utf-8").partition(" = ")[2].rstrip(";\n"))["entries"]
    statement = next(entry[4] for entry in entries if entry[0] == "claim" and "$" not in entry[4])
    query = " ".join(re.findall(r"\w+", statement)[:8])
    assert hits(page, query)
    page.locator("#companion-hits a.companion-hit-claim").first.click()
    page.wait_for_url("**#claim-*")
    expect(page.locator(":target")).to_be_visible()
    expect(page.locator(DIALOG)).to_be_hidden()


def test_arrow_keys_choose_and_escape_closes(page: Page):
    """The field is a combobox: it keeps the focus and names the chosen option."""
    assert len(hits(page, "prompt")) > 3
    field = page.locator(FIELD)
    assert field.get_attribute("aria-expanded") == "true"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("#companion-hits [aria-selected='true']")
    expect(chosen).to_have_count(1)
    assert field.get_attribute("aria-activedescendant") == chosen.get_attribute("id") == "companion-hit-2"
    page.keyboard.press("ArrowUp")
    assert page.locator("#companion-hit-1").get_attribute("aria-selected") == "true"
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(DIALOG)).to_be_hidden()


# Keys that are pressed before the browser draws the page again: the field then keeps the focus.
AT_ONCE = """() => {
  const event = (init) => new KeyboardEvent("keydown", { ...init, bubbles: true });
  const press = (init) => document.activeElement.dispatchEvent(event(init));
  press({ key: "Escape" });
  press({ key: "k", ctrlKey: true });
}"""


@pytest.mark.parametrize("at_once", [False, True])
def test_the_next_search_replaces_the_last_one(page: Page, at_once: bool):
    hits(page, "abc")
    if at_once:
        page.evaluate(AT_ONCE)
    else:
        page.keyboard.press("Escape")
        expect(page.locator(DIALOG)).to_be_hidden()
        page.keyboard.press("Control+k")
    expect(page.locator(FIELD)).to_be_focused()
    page.keyboard.type("xyz")
    expect(page.locator(FIELD)).to_have_value("xyz")


def test_a_page_of_the_results_marks_no_single_letters(page: Page, address: str):
    """Of "2 ln L" nothing is marked; a longer word is marked in the text, and not in the list of pages.

    The list of results marks the same.
    """
    for query, marked in (("2 ln L", False), ("freezing", True)):
        page.goto(f"{address}/search.html?q={quote(query)}")
        page.locator("#search-results li .context").first.wait_for()
        listed = page.locator("#search-results .highlighted").all_text_contents()
        assert all(len(text) > 2 for text in listed)
        assert bool(listed) == marked
        page.locator("#search-results li a").first.click()
        page.wait_for_load_state()
        page.wait_for_timeout(500)  # Sphinx marks the words after a short time
        texts = page.locator("article span.highlighted").all_text_contents()
        assert all(len(text) > 2 for text in texts)
        assert bool(texts) == marked
        backgrounds = page.locator(".bd-sidebar span.highlighted").evaluate_all(
            "marks => marks.map(mark => getComputedStyle(mark).backgroundColor)"
        )
        assert set(backgrounds) <= {"rgba(0, 0, 0, 0)"}


def test_all_results_have_the_same_width(page: Page):
    """Also a page among them."""
    hits(page, "notation")
    found = page.locator("#companion-hits a.companion-hit")
    assert page.locator("#companion-hits a.companion-hit-page").count() > 0
    assert len(set(found.evaluate_all("all => all.map(node => node.getBoundingClientRect().width)"))) == 1


def test_the_last_option_searches_the_text_of_all_pages(page: Page):
    hits(page, "zzzz")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=zzzz")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_open_search_is_accessible(browser: Browser, address: str, project: Project, scheme):
    """Also on a phone, where it fits the screen."""
    for viewport in (DESKTOP, PHONE):
        page = browser.new_page(viewport=viewport, color_scheme=scheme)
        page.goto(f"{address}/book/{project.notebooks()[0]}.html")
        page.keyboard.press("/")
        hits(page, "gaussian")
        assert serious(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        page.close()


def test_no_result_has_raw_formulas(page: Page, browser: Browser, address: str):
    assert not [
        text for query in ("mean", "risk", "sqrt", "norm", "L") for text in hits(page, query) if TEX.search(text)
    ]
    texts = page.evaluate(
        "() => window.companionSearch.entries.map(([kind, page, anchor, label, text]) => `${label} ${text}`)"
    )
    assert any("\\sqrt" in text for text in texts)
    results = browser.new_page(viewport=DESKTOP, color_scheme="dark")
    results.goto(f"{address}/search.html?q={quote('mean output')}")
    results.locator("#search-results p.context").first.wait_for()
    results.wait_for_load_state("networkidle")
    excerpts = results.locator("#search-results li").all_inner_texts()
    assert len(excerpts) > 3
    assert not [text for text in excerpts if TEX.search(text) or "import " in text]
    # results open at the section of the excerpt
    links = results.locator("#search-results li a").evaluate_all("all => all.map(link => link.hash)")
    assert sum(map(bool, links)) > len(links) / 2
    assert results.locator(".companion-first-hits a").count() > 0
    assert serious(results) == []
    results.close()


def test_the_index_is_loaded_when_the_search_opens(browser: Browser, address: str, site: Path, project: Project):
    page, requested = browser.new_page(viewport=DESKTOP), []
    page.on("request", lambda request: requested.append(request.url))
    page.goto(f"{address}/book/{project.notebooks()[0]}.html")
    page.wait_for_load_state("networkidle")
    assert not [url for url in requested if url.endswith(INDEX)]
    page.keyboard.press("Control+k")
    page.wait_for_function("window.companionSearch")
    assert (site / INDEX).stat().st_size < 400_000
    page.close()


def test_the_search_works_from_a_disk(browser: Browser, site: Path, project: Project):
    page, faults = browser.new_page(viewport=DESKTOP), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto((site / project.book.name / f"{project.notebooks()[0]}.html").as_uri())
    page.keyboard.press("/")
    assert hits(page, "Proposition 7")[0].startswith("Proposition 7 ")
    page.keyboard.press("Enter")
    page.wait_for_url("file://**#*")
    assert faults == []
    page.close()
