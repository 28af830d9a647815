"""Packages are installed on a machine whose automatic updates hold the package lock."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Logs its arguments; the first call fails with the error in FAILURE.
APT = """\
#!/bin/sh
echo "$@" >> "$LOG"
if [ "$(wc -l < "$LOG")" -eq 1 ]; then echo "$FAILURE" >&2; exit 100; fi
"""
LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (unattended-upgr)"
INSTALL = "-o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends one two"


@pytest.mark.parametrize(
    ("failure", "updates"),
    [(LOCKED, 2), ("E: Failed to fetch http://deb.example/dists/InRelease", 1)],
    ids=["locked", "offline"],
)
def test_a_held_lock_is_waited_for(tmp_path, failure, updates):
    """`update` takes a lock that has no timeout, so it is repeated, but only if the lock is the reason."""
    log = tmp_path / "log"
    (tmp_path / "apt-get").write_text(APT)
    (tmp_path / "apt-get").chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "LOG": str(log), "FAILURE": failure, "APT_INSTALL_PAUSE": "0"}
    subprocess.run(["bash", ROOT / "tools/apt-install", "one", "two"], check=True, env=environment)
    assert log.read_text().splitlines() == ["update -qq"] * updates + [INSTALL]


@pytest.mark.parametrize("file", [".ci/run", "tests/site/conftest.py", "tests/cluster/slurm.py"])
def test_packages_are_installed_only_with_the_tool_that_waits(file):
    text = (ROOT / file).read_text(encoding="utf-8")
    assert "tools/apt-install" in text
    assert "apt-get update" not in text
    assert '"apt-get", "' not in text
