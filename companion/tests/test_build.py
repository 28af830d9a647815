"""A build of two notebooks: their order, its progress, and forked kernels, which give the same bytes as started ones.

test_execution.py and test_signals.py end forked kernels.
"""

import pytest

import small_books
from companion.build import fork_server
from companion.cli import build

forks = pytest.mark.skipif(not fork_server.can_be(), reason="forked on Linux only")

# A cell of toy that writes its process to a file: a forked kernel has no launcher path and has the preloaded package.
REPORTING = """# means, and the process that computes them
import sys
from pathlib import Path

Path("kernel").write_text(f"{sys.argv[0]} {'wave' in sys.modules}")
publish(toy_error, toy_error.simulate_squared_errors(p.lengths, p.repeats, seed=p.seed))
"""
# The book preloads two packages: one that no other module imports, and one that is missing and is skipped.
SETTINGS = """\
[tool.companion]
preload = ["no_such_package", "wave"]
costs.laptop = "costs.csv"
"""


@pytest.fixture(scope="module")
def built(pristine, tmp_path_factory):
    """A book with a second notebook, which needs longer, after a build with one core; `.lines` are its output."""
    clone = pristine.copy_to(tmp_path_factory.mktemp("built") / "clone")
    clone.rewrite_cell("# means", REPORTING)
    clone.add_page("lengthy")
    clone.write("costs.csv", "notebook,core minutes\ntoy,1\nlengthy,9\n")
    clone.replace("pyproject.toml", "[tool.companion]\n", SETTINGS)
    clone.lines = clone.succeed("build", "--target", "figures", "--cores", "1").splitlines()
    return clone


def test_a_build_starts_the_longest_notebook_and_prints_its_progress(built):
    """If the longest started last, the other cores would wait for it. Progress is printed after a notebook's line."""
    assert [line.split()[1] for line in built.lines if line.startswith("▸ ")] == ["lengthy", "toy"]
    (end,) = [number for number, line in enumerate(built.lines) if line.startswith("✓ toy:")]
    assert built.lines.index("  notebooks: 2 of 2") > end


@forks
def test_a_forked_kernel_gives_the_same_bytes(built, ran):
    assert (built.root / "kernel").read_text() == "ipykernel_launcher True"
    for name in ("figures/toy", "_build/laptop/tables/toy"):
        expected = {path: digest for path, digest in ran.tree(name).items() if not path.endswith(".json")}
        assert expected
        assert expected.items() <= built.tree(name).items()


@forks
def test_without_a_reachable_fork_server_a_kernel_is_started(clone, monkeypatch):
    clone.rewrite_cell("# means", REPORTING)
    monkeypatch.setattr(small_books, "kernels", lambda: {fork_server.FORK_SERVER: str(clone.root / "no_server")})
    clone.succeed("run", "toy")
    assert (clone.root / "kernel").read_text().endswith("False")


@forks
def test_a_build_of_one_notebook_starts_no_fork_server(clone, monkeypatch):
    monkeypatch.delenv(fork_server.FORK_SERVER, raising=False)
    clone.replace("pyproject.toml", "[tool.companion]\n", '[tool.companion]\npreload = ["wave"]\n')
    with build._fork_server(clone.project, ["toy"]) as environment:
        assert fork_server.FORK_SERVER not in environment
