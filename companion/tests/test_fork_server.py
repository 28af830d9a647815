"""Forked kernels: they give the same bytes as started kernels, and their end is noticed."""

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
FORKED, STARTED = "ipykernel_launcher True", "False"


def kernel_report(clone) -> str:
    return (clone.root / "kernel").read_text()


def test_a_forked_kernel_gives_the_same_bytes(clone, ran):
    """The book preloads two packages: one that no other module imports, and one that is missing and is skipped."""
    clone.rewrite_cell("# means", REPORTING)
    clone.add_page("second")
    clone.replace("pyproject.toml", "[tool.companion]\n", '[tool.companion]\npreload = ["no_such_package", "wave"]\n')
    finished = clone.companion("build", "--target", "figures")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert kernel_report(clone) == FORKED
    for name in ("figures/toy", "_build/laptop/tables/toy"):
        expected = {path: digest for path, digest in ran.tree(name).items() if not path.endswith(".json")}
        assert expected
        assert expected.items() <= clone.tree(name).items()


def test_without_a_reachable_fork_server_a_kernel_is_started(clone, monkeypatch):
    clone.rewrite_cell("# means", REPORTING)
    monkeypatch.setattr(small_books, "kernels", lambda: {fork_server.FORK_SERVER: str(clone.root / "no_server")})
    finished = clone.companion("run", "toy")
    assert finished.returncode == 0, finished.stderr
    assert kernel_report(clone).endswith(STARTED)


def test_a_build_of_one_notebook_starts_no_fork_server(clone, monkeypatch):
    monkeypatch.delenv(fork_server.FORK_SERVER, raising=False)
    clone.replace("pyproject.toml", "[tool.companion]\n", '[tool.companion]\npreload = ["wave"]\n')
    with build._fork_server(clone.project, ["toy"]) as environment:
        assert fork_server.FORK_SERVER not in environment


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        (
            "os.write(2, b'a flag is unknown'); os._exit(3)",
            "It wrote last:\n  a flag is unknown\n  The kernel ended with exit code 3.",
        ),
        (
            "os.kill(os.getpid(), 9)",
            "The kernel was ended by the signal SIGKILL.\n  Did the machine run out of memory?",
        ),
    ],
)
def test_the_death_of_a_forked_kernel_is_reported(clone, how, cause):
    """The kernels of commands that tests call are forked."""
    clone.rewrite_cell("# setup", f"# setup\nimport os\nopen('kernel', 'w').write(__import__('sys').argv[0])\n{how}")
    finished = clone.companion("run", "toy")
    assert finished.returncode == 2
    assert "toy: Kernel died." in finished.stderr
    assert cause in finished.stderr
    assert kernel_report(clone) == "ipykernel_launcher"
