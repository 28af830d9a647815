"""A clone may be in a folder of any name: special characters of shells, globs and format strings have no effect."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from companion.analysis.dependencies import MACHINE
from companion.project.paths import SOURCES, Project

# each name would create a file if a shell executed it, or fail if it were parsed
NAMES = {
    "space": "random walks",
    "single quote": "author's",
    "double quote": 'the "new" one',
    "ampersand": "a & touch executed",
    "semicolon": "a; touch executed; b",
    "dollar": "$HOME $PATH",
    "brace": "{notebook} {x",
    "backtick": "`touch executed`",
    "substitution": "$(touch executed)",
    "square bracket": "[red] [0-9]",
}


# One folder has all names in which no quote can end the quoting of another.
QUOTES = {name: NAMES[name] for name in ("single quote", "double quote")}
FOLDERS = {**QUOTES, "no quote": " ".join(name for name in NAMES.values() if name not in QUOTES.values())}


@pytest.mark.parametrize("name", FOLDERS.values(), ids=FOLDERS)
def test_clone_in_a_folder_of_any_name_is_built(ran, tmp_path, name):
    """Snakemake redraws the stale picture and executes no part of the name."""
    (tmp_path / name).mkdir()
    clone = ran.copy_to(tmp_path / name / "clone")
    before = {path.name for path in clone.root.iterdir()}
    clone.replace("clone/toy/figures/toy_error.py", "Points are means", "Points are averages")
    finished = clone.companion("build", "--target", "figures")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "toy/toy_error redrawn; replaced" in finished.stdout
    assert {path.name for path in clone.root.iterdir()} - {".snakemake"} == before
    assert [path.name for path in tmp_path.rglob("executed*") if path.is_file()] == []
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_environment_companion_and_book_work_in_a_folder_of_any_name(pristine, tmp_path):
    """The folder name combines all names; the build runs a kernel and Sphinx."""
    folder = tmp_path / " ".join([*NAMES.values(), "> executed | tee executed * 100 %s"])
    clone = pristine.copy_to(folder / "clone")
    sources = clone.root / SOURCES
    shutil.copytree(MACHINE, sources / "companion", ignore=shutil.ignore_patterns("__pycache__"))
    clone.replace("_config.yml", "exclude_patterns: [", 'exclude_patterns: ["companion/**", ')
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    python = folder / "venv/bin/python"
    (packages,) = (folder / "venv/lib").glob("*/site-packages")
    (packages / "locked.pth").write_text(f"{sources}\n{sysconfig.get_path('purelib')}\n")
    finished = subprocess.run(
        [python, "-m", "companion", "build"],
        cwd=clone.root,
        env=clone.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert (clone.project.site("laptop") / "book/toy.html").is_file()
    assert [path for path in tmp_path.rglob("executed*") if path.is_file()] == []


def test_square_brackets_are_shown_as_they_are(ran, tmp_path):
    """The console does not parse the folder's name as markup."""
    clone = ran.copy_to(tmp_path / "[red] [0-9]")
    output = clone.companion("run", "toy", "-p", "seed=1", "--open").stdout
    (folder,) = clone.project.runs.iterdir()
    assert f"s. {folder}/figures/toy\n" in output
    assert f"compared with the published figures: {folder}/index.html\n" in output
    assert f"  {folder}/index.html\n" in clone.companion("list", "--runs").stdout


def test_folder_name_that_is_not_utf8_is_refused_with_a_message(tmp_path, pristine):
    """Records, pages and notebooks must be UTF-8."""
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/na\xefve"))
    shutil.copytree(pristine.root, root)
    clone = type(pristine)(root)
    for command in (["list"], ["build"], ["run", "toy"]):
        finished = clone.companion(*command)
        assert finished.returncode == 2
        assert r"na\udcefve" in finished.stderr
        assert "must be UTF-8, because records, notebooks and pages are UTF-8. Rename it." in " ".join(
            finished.stderr.split()
        )
        assert "Traceback" not in finished.stderr


def test_folder_name_with_accents_is_accepted(tmp_path, pristine, monkeypatch):
    """Non-ASCII UTF-8 is valid."""
    clone = pristine.copy_to(tmp_path / "naïve")
    monkeypatch.chdir(clone.root)
    assert Project.here().root == clone.root
