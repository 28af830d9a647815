"""Forked kernels: they give the same bytes as started kernels; test_execution.py and test_signals.py end them."""

import pytest

import small_books
from companion.build import fork_server
from companion.cli import build

pytestmark = pytest.mark.skipif(not fork_server.can_be(), reason="forked on Linux only")

# A cell of toy that writes its process to a file: a forked kernel has no launcher path and has the preloaded package.
REPORTING = """# means, and the process that computes them
import sys
from pathlib import Path

Path("kernel").write_text(f"{sys.argv[0]} {'wave' in sys.modules}")
publish(toy_error, toy_error.simulate_squared_errors(p.lengths, p.repeats, seed=p.seed))
"""


def test_a_forked_kernel_gives_the_same_bytes(clone, ran):
    """The book preloads two packages: one that no other module imports, and one that is missing and is skipped."""
    clone.rewrite_cell("# means", REPORTING)
    clone.add_page("second")
    clone.replace("pyproject.toml", "[tool.companion]\n", '[tool.companion]\npreload = ["no_such_package", "wave"]\n')
    clone.succeed("build", "--target", "figures")
    assert (clone.root / "kernel").read_text() == "ipykernel_launcher True"
    for name in ("figures/toy", "_build/laptop/tables/toy"):
        expected = {path: digest for path, digest in ran.tree(name).items() if not path.endswith(".json")}
        assert expected
        assert expected.items() <= clone.tree(name).items()


def test_without_a_reachable_fork_server_a_kernel_is_started(clone, monkeypatch):
    clone.rewrite_cell("# means", REPORTING)
    monkeypatch.setattr(small_books, "kernels", lambda: {fork_server.FORK_SERVER: str(clone.root / "no_server")})
    clone.succeed("run", "toy")
    assert (clone.root / "kernel").read_text().endswith("False")


def test_a_build_of_one_notebook_starts_no_fork_server(clone, monkeypatch):
    monkeypatch.delenv(fork_server.FORK_SERVER, raising=False)
    clone.replace("pyproject.toml", "[tool.companion]\n", '[tool.companion]\npreload = ["wave"]\n')
    with build._fork_server(clone.project, ["toy"]) as environment:
        assert fork_server.FORK_SERVER not in environment
