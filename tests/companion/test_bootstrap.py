"""The first cell of every notebook, run in folders as readers have them."""

import importlib
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from companion.authoring import bootstrap
from companion.io.errors import UserError
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
        "This book is not installed here, and it has no public address yet to install it from. "
        "Open the notebook in a clone of the book, in the folder `book`, or run "
        "`pip install -e ./companion -e .` in a clone.\n"
    )
    assert not (folder / "arguments").exists()


def test_a_folder_without_a_package_is_not_taken_for_the_book(pip):
    """With an empty `chapters/` next to the notebook and nothing installed, pip is started."""
    folder = pip("sys.exit(1)")
    (folder / "chapters").mkdir()
    assert first_cell(folder).stderr.startswith("pip could not install")


def test_packages_that_pip_installed_are_imported_at_once(pip):
    """In the same kernel."""
    folder = pip(f"[Path(name).symlink_to(Path({str(ROOT)!r}) / at) for name, at in {PACKAGES}.items()]")
    finished = first_cell(folder, then="import chapters; print(missing, chapters.__name__)")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "True chapters\n", "")


@pytest.mark.parametrize("name", ["lib/__init__.py", "chapters/__init__.py", "lib.py", "chapters.py"])
def test_file_that_hides_a_package_is_named(tmp_path, name):
    """A module or package next to the notebook with the name of one of the book's packages."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    finished = first_cell(tmp_path, ROOT)
    assert finished.returncode == 1
    hidden = name.split("/")[0].removesuffix(".py")
    assert f"Next to this notebook, `{hidden}` hides an installed package of its book. Rename it." in finished.stderr


PLACES = "import chapters, companion, lib; print(*(module.__file__ for module in (chapters, companion, lib)))"


def small_clone(root):
    """Make a folder like a clone of this book, with empty packages except the one that the cell imports."""
    for name in ("chapters", "lib"):
        (root / name).mkdir(parents=True)
        (root / name / "__init__.py").touch()
    own = PACKAGES["companion"]
    shutil.copytree(ROOT / own, root / own, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("_config.yml", "pyproject.toml"):
        (root / name).touch()
    (root / "book").mkdir()
    return root


def places(root):
    return " ".join(str(root / folder / "__init__.py") for folder in PACKAGES.values()) + "\n"


@EITHER
@pytest.mark.parametrize("installed", [False, True], ids=["only here", "also elsewhere"])
def test_in_a_clone_its_own_packages_are_used(tmp_path, cell, installed):
    """Even if another copy is installed; there is no pip. A second run of the cell adds no path."""
    root = small_clone(tmp_path / "clone")
    copies = [small_clone(tmp_path / "other")] if installed else []
    then = f"before = len(sys.path)\n{cell}\nassert len(sys.path) == before\n{PLACES}"
    finished = first_cell(root / "book", *copies, then=then, cell=cell)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, places(root), "")


@EITHER
@pytest.mark.parametrize("name", ["lib.py", "chapters/__init__.py"])
def test_in_a_clone_no_file_next_to_the_notebook_hides_its_packages(tmp_path, cell, name):
    root = small_clone(tmp_path / "clone")
    (root / "book" / name).parent.mkdir(exist_ok=True)
    (root / "book" / name).touch()
    finished = first_cell(root / "book", then=PLACES, cell=cell)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, places(root), "")


@EITHER
def test_at_the_root_of_a_clone_nothing_changes(tmp_path, cell):
    """Kernels of the tool and of papermill start there, even if the folder of the clone is called `book`."""
    root, other = small_clone(tmp_path / "book"), small_clone(tmp_path / "other")
    then = f"assert {str(tmp_path)!r} not in sys.path\n{PLACES}"
    assert first_cell(root, root, other, then=then, cell=cell).stdout == places(root)


@pytest.mark.parametrize(
    "missing", ["_config.yml", "pyproject.toml", *(f"{folder}/__init__.py" for folder in PACKAGES.values())]
)
def test_a_folder_without_all_parts_is_not_a_clone(tmp_path, missing):
    """Its packages are not imported."""
    root, other = small_clone(tmp_path / "clone"), small_clone(tmp_path / "other")
    (root / missing).unlink()
    assert first_cell(root / "book", other, then=PLACES, cell=UNSET).stdout == places(other)
    assert first_cell(root / "book", cell=UNSET).stderr.startswith("This book is not installed here")


def test_only_the_folder_of_notebooks_uses_the_packages_of_its_clone(tmp_path):
    root, other = small_clone(tmp_path / "clone"), small_clone(tmp_path / "other")
    (root / "notes").mkdir()
    assert first_cell(root / "notes", other, then=PLACES, cell=UNSET).stdout == places(other)


@EITHER
@pytest.mark.parametrize("name", PACKAGES)
def test_a_kernel_that_loaded_another_copy_is_stopped(tmp_path, cell, name):
    """It would run the notebook of one copy with the code of another."""
    root, other = small_clone(tmp_path / "clone"), small_clone(tmp_path / "other")
    finished = first_cell(root / "book", other, cell=f"import {name}\n{cell}", then="print('below')")
    assert finished.returncode == 1
    assert finished.stdout == ""
    assert f"This kernel has loaded the package `{name}` in {other / PACKAGES[name]}, " in finished.stderr
    assert f"but this notebook needs the one in {root / PACKAGES[name]}. Restart the kernel" in finished.stderr


@pytest.mark.parametrize("name", ["companion/__init__.py", "companion.py"])
def test_another_package_called_companion_is_named(tmp_path, name):
    """Without the traceback of an import."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    finished = first_cell(tmp_path, ROOT)
    assert finished.returncode == 1
    assert finished.stderr.startswith("`companion` cannot be used: No module named 'companion.authoring")
    assert "next to the notebook? Rename it" in finished.stderr


