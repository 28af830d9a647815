"""Each symbol on a page is defined there or in the notation, or this file gives the reason why not."""

from pathlib import Path

from companion.project.paths import Project
from symbol_linter import undefined

PROJECT = Project(Path(__file__).parents[1])
# page: {symbol: why it needs no definition}
EXPLAINED: dict[str, dict[str, str]] = {}


def test_every_symbol_is_defined_or_explained():
    unexplained = {
        page: sorted(set(missing) - set(EXPLAINED.get(page, {}))) for page, missing in undefined(PROJECT).items()
    }
    assert {page: symbols for page, symbols in unexplained.items() if symbols} == {}


def test_no_explanation_outlives_its_symbol():
    missing = undefined(PROJECT)
    stale = {page: sorted(set(reasons) - set(missing.get(page, []))) for page, reasons in EXPLAINED.items()}
    assert {page: symbols for page, symbols in stale.items() if symbols} == {}
