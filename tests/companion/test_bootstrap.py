"""The first cell of every notebook, as a reader meets it: in a folder of its own, beside what else may lie there."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from companion.authoring import bootstrap
from companion.io.errors import UserError
from companion.project import repository
from companion.project.paths import Project

ROOT = Path(__file__).resolve().parents[2]
CELL = "".join(repository.bootstrap_cell(Project(ROOT))["source"])
PACKAGES = ["chapters", "companion", "lib"]

# Stands where pip does: says what it was asked, then fails, or leaves an empty package.
PIP = """\
import sys
from pathlib import Path
print("no route to host", file=sys.stderr)
Path("asked").write_text(" ".join(sys.argv[1:]))
{then}
"""


def first_cell(folder, *places, then="", cell=CELL):
    """What comes of the cell in `folder`, where Python finds packages there, then in `places`."""
    command = [sys.executable, "-S", "-c", f"{cell}\n{then}"]
    # without site-packages, so that what is installed there is not found
    environment = {"PYTHONPATH": ":".join(map(str, places)), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)


@pytest.fixture
def pip(tmp_path):
    """Lets a stand-in for pip end with some line."""

    def stand_in(then):
        (tmp_path / "pip").mkdir()
        (tmp_path / "pip/__init__.py").touch()
        (tmp_path / "pip/__main__.py").write_text(PIP.format(then=then))
        return tmp_path

    return stand_in


def test_nothing_happens_where_the_book_is_installed(tmp_path):
    """Nothing is said, nothing is left; a folder that is no package hides nothing."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "chapters").mkdir()
    finished = first_cell(tmp_path, ROOT)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chapters", "lib"]


def test_where_pip_fails_the_notebook_stops_with_its_words(pip):
    """In a sentence, without a traceback; nothing below would have run."""
    folder = pip("sys.exit(1)")
    finished = first_cell(folder, then="print('below')")
    assert finished.returncode == 1
    assert finished.stdout == ""
    assert finished.stderr == (
        "pip could not install this book, and nothing below can run. It says:\nno route to host\n\n"
    )
    assert (folder / "asked").read_text().startswith("install --quiet large-prompt-attention[notebook] @ git+")


def test_a_folder_that_is_no_package_does_not_pass_for_the_book(pip):
    """`chapters/` beside the notebook, and nothing installed: pip is asked."""
    folder = pip("sys.exit(1)")
    (folder / "chapters").mkdir()
    assert first_cell(folder).stderr.startswith("pip could not install")


def test_what_pip_installed_is_used_at_once(pip):
    """The cells below import it, in the same kernel."""
    folder = pip(f"[Path(name).symlink_to(Path({str(ROOT)!r}) / name) for name in {PACKAGES}]")
    finished = first_cell(folder, then="import chapters; print(missing, chapters.__name__)")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "True chapters\n", "")


@pytest.mark.parametrize("name", ["lib/__init__.py", "chapters/__init__.py", "lib.py", "chapters.py"])
def test_what_hides_a_package_is_named(tmp_path, name):
    """Whatever lies beside the notebook under the name of one of the book's packages."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    finished = first_cell(tmp_path, ROOT)
    assert finished.returncode == 1
    hidden = name.split("/")[0].removesuffix(".py")
    assert f"Beside this notebook, `{hidden}` hides what its book has installed: rename it." in finished.stderr


@pytest.mark.parametrize("name", ["companion/__init__.py", "companion.py"])
def test_another_companion_is_not_taken_for_it(tmp_path, name):
    """Nor does the traceback of an import say so."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    finished = first_cell(tmp_path, ROOT)
    assert finished.returncode == 1
    assert finished.stderr.startswith("`companion` cannot be used: No module named 'companion.authoring")
    assert "beside the notebook, rename it" in finished.stderr


def test_half_of_a_book_is_told(tmp_path):
    """Chapters and machine are there, the library is not."""
    for name in ("chapters", "companion"):
        (tmp_path / name).symlink_to(ROOT / name)
    assert "The package `lib` is not installed" in first_cell(tmp_path).stderr


def test_a_notebook_shows_the_sentence_alone():
    """Jupyter asks an error how it wants to be shown."""
    assert UserError("Restart the kernel.")._render_traceback_() == ["Restart the kernel."]


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel that has loaded a book of one module, `shelf.page`, which needs numpy."""
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf/__init__.py").touch()
    page = tmp_path / "shelf/page.py"
    page.write_text("words = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(bootstrap, "_files", {})
    monkeypatch.setattr(bootstrap, "_versions", {})
    monkeypatch.setattr(bootstrap.metadata, "requires", lambda _: ['numpy>=2; extra == "notebook"', "not-there"])
    importlib.invalidate_caches()
    importlib.import_module("shelf.page")
    return page


def look_around(**options):
    bootstrap.look_around(["shelf"], "a-book", **options)


def test_a_kernel_that_loaded_what_is_there_may_go_on(kernel):
    look_around()
    look_around(just_installed=True)


def test_files_replaced_under_a_live_kernel_are_told(kernel):
    """Until it is restarted, or has the old file back; a file that was not loaded may change."""
    other = kernel.with_name("other.py")
    other.write_text("words = 1\n")
    look_around()
    other.write_text("words = 2\n")
    look_around()
    kernel.write_text("words = 2\n")
    for _ in range(2):
        with pytest.raises(UserError, match=r"replaced since: shelf\.page\. Restart the kernel"):
            look_around()
    kernel.write_text("words = 1\n")
    look_around()


def test_versions_replaced_under_a_live_kernel_are_told(kernel, monkeypatch):
    """Installed by the first cell itself, or by hand after it."""
    monkeypatch.setitem(sys.modules, "numpy", SimpleNamespace(__version__="1.0"))
    monkeypatch.setattr(bootstrap.metadata, "version", {"numpy": "2.0"}.__getitem__)
    monkeypatch.setattr(bootstrap.metadata, "PackageNotFoundError", KeyError)
    for just_installed in (True, False):
        with pytest.raises(UserError, match=r"replaced since: numpy 1\.0 \(now 2\.0\)\. Restart the kernel"):
            look_around(just_installed=just_installed)


def test_versions_are_those_that_the_kernel_began_with(kernel, monkeypatch):
    """What a package says of itself need not be what it was installed as."""
    monkeypatch.setitem(sys.modules, "numpy", SimpleNamespace(__version__="of a checkout"))
    monkeypatch.setattr(bootstrap.metadata, "PackageNotFoundError", KeyError)
    monkeypatch.setattr(bootstrap.metadata, "version", {"numpy": "2.0"}.__getitem__)
    look_around()
    monkeypatch.setattr(bootstrap.metadata, "version", {"numpy": "3.0"}.__getitem__)
    with pytest.raises(UserError, match=r"numpy 2\.0 \(now 3\.0\)"):
        look_around()
