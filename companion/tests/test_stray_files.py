"""Files that editors and file systems leave next to the sources of a book: no command stops."""

import json
import shutil

import pytest

from companion.analysis import api_index
from companion.authoring import datasets
from companion.build import cache_keys
from companion.figures import store
from companion.io.errors import UserError
from companion.project.theorem_blocks import boxes

LOCKS = ("book/.#toy.ipynb", "book/.#index.md", "profiles/.#smoke.yml", "clone/toy/.#parameters.py")
LOCKS += ("clone/toy/figures/.#toy_error.py", "clone/.#__init__.py", "figures/toy/.#toy_error.json")
# as macOS leaves on file systems of other systems
ATTRIBUTES = ("book/._toy.ipynb", "book/._index.md", "profiles/._full.yml", "figures/toy/._toy_error.json")
CHECKPOINTS = ("book/.ipynb_checkpoints/toy-checkpoint.ipynb", "figures/.ipynb_checkpoints/toy_error-checkpoint.json")
CHECKPOINTS += ("clone/toy/data/.ipynb_checkpoints/table-checkpoint.csv",)
UNTITLED = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def leave_hidden_files(clone):
    for name in (*LOCKS, *ATTRIBUTES, *CHECKPOINTS):
        (clone.root / name).parent.mkdir(parents=True, exist_ok=True)
    for name in LOCKS:  # Emacs marks an unsaved file with a link to nothing
        (clone.root / name).symlink_to("someone@desk.1234:1700000000")
    for name in (*ATTRIBUTES, *CHECKPOINTS):
        (clone.root / name).write_bytes(b"\x00\x05\x16\x07\xff")


def leave_notebooks(clone):
    clone.write("book/Untitled.ipynb", json.dumps(UNTITLED))
    clone.write("book/Untitled1.ipynb", "")
    shutil.copyfile(clone.project.notebook("toy"), clone.project.notebook("toy-Copy1"))


@pytest.mark.parametrize("leave", [leave_hidden_files, leave_notebooks])
def test_stray_files_stop_no_command(ran_clone, leave):
    leave(ran_clone)
    assert ran_clone.project.notebooks() == ["toy"]
    assert ran_clone.project.profile_names() == ["laptop", "full", "smoke"]
    for command in ("list", "build --dry-run", "run toy -p seed=1", "compare figures figures", "set-url --unset"):
        finished = ran_clone.companion(*command.split())
        assert finished.returncode == 0, finished.stdout + finished.stderr
        reported = [line for line in finished.stderr.splitlines() if line.startswith("Ignored:")]
        wanted = leave is leave_notebooks and command in ("list", "build --dry-run")
        assert len(reported) == (3 if wanted else 0), finished.stderr


def test_site_of_a_book_with_stray_files_is_built(ran_clone):
    leave_hidden_files(ran_clone)
    leave_notebooks(ran_clone)
    finished = ran_clone.companion("site", "--published")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert finished.stderr.count("Ignored:") == 3
    names = [path.name for path in ran_clone.project.site("laptop").rglob("*")]
    assert not [name for name in names if "Untitled" in name or "Copy1" in name or "toy_error-checkpoint" in name]


def test_hidden_files_are_no_figures_tables_modules_or_pages(ran_clone):
    leave_hidden_files(ran_clone)
    assert store.names_in(ran_clone.project.published / "toy") == ["toy_error"]
    assert datasets.faults(ran_clone.project.data("toy")) == []
    package = api_index.load(ran_clone.project, ["clone"])["clone"]
    modules = {module.path for module in api_index.public_modules(package)}
    assert modules == {"clone.toy.figures.toy_error", "clone.toy.parameters"}
    assert api_index.documented_modules(ran_clone.project) == {}
    assert boxes(ran_clone.project) is not None


def test_a_notebook_outside_the_table_of_contents_is_named_with_the_correction(clone, omissions):
    leave_notebooks(clone)
    message = r"'toy-Copy1'.*book/toy-Copy1\.ipynb is not in the table of contents.*`- file: book/toy-Copy1` to _toc"
    with pytest.raises(UserError, match=message):
        clone.project.require_notebook("toy-Copy1")
    with pytest.raises(UserError, match=r"'tooy'\. Did you mean 'toy'"):
        clone.project.require_notebook("tooy")
    assert len([sentence for sentence in omissions(clone.project) if "not in the table of contents" in sentence]) == 3
    clone.write("profiles/smoke.yml", "toy: {}\ntoy-Copy1:\n  seed: 1\n")
    finished = clone.companion("build", "--dry-run", "--profile", "smoke")
    assert finished.returncode == 0, finished.stderr


def test_a_stray_notebook_does_not_make_the_site_stale(clone):
    before = cache_keys.site_key(clone.project, "laptop")
    leave_notebooks(clone)
    assert cache_keys.site_key(clone.project, "laptop") == before


@pytest.mark.parametrize(
    ("row", "notebooks"),
    [
        ("- file: book/toy", ["toy"]),
        ("- file: book/toy.ipynb", ["toy"]),
        ('- {file: "book/toy", title: Toy}', ["toy"]),
        ("- glob: book/t*", ["toy", "toy-Copy1"]),
        ("- file: book/toy-Copy1\n      - file: book/toy", ["toy-Copy1", "toy"]),
        ("# - file: book/toy\n      - file: book/claims", []),
    ],
)
def test_notebooks_are_those_of_the_table_of_contents(clone, row, notebooks):
    """In its order; a row that is a comment does not count."""
    leave_notebooks(clone)
    clone.replace("_toc.yml", "- file: book/toy", row)
    assert clone.project.notebooks() == notebooks
