"""The first cell of every notebook, run in folders as readers have them."""

import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from companion.project import repository
from companion.project.paths import Project

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"chapters": "chapters", "companion": "companion/src/companion", "lib": "lib"}


def cell_with(url):
    """Return the cell of this book as it is written while its address is `url`."""
    with mock.patch.object(repository, "public_address", return_value=url):
        return "".join(repository.bootstrap_cell(Project(ROOT))["source"])


CELL = cell_with("https://github.com/no--body/book")
UNSET = cell_with(None)
EITHER = pytest.mark.parametrize("cell", [CELL, UNSET], ids=["set", "unset"])

# A stand-in for pip: it writes its arguments to a file, then runs the line {then}.
PIP = """\
import sys
from pathlib import Path
print("no route to host", file=sys.stderr)
Path("arguments").write_text(" ".join(sys.argv[1:]))
{then}
"""


def first_cell(folder, *places, then="", cell=CELL):
    """Run the cell in `folder`; Python finds packages there, then in `places`."""
    command = [sys.executable, "-S", "-c", f"{cell}\n{then}"]
    # without site-packages, whose packages must not be found
    path = [str(folder) for place in places for folder in (place, place / "companion/src")]
    environment = {"PYTHONPATH": ":".join(path), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)


@pytest.fixture
def pip(tmp_path):
    """Return a function that makes a stand-in for pip whose last line is given."""

    def stand_in(then):
        (tmp_path / "pip").mkdir()
        (tmp_path / "pip/__init__.py").touch()
        (tmp_path / "pip/__main__.py").write_text(PIP.format(then=then))
        return tmp_path

    return stand_in


@EITHER
def test_nothing_happens_where_the_book_is_installed(tmp_path, cell):
    """No output and no file; a folder that is not a package hides nothing."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "chapters").mkdir()
    finished = first_cell(tmp_path, ROOT, cell=cell)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chapters", "lib"]


def test_failure_of_pip_stops_the_notebook(pip):
    """With the output of pip and without a traceback; no later cell runs."""
    folder = pip("sys.exit(1)")
    finished = first_cell(folder, then="print('below')")
    assert finished.returncode == 1
    assert finished.stdout == ""
    assert finished.stderr == (
        "pip could not install this book, and nothing below can run. It says:\nno route to host\n\n"
    )
    address = "@ git+https://github.com/no--body/book"
    wanted = f"large-prompt-attention[notebook] {address} paper-companion {address}#subdirectory=companion"
    assert (folder / "arguments").read_text() == f"install --quiet {wanted}"


def test_while_the_address_is_unset_nothing_is_installed(pip):
    """The notebook stops with a message that says what to do; pip is not started."""
    folder = pip("")
    finished = first_cell(folder, then="print('below')", cell=UNSET)
    assert (finished.returncode, finished.stdout) == (1, "")
    assert finished.stderr == (
        "This book is not installed here: open the notebook in a folder of a clone of the book, or run "
        "`pip install -e ./companion -e .` in a clone.\n"
    )
    assert not (folder / "arguments").exists()


def test_packages_that_pip_installed_are_imported_at_once(pip):
    """In the same kernel."""
    folder = pip(f"[Path(name).symlink_to(Path({str(ROOT)!r}) / at) for name, at in {PACKAGES}.items()]")
    finished = first_cell(folder, then="import chapters; print(chapters.__name__)")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "chapters\n", "")


PLACES = "import chapters, companion, lib; print(*(module.__file__ for module in (chapters, companion, lib)))"


def small_clone(root):
    """Make a folder like a clone of this book, with empty packages."""
    for folder in PACKAGES.values():
        (root / folder).mkdir(parents=True)
        (root / folder / "__init__.py").touch()
    for name in ("_config.yml", "pyproject.toml"):
        (root / name).touch()
    (root / "book").mkdir()
    return root


def places(root):
    return " ".join(str(root / folder / "__init__.py") for folder in PACKAGES.values()) + "\n"


@EITHER
@pytest.mark.parametrize("folder", ["book", ".", "notes/drafts"])
@pytest.mark.parametrize("installed", [False, True], ids=["only here", "also elsewhere"])
def test_in_a_clone_its_own_packages_are_used(tmp_path, cell, installed, folder):
    """In any of its folders, even if another copy is installed; there is no pip. A second run adds no path."""
    root = small_clone(tmp_path / "clone")
    (root / folder).mkdir(parents=True, exist_ok=True)
    copies = [small_clone(tmp_path / "other")] if installed else []
    then = f"before = len(sys.path)\n{cell}\nassert len(sys.path) == before\n{PLACES}"
    finished = first_cell(root / folder, *copies, then=then, cell=cell)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, places(root), "")


@pytest.mark.parametrize(
    "missing", ["_config.yml", "pyproject.toml", *(f"{folder}/__init__.py" for folder in PACKAGES.values())]
)
def test_a_folder_without_all_parts_is_not_a_clone(tmp_path, missing):
    """Its packages are not imported."""
    root, other = small_clone(tmp_path / "clone"), small_clone(tmp_path / "other")
    (root / missing).unlink()
    assert first_cell(root / "book", other, then=PLACES, cell=UNSET).stdout == places(other)
    assert first_cell(root / "book", cell=UNSET).stderr.startswith("This book is not installed here")
