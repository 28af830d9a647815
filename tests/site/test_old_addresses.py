"""Old addresses lead to the new page, with the part of the address after `#`."""

import pytest
from playwright.sync_api import Browser

from companion.site.sphinx.old_addresses import old_page, script

MOVED = {"fig-moved": "new.html", "fig-elsewhere": "other.html", "fig-before": "new.html#fig-stays"}
PAGE = "<!DOCTYPE html><title>A page</title><p id='fig-stays'>A figure</p>"


@pytest.fixture
def folder(tmp_path):
    """A site with a page that is gone, a page that lost figures, and two new pages."""
    (tmp_path / "gone.html").write_text(old_page("new.html", MOVED), encoding="utf-8")
    (tmp_path / "split.html").write_text(PAGE + script(MOVED), encoding="utf-8")
    for name in ("new", "other"):
        (tmp_path / f"{name}.html").write_text(PAGE, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gone.html", "new.html"),
        ("gone.html#fig-moved", "new.html#fig-moved"),
        ("gone.html#fig-elsewhere", "other.html#fig-elsewhere"),
        ("gone.html#fig-before", "new.html#fig-stays"),
        ("gone.html#unknown", "new.html#unknown"),
        ("split.html#fig-before", "new.html#fig-stays"),
        ("split.html", "split.html"),
        ("split.html#fig-stays", "split.html#fig-stays"),
        ("split.html#fig-elsewhere", "other.html#fig-elsewhere"),
    ],
)
def test_old_addresses_lead_to_the_new_ones(browser: Browser, folder, old, new):
    page = browser.new_page()
    page.goto((folder / "new.html").as_uri().replace("new.html", old))
    page.wait_for_url((folder / "new.html").as_uri().replace("new.html", new))
    assert page.title() == "A page"
    page.close()


def test_without_scripts_an_old_page_leads_to_the_new_one(browser: Browser, folder):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "gone.html").as_uri())
    page.wait_for_url((folder / "new.html").as_uri())
    context.close()
