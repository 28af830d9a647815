"""axe-core on every page, in both themes: nothing serious or critical outside what the theme itself brings."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from companion.house import House

# Rules the stock theme breaks on every page, none of them about our content.
THEME_RULES = {"label-content-name-mismatch", "region"}


@pytest.fixture(scope="session")
def book_pages(house: House, site) -> list[str]:
    """The pages we write."""
    return sorted(path.relative_to(site).as_posix() for path in (site / house.book.name).glob("*.html"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, address: str, book_pages: list[str], scheme: str):
    """With every fold-out open, so that what is under the figures is looked at too."""
    faults = []
    for name in book_pages:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
        page = context.new_page()
        page.goto(f"{address}/{name}")
        page.wait_for_load_state("networkidle")
        page.evaluate("document.querySelectorAll('details').forEach(details => { details.open = true })")
        for violation in Axe().run(page).response["violations"]:
            if violation["impact"] in ("serious", "critical") and violation["id"] not in THEME_RULES:
                where = "; ".join(node["html"][:160] for node in violation["nodes"][:3])
                faults.append(f"{name} ({scheme}): {violation['id']}: {violation['help']}: {where}")
        context.close()
    assert not faults, "\n".join(faults)
