"""`companion new --book` creates a book of one notebook, named after its folder."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from companion import cli
from companion.cli import scaffold
from companion.io.errors import UserError
from companion.io.yaml import read_yaml
from companion.project.configuration import Settings
from companion.project.paths import Project

ANOTHER = Path(__file__).with_name("another_paper")
# pip without build isolation: call a function of the build backend of the book.
BUILD = "import importlib, sys; getattr(importlib.import_module(sys.argv[1]), sys.argv[2])(sys.argv[3])"
# Print the path of a package that is installed in a folder, and the name in its table.
IMPORT = """\
import importlib, site, sys
site.addsitedir(sys.argv[1])
package = importlib.import_module(sys.argv[2])
from companion.project.configuration import Settings
print(package.__file__, Settings.of_package(sys.argv[2]).chapters, sep="\\n")
"""


def invoke(*arguments):
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}).invoke(cli.app, list(arguments))


def test_new_book_is_complete(tmp_path, omissions):
    """The output lists the files and a command to run."""
    folder = tmp_path / "deep" / "random-walks"
    result = invoke("new", "--book", str(folder))
    assert result.exit_code == 0, result.output
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert written == {line.split()[1] for line in result.output.splitlines() if line.startswith("+")}
    assert {
        "_config.yml",
        "_toc.yml",
        "Snakefile",
        ".gitignore",
        ".gitattributes",
        "requirements.lock",
        "README.md",
        "LICENSE",
        "CITATION.cff",
        "Makefile",
        ".pre-commit-config.yaml",
        ".github/workflows/ci.yml",
        ".github/workflows/publish.yml",
        "tests/test_book.py",
    } <= written
    assert f"cd {folder} && companion run first_figure" in result.output
    assert omissions(Project(folder)) == []


def test_book_is_named_after_its_folder(tmp_path):
    """Its package, distribution and title have the name of the folder, and no placeholder of the template is left."""
    folder = tmp_path / "Random walks"
    scaffold.create_book(folder)
    assert Project(folder).settings == Settings(
        chapters="random_walks", science=("random_walks",), report=("numpy", "matplotlib")
    )
    assert Project(folder).metadata["name"] == "random_walks"
    assert (folder / "README.md").read_text().startswith("# Random walks\n")
    placeholders = re.compile(r"\$\{?(package|words|name|chapters|figure|dashes|imports)\b")
    assert [path for path in folder.rglob("*") if path.is_file() and placeholders.search(path.read_text())] == []


def test_configuration_files_of_a_new_book_are_valid(tmp_path):
    """The workflows keep the expressions of GitHub, and the author is the same everywhere."""
    scaffold.create_book(tmp_path / "walks")
    workflows = {path.stem: read_yaml(path) for path in (tmp_path / "walks/.github/workflows").iterdir()}
    assert workflows["publish"]["jobs"]["deploy"]["environment"]["url"] == "${{ steps.deployment.outputs.page_url }}"
    assert workflows["ci"]["jobs"]["test"]["steps"][-1] == {"run": "make test"}
    assert read_yaml(tmp_path / "walks/CITATION.cff")["authors"] == [{"name": "Its authors"}]
    assert read_yaml(tmp_path / "walks/_config.yml")["author"] == "Its authors"
    assert Project(tmp_path / "walks").metadata["authors"] == [{"name": "Its authors"}]
    assert "Its authors" in (tmp_path / "walks/LICENSE").read_text(encoding="utf-8")


def test_tests_of_a_new_book_pass(tmp_path):
    """They run its notebook at small sizes."""
    scaffold.create_book(tmp_path / "walks")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    finished = subprocess.run(command, cwd=tmp_path / "walks", check=False, capture_output=True, text=True)
    assert "1 passed" in finished.stdout, finished.stdout + finished.stderr


@pytest.mark.parametrize("kind", ["build_editable", "build_wheel"])
@pytest.mark.parametrize("created", [True, False], ids=["new book", "another paper"])
def test_book_can_be_installed(tmp_path, kind, created):
    """After `pip install -e .`, or from a wheel, a notebook in any folder imports it and finds its settings."""
    root = tmp_path / "random_walks"
    if created:
        scaffold.create_book(root)
    else:
        shutil.copytree(ANOTHER, root, ignore=shutil.ignore_patterns("_build", "figures", "__pycache__"))
    project = Project(root)
    backend = tomllib.loads((root / "pyproject.toml").read_text())["build-system"]["build-backend"]
    command = [sys.executable, "-c", BUILD, backend, kind, str(tmp_path)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    installed, elsewhere = tmp_path / "installed", tmp_path / "elsewhere"
    shutil.unpack_archive(wheel, installed, "zip")
    elsewhere.mkdir()
    chapters, home = project.settings.chapters, root if kind == "build_editable" else installed
    command = [sys.executable, "-c", IMPORT, str(installed), chapters]
    finished = subprocess.run(command, cwd=elsewhere, check=False, capture_output=True, text=True)
    assert finished.stdout.splitlines() == [str(home / chapters / "__init__.py"), chapters], finished.stderr
    if kind == "build_wheel":
        assert {path.parent.name for path in installed.glob("*/__init__.py")} == set(project.settings.science)


def test_folder_with_a_file_is_refused(tmp_path):
    """And left unchanged."""
    (tmp_path / "walks").mkdir()
    (tmp_path / "walks/notes.md").write_text("notes")
    result = invoke("new", "--book", str(tmp_path / "walks"))
    assert result.exit_code == 2
    assert "is not empty. A book is created in a new or empty folder" in result.output
    assert [path.name for path in (tmp_path / "walks").iterdir()] == ["notes.md"]


@pytest.mark.parametrize(
    "name",
    ["2nd paper", "class", "__", "book", "figures", "profiles", "tests", "companion", "statistics", "numpy", "pytest"],
)
def test_folder_with_an_invalid_package_name_is_refused(tmp_path, name):
    """So is one with the name of another folder of every book, of a module of Python or of an installed package."""
    with pytest.raises(UserError):
        scaffold.create_book(tmp_path / name)
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("arguments", [[], ["walks", "--book", "folder"]], ids=["neither", "both"])
def test_command_needs_either_a_notebook_or_a_book(tmp_path, monkeypatch, arguments):
    """The error shows both forms."""
    monkeypatch.chdir(tmp_path)
    result = invoke("new", *arguments)
    assert result.exit_code == 2
    assert "`companion new NAME`" in result.output
    assert "`companion new --book FOLDER`" in result.output
    assert list(tmp_path.iterdir()) == []


def test_second_notebook_is_listed_before_the_reference_pages(clone, monkeypatch):
    """In the last part of the contents that is not the reference part."""
    monkeypatch.chdir(clone.root)
    assert invoke("new", "second_toy").exit_code == 0
    rows = re.findall(r"- file: (\S+)", (clone.root / "_toc.yml").read_text())
    assert rows == ["book/toy", "book/second_toy", "book/claims", "book/references"]
    assert clone.project.notebooks() == ["toy", "second_toy"]
