"""A build that is killed at a random moment loses no result; `KILLS` sets the number of kills."""

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

KILLS = int(os.environ.get("KILLS", "2"))


@pytest.fixture(scope="module")
def killed(pristine, ran, tmp_path_factory):
    """Return a clone in which several builds were killed, and then one build ended.

    Either the command alone is killed, so that its child processes continue while the next build begins, or all its
    processes are. The stamps are removed before each build, so that there is something to build.
    """
    clone, moments = pristine.copy_to(tmp_path_factory.mktemp("killed") / "clone"), random.Random(5)
    build, clone.faults = clone.project.build("laptop"), []
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
            processes = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            for process_to_kill in moments.choice([processes, processes[:1]]):
                with suppress(psutil.NoSuchProcess):
                    process_to_kill.send_signal(signal.SIGKILL)
        process.wait()
        published = clone.project.published / "toy"
        clone.faults += [fault for figure in store.names_in(published) for fault in store.faults(published, figure)]
        shutil.rmtree(build.stamps, ignore_errors=True)
    clone.finished = clone.companion("build", "--target", "figures")
    return clone


def test_the_next_build_succeeds(killed):
    """No kill left a partial figure. The build needs no unlocking and removes their staging folders."""
    assert killed.faults == []
    assert killed.finished.returncode == 0, killed.finished.stdout + killed.finished.stderr
    assert list(killed.project.build("laptop").staging.iterdir()) == []


def test_its_results_equal_those_of_an_undisturbed_build(ran, killed):
    for folder in ("figures", "_build/laptop/figures", "_build/laptop/tables"):
        assert ran.tree(folder)
        assert killed.tree(folder) == ran.tree(folder)
