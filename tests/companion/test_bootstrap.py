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
PARTS = ["_config.yml", "pyproject.toml", *(f"{folder}/__init__.py" for folder in PACKAGES.values())]


def cell_with(url):
    """Return the cell of this book as it is written while its address is `url`."""
    with mock.patch.object(repository, "public_address", return_value=url):
        return "".join(repository.bootstrap_cell(Project(ROOT))["source"])


CELL, UNSET = cell_with("https://github.com/no--body/book"), cell_with(None)
EITHER = pytest.mark.parametrize("cell", [CELL, UNSET], ids=["set", "unset"])

# A stand-in for pip: it writes its arguments to a file, then runs the line {then}.
PIP = """\
import sys
from pathlib import Path
print("no route to host", file=sys.stderr)
Path("arguments").write_text(" ".join(sys.argv[1:]))
{then}
"""


def first_cell(folder, *places, then="", cell=CELL, pip=""):
    """Run the cell in `folder`, which gets a stand-in for pip; Python finds packages there, then in `places`."""
    (folder / "pip").mkdir(parents=True, exist_ok=True)
    (folder / "pip/__init__.py").touch()
    (folder / "pip/__main__.py").write_text(PIP.format(then=pip))
    # without site-packages, whose packages must not be found
    command = [sys.executable, "-S", "-c", f"{cell}\n{then}"]
    path = ":".join(str(path) for place in places for path in (place, place / "companion/src"))
    environment = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    finished = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)
    return finished.returncode, finished.stdout, finished.stderr


@EITHER
def test_nothing_happens_where_the_book_is_installed(tmp_path, cell):
    """No output and no call of pip; a folder that is not a package hides nothing."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "chapters").mkdir()
    assert first_cell(tmp_path, ROOT, cell=cell) == (0, "", "")
    assert not (tmp_path / "arguments").exists()


def test_failure_of_pip_stops_the_notebook(tmp_path):
    """With the output of pip and without a traceback; no later cell runs."""
    error = "pip could not install this book, and nothing below can run. It says:\nno route to host\n\n"
    assert first_cell(tmp_path, then="print('below')", pip="sys.exit(1)") == (1, "", error)
    address = "@ git+https://github.com/no--body/book"
    wanted = f"large-prompt-attention[notebook] {address} paper-companion {address}#subdirectory=companion"
    assert (tmp_path / "arguments").read_text() == f"install --quiet {wanted}"


def test_while_the_address_is_unset_nothing_is_installed(tmp_path):
    """The notebook stops with a message that says what to do; pip is not started."""
    error = (
        "This book is not installed here: open the notebook in a folder of a clone of the book, or run "
        "`pip install -e ./companion -e .` in a clone.\n"
    )
    assert first_cell(tmp_path, then="print('below')", cell=UNSET) == (1, "", error)
    assert not (tmp_path / "arguments").exists()


def test_packages_that_pip_installed_are_imported_at_once(tmp_path):
    """In the same kernel."""
    pip = f"[Path(name).symlink_to(Path({str(ROOT)!r}) / at) for name, at in {PACKAGES}.items()]"
    assert first_cell(tmp_path, then="import chapters; print(chapters.__name__)", pip=pip) == (0, "chapters\n", "")


PLACES = "import chapters, companion, lib; print(*(module.__file__ for module in (chapters, companion, lib)))"


def small_clone(root):
    """Make a folder like a clone of this book, with empty packages; return it and what PLACES prints in it."""
    for part in PARTS:
        (root / part).parent.mkdir(parents=True, exist_ok=True)
        (root / part).touch()
    return root, " ".join(str(root / part) for part in PARTS[2:]) + "\n"


@EITHER
@pytest.mark.parametrize("folder", ["book", ".", "notes/drafts"])
@pytest.mark.parametrize("installed", [False, True], ids=["only here", "also elsewhere"])
def test_in_a_clone_its_own_packages_are_used(tmp_path, cell, installed, folder):
    """In any of its folders, even if another copy is installed; there is no pip. A second run adds no path."""
    root, places = small_clone(tmp_path / "clone")
    copies = [small_clone(tmp_path / "other")[0]] if installed else []
    then = f"before = len(sys.path)\n{cell}\nassert len(sys.path) == before\n{PLACES}"
    assert first_cell(root / folder, *copies, then=then, cell=cell) == (0, places, "")
    assert not (root / folder / "arguments").exists()


@pytest.mark.parametrize("missing", PARTS)
def test_a_folder_without_all_parts_is_not_a_clone(tmp_path, missing):
    """Its packages are not imported."""
    (root, _), (other, places) = small_clone(tmp_path / "clone"), small_clone(tmp_path / "other")
    (root / missing).unlink()
    assert first_cell(root / "book", other, then=PLACES, cell=UNSET)[1] == places
    assert first_cell(root / "book", cell=UNSET)[2].startswith("This book is not installed here")
