"""The reader's test: every symbol on a page is defined there or in the notation, or the reason why not stands here."""

from pathlib import Path

from companion.project.paths import Project
from companion.symbols import undefined

PROJECT = Project(Path(__file__).parents[1])
# page: {symbol: why it needs no definition}
EXPLAINED: dict[str, dict[str, str]] = {}


def test_every_symbol_is_defined_or_explained():
    found = {page: sorted(set(missing) - set(EXPLAINED.get(page, {}))) for page, missing in undefined(PROJECT).items()}
    assert {page: missing for page, missing in found.items() if missing} == {}


def test_no_explanation_outlives_its_symbol():
    found = undefined(PROJECT)
    stale = {page: sorted(set(reasons) - set(found.get(page, []))) for page, reasons in EXPLAINED.items()}
    assert {page: symbols for page, symbols in stale.items() if symbols} == {}
