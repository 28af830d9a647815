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
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, Page, sync_playwright

from companion.project.paths import DEFAULT_PROFILE, Project
from companion.site.jupyter_book import is_built

ROOT = Path(__file__).resolve().parents[2]
REDIRECTION = re.compile(r'http-equiv="refresh" content="0; *url=([^"#]+)', re.IGNORECASE)
DESKTOP = {"width": 1440, "height": 900}
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


@pytest.fixture
def visit(browser: Browser, address: str) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a page of the book."""
    pages: list[Page] = []

    def opened(name: str, viewport: dict[str, int] = DESKTOP, **options: str) -> Page:
        pages.append(browser.new_page(viewport=viewport, **options))
        pages[-1].goto(f"{address}/book/{name}.html")
        return pages[-1]

    yield opened
    for page in pages:
        page.close()
