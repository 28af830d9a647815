"""`companion serve` serves the built site on loopback until it is interrupted."""

import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from companion.project.paths import Project


def test_serve_shows_the_site_until_interrupted(project: Project, site: Path, profile: str):
    """It prints its address, serves the front page there, and exits with status 0 after Ctrl-C."""
    command = [sys.executable, "-m", "companion", "serve", "--profile", profile, "--port", "0"]
    # child processes of a background job ignore SIGINT unless it is reset
    options = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    with subprocess.Popen(command, cwd=project.root, stdout=subprocess.PIPE, text=True, **options) as server:
        try:
            address = re.match(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())[0]
            with urllib.request.urlopen(address + "book/index.html", timeout=20) as response:
                assert response.read() == (site / "book" / "index.html").read_bytes()
            server.send_signal(signal.SIGINT)
            assert server.wait(timeout=20) == 0
        finally:
            server.kill()


def test_serving_without_a_site_is_refused(project: Project, tmp_path: Path):
    """The message names the command that builds the site."""
    for name in ("_config.yml", "pyproject.toml"):
        shutil.copy(project.root / name, tmp_path)
    command = [sys.executable, "-m", "companion", "serve"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert finished.returncode == 2
    assert "companion build --profile laptop" in finished.stderr
