"""The site at the smoke profile, built strictly once, served on loopback, opened in a real Chromium.

While you work on pages, `SITE_PROFILE=laptop pytest tests/site/test_pages.py` opens the site that is there already, as
`companion site --published` leaves it.
"""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, sync_playwright

from companion.project.paths import Project
from companion.site.jupyter_book import is_built

SMOKE = "smoke"
ROOT = Path(__file__).resolve().parents[2]
INSTALL = "apt-get install -y --no-install-recommends chromium fonts-dejavu"
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
    """Of the site that is opened."""
    return os.environ.get("SITE_PROFILE", SMOKE)


@pytest.fixture(scope="session")
def site(project: Project, profile: str, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder of the strictly built site; it fails here if any page warns or any claim does not hold."""
    own = tmp_path_factory.getbasetemp()
    built = (own if worker_id == "master" else own.parent) / "site"
    with FileLock(f"{built}.lock"):  # one worker builds, the others wait
        if profile == SMOKE and not built.exists():
            subprocess.run([sys.executable, "-m", "companion", "build", "--profile", SMOKE], cwd=ROOT, check=True)
            built.touch()
    assert is_built(project, profile)
    return project.site(profile)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def find_chromium() -> str:
    """$CHROMIUM, one on the PATH, or Debian's, installed now. Fails with the line to run: never a silent skip."""
    named = os.environ.get("CHROMIUM")
    found = named or shutil.which("chromium") or shutil.which("google-chrome")
    if not found and shutil.which("apt-get") and os.geteuid() == 0:
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        subprocess.run(INSTALL.split(), check=False)
        found = shutil.which("chromium")
    if not found or not (shutil.which(found) or Path(found).is_file()):
        pytest.fail(f"The browser tests need Chromium: set CHROMIUM=/path/to/it, or run: sudo {INSTALL}", False)
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield chromium
        chromium.close()
