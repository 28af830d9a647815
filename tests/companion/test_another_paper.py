"""Another paper, made by the machine as others get it: installed from the wheel, this checkout not on the path.

The book in `another_paper/` knows neither JAX nor `lib`; its packages have other names. It is built once, and copied
for every test that changes something. What ran is told by what was written, never by time.
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
BOOK = Path(__file__).with_name("another_paper")


class Paper:
    """A copy of the book, and the Python that has the wheel."""

    def __init__(self, root: Path, python: Path):
        self.root, self._python = root, python

    def python(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        hidden = ("PYTHONPATH", "VIRTUAL_ENV", OUT, PROFILE, "FORCE_COLOR")
        inherited = {name: value for name, value in os.environ.items() if name not in hidden}
        own = {"NO_COLOR": "1", "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": "1"}
        command = [str(self._python), *arguments]
        return subprocess.run(command, cwd=self.root, env=inherited | own, capture_output=True, text=True, check=False)

    def companion(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.python("-m", "companion", *arguments)

    def replace(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text(encoding="utf-8")
        assert old in text, f"{path} has no {old!r}: the book changed, change this test with it"
        (self.root / path).write_text(text.replace(old, new, 1), encoding="utf-8")

    def bytes_of(self, *names: str) -> dict[str, bytes]:
        return {name: (self.root / name).read_bytes() for name in names}

    def build(self) -> str:
        """What `companion build` says, which must end well."""
        finished = self.companion("build")
        assert finished.returncode == 0, finished.stdout + finished.stderr
        return finished.stdout


def text_of(page: Path) -> str:
    """What a reader reads, without the marks of the highlighter."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


EXECUTED = "_build/laptop/executed/walks.ipynb"
KERNEL = "▸ walks"


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory) -> Path:
    """The Python of an environment with the wheel and the locked packages, and nothing of this checkout."""
    folder = tmp_path_factory.mktemp("elsewhere")
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(folder / "wheels"),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    python = folder / "venv/bin/python"
    asked = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = Path(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip())
    (wheel,) = (folder / "wheels").glob("*.whl")
    shutil.unpack_archive(wheel, packages, "zip")
    # plain paths in a .pth file are searched, but their own .pth files, the editable checkout among them, are not
    (packages / "locked.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture(scope="module")
def built(elsewhere, tmp_path_factory) -> Paper:
    """The book, built from scratch; for reading only."""
    root = tmp_path_factory.mktemp("book") / "random walks"  # people have folders with spaces
    shutil.copytree(BOOK, root, ignore=shutil.ignore_patterns("_build", "figures", "__pycache__"))
    paper = Paper(root, elsewhere)
    paper.said = paper.build()  # pyright: ignore
    return paper


@pytest.fixture
def paper(built, tmp_path) -> Paper:
    """A copy of the built book, to change."""
    ignored = shutil.ignore_patterns(".snakemake", "__pycache__")
    return Paper(Path(shutil.copytree(built.root, tmp_path / "book", ignore=ignored)), built._python)


def test_the_checkout_is_not_on_the_path(built):
    asked = "import sys, companion, lib; print(companion.__file__, lib.__file__, *sys.path, sep='\\n')"
    finished = built.python("-c", asked)
    assert finished.returncode == 0, finished.stderr
    locked = Path(sysconfig.get_path("purelib"))  # may stand in the checkout, as .venv does
    places = [Path(line) for line in finished.stdout.splitlines()]
    assert [place for place in places if place.is_relative_to(ROOT) and place != locked] == []
    assert places[0].name == places[1].name == "__init__.py"


def test_it_is_built_from_scratch(built):
    assert KERNEL in built.said
    for name in ("walks/spread", "walks/returns"):
        for suffix in (".svg", ".dark.svg", ".png", ".csv", ".json"):
            assert (built.root / f"figures/{name}{suffix}").is_file()
    page = text_of(built.root / "_build/html/book/walks.html")
    assert "def walk(" in page, "the chapter's shared function is shown under the figure"
    assert "ends = paths.walk(p.steps, p.walkers, seed=p.seed)" in page, "and the step of the notebook"
    assert "walks-spread" in (built.root / "_build/html/book/claims.html").read_text(encoding="utf-8")


def test_built_again_nothing_runs(paper):
    before = paper.bytes_of(EXECUTED)
    said = paper.build()
    assert "▸" not in said
    assert paper.bytes_of(EXECUTED) == before
    listed = paper.companion("list").stdout
    assert "stale" not in listed
    assert listed.count("fresh") == 3


def test_a_sentence_costs_no_kernel(paper):
    before = paper.bytes_of(EXECUTED)
    paper.replace("book/walks.ipynb", "How far does it get?", "How far, on average?")
    said = paper.build()
    assert KERNEL not in said
    assert "redrawn" not in said
    assert paper.bytes_of(EXECUTED) == before
    for shown in ("_build/html/book/walks.html", "_build/laptop/notebooks/walks.ipynb"):
        assert "How far, on average?" in (paper.root / shown).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new"), [('COLOUR = "C0"', 'COLOUR = "C3"'), ("bars are two standard errors", "with their bars")]
)
def test_a_colour_or_a_caption_costs_one_drawing(paper, old, new):
    sister = [f"figures/walks/returns{suffix}" for suffix in (".svg", ".csv", ".json")]
    before, numbers = paper.bytes_of(EXECUTED, *sister), paper.bytes_of("figures/walks/spread.csv")
    picture = paper.bytes_of("figures/walks/spread.svg", "figures/walks/spread.json")
    paper.replace("episodes/walks/figures/spread.py", old, new)
    said = paper.build()
    assert KERNEL not in said
    assert said.count("redrawn") == 1
    assert paper.bytes_of(EXECUTED, *sister) == before
    assert paper.bytes_of("figures/walks/spread.csv") == numbers
    assert paper.bytes_of(*picture) != picture


