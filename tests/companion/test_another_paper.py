"""A book of another paper, built with `companion` from the wheel, as other authors use it.

The book in `another_paper/` uses neither JAX nor `lib`, and its packages have other names. It is built once; a test
that changes something works on a copy. The tests recognise what ran by the files that were written, not by times.
"""

import html
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from companion.project.paths import OUT, PROFILE

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "companion/tests/another_paper"
LOCKED = Path(sysconfig.get_path("purelib"))  # may be in the checkout, as .venv is


class Paper:
    """A copy of the book, and the Python of an environment with the wheel."""

    def __init__(self, root: Path, interpreter: Path):
        self.root, self.interpreter = root, interpreter

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        hidden = ("PYTHONPATH", "VIRTUAL_ENV", OUT, PROFILE, "FORCE_COLOR")
        environment = {name: value for name, value in os.environ.items() if name not in hidden}
        environment |= {"NO_COLOR": "1", "COLUMNS": "200"}
        command = [str(self.interpreter), *arguments]
        return subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)

    def companion(self, *arguments: str) -> str:
        """Run a command, which must succeed; return its output."""
        finished = self.python("-m", "companion", *arguments)
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return finished.stdout


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory) -> Path:
    """Return the Python of an environment with the wheel of `companion`, without this checkout and its packages."""
    folder = tmp_path_factory.mktemp("elsewhere")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT / "companion"]
    subprocess.run(build, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv/bin/python"
    command = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.check_output(command, text=True).strip())
    shutil.unpack_archive(next(folder.glob("*.whl")), packages, "zip")
    # Python searches a folder named in a .pth file, but ignores .pth files there, such as that of the editable checkout
    (packages / "locked.pth").write_text(f"{LOCKED}\n")
    return python


@pytest.fixture(scope="module")
def built(elsewhere, tmp_path_factory) -> Paper:
    """Return the book, built from scratch; tests do not change it."""
    root = tmp_path_factory.mktemp("book") / "random walks"  # with a space, as users have
    shutil.copytree(BOOK, root, ignore=shutil.ignore_patterns("_build", "__pycache__"))
    shutil.rmtree(root / "figures", ignore_errors=True)  # published by a run in the checkout
    paper = Paper(root, elsewhere)
    paper.output = paper.companion("build")  # pyright: ignore
    return paper


@pytest.fixture
def paper(built, tmp_path) -> Paper:
    """Return a copy of the built book, which a test may change."""
    ignored = shutil.ignore_patterns(".snakemake", "__pycache__")
    return Paper(Path(shutil.copytree(built.root, tmp_path / "book", ignore=ignored)), built.interpreter)


def test_the_checkout_is_not_on_the_path(built):
    code = "import sys, companion; print(companion.__file__, *sys.path, sep='\\n')"
    places = [Path(line) for line in built.python("-c", code).stdout.splitlines()]
    assert places[0].name == "__init__.py"
    assert [place for place in places if place.is_relative_to(ROOT) and place != LOCKED] == []
    assert built.python("-c", "import lib").returncode == 1


def test_book_is_built_from_scratch(built):
    assert "▸ walks" in built.output
    for name in ("walks/spread", "walks/returns"):
        for suffix in (".svg", ".png", ".csv", ".json"):
            assert (built.root / f"figures/{name}{suffix}").is_file()
    pages = built.root / "_build/html/book"
    text = html.unescape(re.sub(r"<[^>]+>", "", (pages / "walks.html").read_text(encoding="utf-8")))
    assert "def walk(" in text, "the page shows a shared function of the chapter under the figure"
    assert "ends = paths.walk(p.steps, p.walkers, seed=p.seed)" in text, "and the cell of the notebook"
    assert "walks-spread" in (pages / "claims.html").read_text(encoding="utf-8")


def test_second_build_runs_nothing(paper):
    executed = paper.root / "_build/laptop/executed/walks.ipynb"
    before = executed.read_bytes()
    assert "▸" not in paper.companion("build")
    assert executed.read_bytes() == before
    listed = paper.companion("list")
    assert "stale" not in listed
    assert listed.count("fresh") == 3


def test_published_figures_are_verified(paper):
    """An installed `companion` verifies a book that is a folder."""
    assert "All 2 figures are reproduced." in paper.companion("verify")
