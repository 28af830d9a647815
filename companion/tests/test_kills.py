"""A build that is killed at a random moment loses no result; `KILLS` sets the number of kills."""

import os
import random
import shutil
import subprocess
import sys
import time
from contextlib import suppress

import psutil

from companion.figures import store

KILLS = int(os.environ.get("KILLS", "2"))


def test_the_next_build_succeeds(pristine, ran, tmp_path):
    """No kill left a partial figure. The build needs no unlocking and removes their staging folders.

    Either the command alone is killed, so that its child processes continue while the next build begins, or all its
    processes are. The stamps are removed before each build, so that there is something to build. The results equal
    those of an undisturbed build.
    """
    clone, moments = pristine.copy_to(tmp_path / "clone"), random.Random(5)
    build, published = clone.project.build("laptop"), clone.project.published / "toy"
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
                    process_to_kill.kill()
        process.wait()
        assert [fault for figure in store.names_in(published) for fault in store.faults(published, figure)] == []
        shutil.rmtree(build.stamps, ignore_errors=True)
    clone.succeed("build", "--target", "figures")
    assert list(build.staging.iterdir()) == []
    for folder in ("figures", "_build/laptop/figures", "_build/laptop/tables"):
        assert ran.tree(folder)
        assert clone.tree(folder) == ran.tree(folder)
