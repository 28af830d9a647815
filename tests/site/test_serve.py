"""`companion serve` shows the built site, on loopback only, until it is interrupted."""

import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from companion.project.paths import Project


def test_serve_shows_the_site_and_ends(project: Project, site: Path):
    """It says its address, answers there with the front page, and Ctrl-C ends it without a fault."""
    command = [sys.executable, "-m", "companion", "serve", "--profile", "smoke", "--port", "0"]
    # where the tests run in the background, their children would ignore Ctrl-C
    heeding = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with subprocess.Popen(command, cwd=project.root, stdout=subprocess.PIPE, text=True, **heeding) as server:
        try:
            address = re.match(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())[0]
            with urllib.request.urlopen(address + "book/index.html", timeout=20) as answer:
                assert answer.read() == (site / "book" / "index.html").read_bytes()
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=20) == 0
        finally:
            server.kill()


def test_serve_says_when_there_is_no_site(project: Project, tmp_path: Path):
    """A site that was not built cannot be shown; the message names the command that builds it."""
    for name in ("_config.yml", "pyproject.toml"):
        shutil.copy(project.root / name, tmp_path)
    command = [sys.executable, "-m", "companion", "serve"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert finished.returncode == 2
    assert "companion build --profile laptop" in finished.stderr
