"""Kills at random moments lose nothing. More of them: `KILLS=50 pytest tests/companion/test_kills.py`."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest

from companion.figures import store

KILLS = int(os.environ.get("KILLS", "4"))
FIGURE = "toy_error"


@pytest.fixture(scope="module")
def killed(pristine, ran, tmp_path_factory):
    """A clone in which builds were killed: the command alone, or all that works for it; then one that was not.

    What the command alone leaves behind goes on while the next build begins. Results are forgotten before each, so that
    there is something to build.
    """
    clone, moments = pristine.copy_to(tmp_path_factory.mktemp("killed") / "clone"), random.Random(5)
    clone.faults, build = [], clone.project.build("laptop")
    for _ in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-m", "companion", "build", "--target", "figures"],
            cwd=clone.root,
            env=clone.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(moments.uniform(0.1, 1.6) * min(ran.seconds, 15))
        with suppress(psutil.NoSuchProcess):
            working = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            for one in moments.choice([working, working[:1]]):
                with suppress(psutil.NoSuchProcess):
                    one.send_signal(signal.SIGKILL)
        process.wait()
        folder = clone.project.published / "toy"
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        if names:
            clone.faults += sorted(names ^ {f"{FIGURE}{suffix}" for suffix in store.SUFFIXES})
            clone.faults += store.faults(folder, FIGURE)
        shutil.rmtree(build.stamps, ignore_errors=True)
    clone.finished = clone.companion("build", "--target", "figures")
    return clone


def test_figures_are_whole_after_each(killed):
    assert killed.faults == []


def test_the_next_build_ends_well(killed):
    """With nothing to unlock; what the others had half done is gone."""
    assert killed.finished.returncode == 0, killed.finished.stdout + killed.finished.stderr
    assert list(killed.project.build("laptop").staging.iterdir()) == []


def test_its_bytes_are_those_of_a_build_that_nobody_killed(ran, killed):
    for folder in ("figures", "_build/laptop/figures", "_build/laptop/tables"):
        assert ran.tree(folder)
        assert killed.tree(folder) == ran.tree(folder)
