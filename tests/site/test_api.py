"""The pages about the public names of the library."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from companion.analysis.api_index import ApiIndex
from companion.project.paths import Project


@pytest.fixture(scope="module")
def library(project: Project) -> ApiIndex:
    return ApiIndex(project)


def read(site: Path, name: str) -> BeautifulSoup:
    return BeautifulSoup((site / f"book/{name}.html").read_text(encoding="utf-8"), "html.parser")


def test_names_and_figures_link_to_each_other(site: Path, library: ApiIndex):
    """A function links to a figure whose code uses it, and the code of that figure links back."""
    full, figure = "lib.attention.linear_attend", "one_prompt"
    page = read(site, library.page_of(full))
    (link,) = page.select(f"dl:has(> dt[id='{full}']) a[href$='#fig-{figure.replace('_', '-')}']")
    assert link.get_text().endswith(f"({figure.replace('_', ' ')})")
    assert link.get_text().startswith("Fig. ")
    assert read(site, link["href"].partition(".html")[0]).select(f".companion-users a[href$='#{full}']")


def test_a_docstring_links_to_its_sources(site: Path, library: ApiIndex):
    """It links to the box of a lemma, or to the reference if there is no box."""
    page = read(site, library.page_of("lib.attention.attend"))
    (link,) = page.select("dl:has(> dt[id='lib.attention.attend']) a[href$='#bb26-lemma-2-1']")
    assert link.get_text() == "BB26, Lemma 2.1"
    assert page.select("dl a[href*='references.html#']")
