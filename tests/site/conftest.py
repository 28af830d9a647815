"""Fixtures for the tests of the site: it is built strictly once from the published figures, and opened in Chromium.

`SITE_PROFILE=laptop pytest tests/site/test_pages.py` opens a site that exists, for example while you edit pages.
"""

import functools
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, Page, sync_playwright

from companion.project.paths import DEFAULT_PROFILE, Project
from companion.site.jupyter_book import is_built

ROOT = Path(__file__).resolve().parents[2]
REDIRECTION = re.compile(r'http-equiv="refresh" content="0; *url=([^"#]+)', re.IGNORECASE)
DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
PACKAGES = ("chromium", "fonts-dejavu")
INSTALL = f"apt-get install -y --no-install-recommends {' '.join(PACKAGES)}"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


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
def redirections(site: Path) -> dict[str, Path]:
    """The pages that only open another page, by file name, each with the file of that page."""
    matches = {path: REDIRECTION.search(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    return {path.relative_to(site).as_posix(): path.parent / match[1] for path, match in matches.items() if match}


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Log nothing."""


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(_QuietHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def find_chromium() -> str:
    """Return the path of Chromium; as root, install it if it is missing. Without it tests fail, and are not skipped."""
    named = os.environ.get("CHROMIUM")
    executable = named or shutil.which("chromium") or shutil.which("google-chrome")
    if not executable and shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["bash", ROOT / "tools/apt-install", *PACKAGES], check=False)
        executable = shutil.which("chromium")
    if not executable or not (shutil.which(executable) or Path(executable).is_file()):
        pytest.fail(f"The browser tests need Chromium: set CHROMIUM=/path/to/chromium, or run: sudo {INSTALL}", False)
    return executable


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def tab(browser: Browser) -> Iterator[Page]:
    """The page that tests share. A new one takes one more second of CPU, and loads styles and scripts again."""
    context = browser.new_context(viewport=DESKTOP, permissions=["clipboard-read", "clipboard-write"])
    yield context.new_page()
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


def leave(page: Page) -> None:
    """Forget what the page stored and where the pointer is, and open an empty page."""
    if page.url.startswith("http"):
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
    page.mouse.move(0, 0)
    page.goto("about:blank")


@pytest.fixture
def visit(tab: Page, address: str) -> Callable[..., Page]:
    """Return a function that opens a page of the book, or an address, in `tab` or another page as if it were new."""

    def opened(name: str, viewport: dict[str, int] = DESKTOP, page: Page = tab, **media: str) -> Page:
        leave(page)
        page.set_viewport_size(viewport)
        page.emulate_media(**{"media": "screen", "color_scheme": "light", "reduced_motion": "no-preference"} | media)
        page.goto(name if ":" in name else f"{address}/book/{name}.html")
        return page

    return opened


@dataclass
class Events:
    """The addresses that a page requested, those that failed, and the errors of its scripts."""

    requested: list[str]
    failed: list[str]
    errors: list[str]


@pytest.fixture
def events(tab: Page) -> Iterator[Events]:
    """The events of `tab` during a test."""
    leave(tab)
    seen = Events([], [], [])
    listeners = {
        "request": lambda request: seen.requested.append(request.url),
        "requestfailed": lambda request: seen.failed.append(request.url),
        "pageerror": lambda error: seen.errors.append(str(error)),
    }
    for event, listener in listeners.items():
        tab.on(event, listener)
    yield seen
    for event, listener in listeners.items():
        tab.remove_listener(event, listener)
