"""`companion new` creates a notebook, or a book of one notebook, named after its folder."""

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
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}).invoke(cli.app, arguments)


def added(output):
    """Return the files that the output of `companion new` lists."""
    return {line.split()[1] for line in output.splitlines() if line.startswith("+")}


def test_new_book_is_complete(tmp_path, omissions):
    """Hidden files too; the output lists the files and a command to run."""
    folder = tmp_path / "deep" / "random-walks"
    result = invoke("new", "--book", str(folder))
    assert result.exit_code == 0, result.output
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert written == added(result.output)
    assert {".gitignore", ".gitattributes", ".pre-commit-config.yaml", "Makefile", "requirements.lock"} <= written
    assert f"cd {folder} && companion run first_figure" in result.output
    assert omissions(Project(folder)) == []


def test_book_is_named_after_its_folder_and_its_configuration_is_valid(tmp_path):
    """No placeholder of a template is left, workflows keep the expressions of GitHub, and the author is the same."""
    folder = tmp_path / "Random walks"
    scaffold.create_book(folder)
    project, name = Project(folder), "random_walks"
    assert project.settings == Settings(chapters=name, science=(name,), report=("numpy", "matplotlib"))
    assert project.metadata["name"] == name
    assert (folder / "README.md").read_text().startswith("# Random walks\n")
    placeholders = re.compile(r"\$\{?(package|words|name|chapters|figure|dashes|imports)\b")
    assert [path for path in folder.rglob("*") if path.is_file() and placeholders.search(path.read_text())] == []
    workflows = {path.stem: read_yaml(path)["jobs"] for path in (folder / ".github/workflows").iterdir()}
    assert workflows["publish"]["deploy"]["environment"]["url"] == "${{ steps.deployment.outputs.page_url }}"
    assert workflows["ci"]["test"]["steps"][-1] == {"run": "make test"}
    author = {"name": "Its authors"}
    assert read_yaml(folder / "CITATION.cff")["authors"] == project.metadata["authors"] == [author]
    assert read_yaml(folder / "_config.yml")["author"] == author["name"]
    assert author["name"] in (folder / "LICENSE").read_text(encoding="utf-8")


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


FORMS = "Give either the name of a notebook, `companion new NAME`, or a folder, `companion new --book FOLDER`."
INVALID = ["Upper", "two words", "2nd", "dash-ed", "_hidden", "trailing_", "a__b", "../x", "é"]
# Names of a notebook, two pages and a keyword of Python.
IN_USE = ["toy", "references", "claims", "lambda"]
# Names of a module of Python, of installed packages, and of other folders of every book.
PACKAGES = ["statistics", "numpy", "pytest", *scaffold.RESERVED_FOLDERS]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], FORMS),
        (["walks", "--book", "folder"], FORMS),
        (["n" * 31], "at most 30 characters"),  # its lines would be too long
        *(([name], "in lower case, words joined by underscores") for name in [*INVALID, ""]),
        *(([name], repr(name)) for name in IN_USE),
        (["--book", "."], "is not empty. A book is created in a new or empty folder."),
        *((["--book", name], "in lower case, words joined by underscores") for name in ("2nd paper", "__", "class")),
        *((["--book", f"new/{name}"], "is the name of another folder of every") for name in PACKAGES),
    ],
)
def test_a_name_is_refused(clone, arguments, message):
    """The message has the rule; nothing is written."""
    before, finished = clone.tree(), clone.companion("new", *arguments)
    assert finished.returncode == 2, finished.stdout
    assert message in finished.stderr
    assert clone.tree() == before


def test_second_notebook_is_complete_and_listed_before_the_reference_pages(clone, omissions):
    """In the last part of the contents that is not the reference part; the output lists the files that changed."""
    before, output, after = clone.tree(), clone.succeed("new", "second_toy"), clone.tree()
    assert added(output) == {path for path in after if after[path] != before.get(path)}
    assert "companion run second_toy" in output
    assert omissions(clone.project) == []
    rows = re.findall(r"- file: (\S+)", (clone.root / "_toc.yml").read_text())
    assert rows == ["book/toy", "book/second_toy", "book/claims", "book/references"]
    assert clone.project.notebooks() == ["toy", "second_toy"]