def test_a_simulation_costs_its_notebook(paper):
    paper.replace("walkers/line.py", "return 2 * steps_up - steps", "return -(2 * steps_up - steps)")
    finished = paper.companion("build", "--target", "figures")
    assert finished.returncode == 0, finished.stderr
    assert KERNEL in finished.stdout


def test_a_claim_that_fails_publishes_nothing(paper):
    before = paper.bytes_of("figures/walks/spread.json", "figures/walks/spread.csv", EXECUTED)
    paper.replace("episodes/walks/figures/spread.py", "expected=1.0", "expected=3.0")
    finished = paper.companion("run", "walks")
    assert finished.returncode == 3
    assert "walks-spread" in finished.stderr
    assert paper.bytes_of("figures/walks/spread.json", "figures/walks/spread.csv", EXECUTED) == before


def test_a_task_survives_what_cannot_change_it(paper):
    assert paper.companion("task", "walks", "steps-10").returncode == 0
    assert "1 of 3 tasks are cached" in paper.companion("task", "walks").stdout
    paper.replace("book/walks.ipynb", "How far does it get?", "How far?")
    paper.replace("episodes/walks/figures/spread.py", "bars are two standard errors", "with bars")
    paper.replace("episodes/walks/figures/spread.py", '"The mean square distance after', '"That after')
    paper.replace("episodes/walks/figures/returns.py", "np.sqrt(2 / (np.pi * n))", "(2 / (np.pi * n)) ** 0.5")
    paper.replace("book/walks.ipynb", "quantile = 4.0", "quantile = 5.0")
    paper.replace("walkers/line.py", "steps_up = ", "# drawn at once\n    steps_up = ")
    assert "1 of 3 tasks are cached" in paper.companion("task", "walks").stdout
    paper.replace("book/walks.ipynb", "walkers = 2000", "walkers = 2001")
    assert "0 of 3 tasks are cached" in paper.companion("task", "walks").stdout
    paper.replace("book/walks.ipynb", "walkers = 2001", "walkers = 2000")
    assert "1 of 3 tasks are cached" in paper.companion("task", "walks").stdout, "nothing deletes a task"


def test_a_package_that_is_not_there_is_named(paper):
    """It would drop out of every content key otherwise."""
    paper.replace("pyproject.toml", 'science = ["walkers"]', 'science = ["walkers", "runners"]')
    finished = paper.companion("list")
    assert finished.returncode == 2
    assert "'runners'" in finished.stderr


def test_what_is_published_is_verified(paper):
    """By a machine that is installed, of a book that is a folder."""
    finished = paper.companion("verify")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "All 2 figures are reproduced." in finished.stdout


def test_the_wheel_verifies_figures_without_a_clone(elsewhere, tmp_path):
    """Those of the book that is in it, downloaded; one short chapter of it. The clone is not on the path."""
    shutil.copytree(ROOT / "figures/needle_in_a_long_prompt", tmp_path / "downloaded/needle_in_a_long_prompt")
    finished = Paper(tmp_path, elsewhere).companion("verify", "needle_in_a_long_prompt", "--figures", "downloaded")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "All 2 figures are reproduced." in finished.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"downloaded", "_build"}


def test_without_a_clone_the_figures_are_to_be_named(elsewhere, tmp_path):
    finished = Paper(tmp_path, elsewhere).companion("verify")
    assert finished.returncode == 2
    assert "--figures FOLDER" in finished.stderr
