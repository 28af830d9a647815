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


class Paper:
    """A copy of the book, and the Python of an environment with the wheel."""

    def __init__(self, root: Path, python: Path):
        self.root, self._python = root, python

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        hidden = ("PYTHONPATH", "VIRTUAL_ENV", OUT, PROFILE, "FORCE_COLOR")
        inherited = {name: value for name, value in os.environ.items() if name not in hidden}
        options = {"NO_COLOR": "1", "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [str(self._python), *arguments]
        return subprocess.run(
            command, cwd=self.root, env=inherited | options, capture_output=True, text=True, check=False
        )

    def companion(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.python("-m", "companion", *arguments)

    def bytes_of(self, *names: str) -> dict[str, bytes]:
        return {name: (self.root / name).read_bytes() for name in names}

    def build(self, *options: str) -> str:
        """Run `companion build`, which must succeed; return its output."""
        finished = self.companion("build", *options)
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return finished.stdout


def text_of(page: Path) -> str:
    """Return the text of a page without tags."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


EXECUTED = "_build/laptop/executed/walks.ipynb"
KERNEL = "▸ walks"


def wheel(project: Path, folder: Path) -> Path:
    """Build the wheel of `project` in `folder`; return its path."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(project)]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def environment(folder: Path, *wheels: Path) -> Path:
    """Return the Python of a new environment with these wheels and the locked packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    python = folder / "venv/bin/python"
    command = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())
    for each in wheels:
        shutil.unpack_archive(each, packages, "zip")
    # once, as pip does: the processes of these tests write no bytecode
    subprocess.run([python, "-m", "compileall", "-q", str(packages)], check=True)
    # Python searches a folder named in a .pth file, but ignores .pth files there, such as that of the editable checkout
    (packages / "locked.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture(scope="module")
def companion_wheel(tmp_path_factory) -> Path:
    """Return the wheel of `companion`."""
    return wheel(ROOT / "companion", tmp_path_factory.mktemp("companion"))


@pytest.fixture(scope="module")
def elsewhere(companion_wheel, tmp_path_factory) -> Path:
    """Return the Python of an environment with the wheel of `companion`, without this checkout and its packages."""
    return environment(tmp_path_factory.mktemp("elsewhere"), companion_wheel)


@pytest.fixture(scope="module")
def built(elsewhere, tmp_path_factory) -> Paper:
    """Return the book, built from scratch; tests do not change it."""
    root = tmp_path_factory.mktemp("book") / "random walks"  # with a space, as users have
    shutil.copytree(BOOK, root, ignore=shutil.ignore_patterns("_build", "__pycache__"))
    shutil.rmtree(root / "figures", ignore_errors=True)  # published by a run in the checkout
    paper = Paper(root, elsewhere)
    paper.output = paper.build()  # pyright: ignore
    return paper


@pytest.fixture
def paper(built, tmp_path) -> Paper:
    """Return a copy of the built book, which a test may change."""
    ignored = shutil.ignore_patterns(".snakemake", "__pycache__")
    return Paper(Path(shutil.copytree(built.root, tmp_path / "book", ignore=ignored)), built._python)


def test_the_checkout_is_not_on_the_path(built):
    code = "import sys, companion; print(companion.__file__, *sys.path, sep='\\n')"
    finished = built.python("-c", code)
    assert finished.returncode == 0, finished.stderr
    locked = Path(sysconfig.get_path("purelib"))  # may be in the checkout, as .venv is
    places = [Path(line) for line in finished.stdout.splitlines()]
    assert [place for place in places if place.is_relative_to(ROOT) and place != locked] == []
    assert places[0].name == "__init__.py"
    assert built.python("-c", "import lib").returncode == 1


def test_book_is_built_from_scratch(built):
    assert KERNEL in built.output
    for name in ("walks/spread", "walks/returns"):
        for suffix in (".svg", ".png", ".csv", ".json"):
            assert (built.root / f"figures/{name}{suffix}").is_file()
    page = text_of(built.root / "_build/html/book/walks.html")
    assert "def walk(" in page, "the page shows a shared function of the chapter under the figure"
    assert "ends = paths.walk(p.steps, p.walkers, seed=p.seed)" in page, "and the cell of the notebook"
    assert "walks-spread" in (built.root / "_build/html/book/claims.html").read_text(encoding="utf-8")


def test_second_build_runs_nothing(paper):
    before = paper.bytes_of(EXECUTED)
    output = paper.build()
    assert "▸" not in output
    assert paper.bytes_of(EXECUTED) == before
    listed = paper.companion("list").stdout
    assert "stale" not in listed
    assert listed.count("fresh") == 3


def test_published_figures_are_verified(paper):
    """An installed `companion` verifies a book that is a folder."""
    finished = paper.companion("verify")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "All 2 figures are reproduced." in finished.stdout