def test_missing_package_of_a_book_is_named(tmp_path):
    """`chapters` and `companion` are installed, `lib` is not."""
    for name in ("chapters", "companion"):
        (tmp_path / name).symlink_to(ROOT / PACKAGES[name])
    assert "The package `lib` is not installed" in first_cell(tmp_path).stderr


def test_a_notebook_shows_a_user_error_without_traceback():
    """IPython calls a method of the exception."""
    assert UserError("Restart the kernel.")._render_traceback_() == ["Restart the kernel."]


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Import a book of one module, `shelf.page`, which needs numpy; return the path of the module."""
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf/__init__.py").touch()
    page = tmp_path / "shelf/page.py"
    page.write_text("words = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(bootstrap, "_files", {})
    monkeypatch.setattr(bootstrap, "_versions", {})
    monkeypatch.setattr(bootstrap.metadata, "requires", lambda _: ['numpy>=2; extra == "notebook"', "not-installed"])
    importlib.invalidate_caches()
    importlib.import_module("shelf.page")
    return page


def look_around(**options):
    bootstrap.look_around({"shelf": "shelf"}, "a-book", **options)


def test_an_unchanged_kernel_is_accepted(kernel):
    look_around()
    look_around(just_installed=True)


def test_replaced_file_that_the_kernel_has_loaded_is_named(kernel):
    """Until the old file is restored; other files may change."""
    unused = kernel.with_name("unused.py")
    unused.write_text("words = 1\n")
    look_around()
    unused.write_text("words = 2\n")
    look_around()
    kernel.write_text("words = 2\n")
    for _ in range(2):
        with pytest.raises(UserError, match=r"replaced afterwards: shelf\.page\. Restart the kernel"):
            look_around()
    kernel.write_text("words = 1\n")
    look_around()


def test_replaced_version_that_the_kernel_has_loaded_is_named(kernel, monkeypatch):
    """Whether the first cell or the user installed the new one."""
    monkeypatch.setitem(sys.modules, "numpy", SimpleNamespace(__version__="1.0"))
    monkeypatch.setattr(bootstrap.metadata, "version", {"numpy": "2.0"}.__getitem__)
    monkeypatch.setattr(bootstrap.metadata, "PackageNotFoundError", KeyError)
    for just_installed in (True, False):
        with pytest.raises(UserError, match=r"replaced afterwards: numpy 1\.0 \(now 2\.0\)\. Restart the kernel"):
            look_around(just_installed=just_installed)


def test_versions_are_those_of_the_metadata(kernel, monkeypatch):
    """`__version__` may differ from the installed version."""
    monkeypatch.setitem(sys.modules, "numpy", SimpleNamespace(__version__="checkout"))
    monkeypatch.setattr(bootstrap.metadata, "PackageNotFoundError", KeyError)
    monkeypatch.setattr(bootstrap.metadata, "version", {"numpy": "2.0"}.__getitem__)
    look_around()
    monkeypatch.setattr(bootstrap.metadata, "version", {"numpy": "3.0"}.__getitem__)
    with pytest.raises(UserError, match=r"numpy 2\.0 \(now 3\.0\)"):
        look_around()
