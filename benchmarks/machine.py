"""What a person waits for: an answer of the command line, a figure drawn again, a build from nothing.

Whole processes, in a fresh clone of what is committed, cut down to the book's first two notebooks at their small size.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import yaml

from benchmarks.contests import Contest

THREADS = (2,)
ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ("measures", "gaussian_limit")
SMALL = ("--profile", "smoke")


def contests() -> Iterator[Contest]:
    """Answers, a redraw, a build; each beside what one would do without the machine."""
    with tempfile.TemporaryDirectory() as scratch:
        clone = cut_down(Path(scratch) / "book")
        told = {
            "a mistyped parameter": ["run", "measures", "-p", "typo=1"],
            "a value out of range": ["run", "measures", "-p", "seed=-1"],
            "the list of figures": ["list"],
        }
        for answer, words in told.items():
            ways = {"companion": partial(companion, clone, *words), "python -c 'import numpy'": partial(numpy, clone)}
            yield Contest("An answer on the command line", answer, ways)
        yield Contest(
            "From nothing, compilers' caches too",
            "two notebooks, smoke size",
            {"companion build": partial(build, clone), "papermill, one after another": partial(papermill, clone)},
            warm=False,
        )
        companion(clone, "run", "measures", *SMALL)
        ways = {
            "companion redraw": partial(companion, clone, "redraw", "single_token", *SMALL),
            "companion run": partial(companion, clone, "run", "measures", *SMALL),
        }
        yield Contest("One figure drawn again", "its notebook compiled before", ways, warm=False)


def cut_down(clone: Path) -> Path:
    """A clone with some of the notebooks, and what profiles say of them."""
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    for path in (clone / "book").glob("*.ipynb"):
        if path.stem not in NOTEBOOKS:
            path.unlink()
    for path in (clone / "profiles").glob("*.yml"):
        said = yaml.safe_load(path.read_text())
        path.write_text(yaml.safe_dump({name: said[name] for name in NOTEBOOKS}))
    return clone


def companion(clone: Path, *words: str) -> None:
    """The command line, in the clone; a mistake is an answer, too."""
    command = [sys.executable, "-m", "companion", *words]
    subprocess.run(command, cwd=clone, capture_output=True, check=False)


def numpy(clone: Path) -> None:
    """A Python that starts, and imports NumPy."""
    subprocess.run([sys.executable, "-c", "import numpy"], cwd=clone, check=True)


def build(clone: Path) -> None:
    """Everything but the site, from nothing."""
    shutil.rmtree(clone / "_build", ignore_errors=True)
    command = [sys.executable, "-m", "companion", "build", "--target", "figures", *SMALL]
    subprocess.run(command, cwd=clone, capture_output=True, check=True)


def papermill(clone: Path) -> None:
    """The same notebooks with the same parameters."""
    small = yaml.safe_load((clone / "profiles/smoke.yml").read_text())
    for name in NOTEBOOKS:
        command = [
            sys.executable,
            "-m",
            "papermill",
            f"book/{name}.ipynb",
            f"{clone.parent}/{name}.ipynb",
            "-k",
            "python3",
        ]
        subprocess.run([*command, "-y", yaml.safe_dump(small[name])], cwd=clone, capture_output=True, check=True)
