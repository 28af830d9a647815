"""Fixtures for the tests of the site: it is built strictly once from the published figures, and opened in Chromium.

`SITE_PROFILE=laptop pytest tests/site/test_pages.py` opens a site that exists, for example while you edit pages.
"""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, Page, sync_playwright

from companion.build.publication_policy import published_claims
from companion.figures.record import PublishedClaim
from companion.io.errors import UserError
from companion.project.paths import DEFAULT_PROFILE, Project
from companion.site.jupyter_book import is_built
from companion.site.pdf import FLAGS, find_browser
from companion.site.server import QuietHandler, server

ROOT = Path(__file__).resolve().parents[2]
DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
PACKAGES = ("chromium", "fonts-dejavu")
INSTALL = f"apt-get install -y --no-install-recommends {' '.join(PACKAGES)}"


@pytest.fixture(scope="session")
def project() -> Project:
    return Project(ROOT)


@pytest.fixture(scope="session")
def profile() -> str:
    """The profile whose site is opened."""
    return os.environ.get("SITE_PROFILE", DEFAULT_PROFILE)


@pytest.fixture(scope="session")
def site(project: Project, profile: str, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return the folder of the strictly built site; the build fails if a page warns."""
    temporary = tmp_path_factory.getbasetemp()
    built = (temporary if worker_id == "master" else temporary.parent) / "site"
    with FileLock(f"{built}.lock"):  # one worker builds, the others wait
        if "SITE_PROFILE" not in os.environ and not built.exists():
            subprocess.run([sys.executable, "-m", "companion", "site", "--published"], cwd=ROOT, check=True)
            built.touch()
    assert is_built(project, profile)
    return project.site(profile)


@pytest.fixture(scope="session")
def claims(project: Project, site: Path, profile: str) -> list[PublishedClaim]:
    """The claims on the site, in the order of the book."""
    return published_claims(project, profile)


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    """The address at which the site is served."""
    with server(site, 0, QuietHandler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def find_chromium() -> str:
    """Return the path of Chromium; as root, install it if it is missing. Without it tests fail, and are not skipped."""
    with contextlib.suppress(UserError):
        return find_browser()
    if os.geteuid() == 0:
        subprocess.run(["bash", ROOT / "tools/apt-install", *PACKAGES], check=False)
        with contextlib.suppress(UserError):
            return find_browser()
    pytest.fail(f"The browser tests need Chromium: set CHROMIUM=/path/to/chromium, or run: sudo {INSTALL}", False)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def events() -> dict[str, list[str]]:
    """What happened in `tab` since `visit` opened a page, by kind.

    `request` has the addresses that it requested, `requestfailed` those that failed, `console` the errors in the
    console, such as that of a missing file, and `pageerror` the errors of scripts.
    """
    return {"request": [], "requestfailed": [], "console": [], "pageerror": []}


@pytest.fixture(scope="session")
def tab(browser: Browser, events: dict[str, list[str]]) -> Iterator[Page]:
    """The page that tests share. A new one takes one more second of CPU, and loads styles and scripts again."""
    context = browser.new_context(viewport=DESKTOP, permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.on("request", lambda request: events["request"].append(request.url))
    page.on("requestfailed", lambda request: events["requestfailed"].append(request.url))
    page.on("console", lambda message: events["console"].extend([message.text] * (message.type == "error")))
    page.on("pageerror", lambda error: events["pageerror"].append(str(error)))
    yield page
    context.close()


@pytest.fixture(scope="session")
def unscripted(browser: Browser) -> Iterator[Page]:
    """A page that runs no scripts, shared by tests."""
    context = browser.new_context(viewport=DESKTOP, java_script_enabled=False)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="session")
def phone(browser: Browser) -> Iterator[Page]:
    """A page on a phone, shared by tests, which is touched and not clicked."""
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="session")
def visit(tab: Page, address: str, events: dict[str, list[str]]) -> Callable[..., Page]:
    """Return a function that opens a page of the book, or an address, in `tab` or another page as if it were new."""

    def opened(name: str, viewport: dict[str, int] = DESKTOP, page: Page = tab, **media: str) -> Page:
        if page.url.startswith("http"):
            page.evaluate("localStorage.clear(); sessionStorage.clear()")
        page.mouse.move(0, 0)
        page.goto("about:blank")
        for kind in events.values():
            kind.clear()
        page.set_viewport_size(viewport)
        page.emulate_media(**{"media": "screen", "color_scheme": "light", "reduced_motion": "no-preference"} | media)
        page.goto(name if ":" in name else f"{address}/book/{name}.html")
        return page

    return opened
