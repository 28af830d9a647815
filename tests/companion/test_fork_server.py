"""Forked kernels: the same bytes as from kernels that were started, and nothing left of them."""

import os
import subprocess
import sys
import time

import pytest

from companion.build import fork_server

pytestmark = pytest.mark.skipif(not fork_server.can_be(), reason="forked on Linux only")

# What a cell of toy says of the process it runs in: who is forked has no path of a launcher, and its imports.
TELLING = """# means, and who computes them
import sys
from pathlib import Path

Path("kernel").write_text(f"{sys.argv[0]} {'wave' in sys.modules}")
publish(toy_error, toy_error.simulate(p.lengths, p.repeats, seed=p.seed))
"""
FORKED, STARTED = "ipykernel_launcher True", "False"


def with_two_notebooks(clone, preload: str = '"wave"'):
    """`preload` names a package that nothing else imports."""
    assert clone.companion("new", "second").returncode == 0
    clone.replace("pyproject.toml", "[tool.companion]\n", f"[tool.companion]\npreload = [{preload}]\n")
    return clone


def kernel_said(clone) -> str:
    return (clone.root / "kernel").read_text()


def test_a_build_forks_kernels_and_leaves_the_same_bytes(clone, ran):
    clone.rewrite_cell("# means", TELLING)
    finished = with_two_notebooks(clone).companion("build", "--target", "figures")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert kernel_said(clone) == FORKED
    for name in ("figures/toy", "_build/laptop/tables/toy"):
        theirs = {path: digest for path, digest in ran.tree(name).items() if not path.endswith(".json")}
        assert theirs
        assert theirs.items() <= clone.tree(name).items()


def test_what_cannot_be_imported_is_left_to_the_notebook_that_needs_it(clone):
    clone.rewrite_cell("# means", TELLING)
    finished = with_two_notebooks(clone, '"no_such_package", "wave"').companion("build", "--target", "figures")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert kernel_said(clone) == FORKED


def test_without_a_nursery_that_answers_a_kernel_is_started(clone):
    clone.rewrite_cell("# means", TELLING)
    clone.environment[fork_server.FORK_SERVER] = str(clone.root / "nobody")
    finished = clone.companion("run", "toy")
    assert finished.returncode == 0, finished.stderr
    assert kernel_said(clone).endswith(STARTED)


def test_one_notebook_needs_no_nursery(clone):
    clone.rewrite_cell("# means", TELLING)
    clone.replace("pyproject.toml", "[tool.companion]\n", '[tool.companion]\npreload = ["wave"]\n')
    assert clone.companion("build", "--target", "figures").returncode == 0
    assert kernel_said(clone).endswith(STARTED)


@pytest.mark.parametrize("how", ["os._exit(3)", "os.kill(os.getpid(), 9)"])
def test_a_forked_kernel_that_dies_is_missed(clone, how):
    clone.rewrite_cell("# means", f"# means\nimport os\n{how}")
    finished = with_two_notebooks(clone).companion("build", "--target", "figures")
    assert finished.returncode == 2
    assert "its kernel died" in finished.stdout


ASKED = """
import os, sys
from companion.build import fork_server
kernel = fork_server.kernel([sys.executable, *fork_server.LAUNCHER, "--version"], {**os.environ}, "/")
print(kernel.wait(), kernel.poll(), flush=True)
"""


def test_a_fork_says_how_it_ended(tmp_path):
    """And writes to where whoever asked for it writes."""
    where = str(tmp_path / "socket")
    with subprocess.Popen(fork_server.command(where, []), stdin=subprocess.PIPE) as process:
        while not (tmp_path / "socket").exists():
            assert process.poll() is None
            time.sleep(0.05)
        environment = {**os.environ, fork_server.FORK_SERVER: where}
        told = subprocess.run(
            [sys.executable, "-c", ASKED], env=environment, capture_output=True, text=True, check=True
        )
    version, codes = told.stdout.split("\n")[:2]
    assert version[0].isdigit()
    assert codes == "0 0"
