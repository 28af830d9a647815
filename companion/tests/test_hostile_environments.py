"""Causes from outside a book, each with a command and its sentence: damaged files, other tools, settings, folders."""

import codecs
import getpass
import json
import os
import pwd
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest

from companion.cli import terminal
from companion.project import provenance
from companion.project.paths import Project
from small_books import commit_all

RECORD, CODE, NOTEBOOK = "figures/toy/toy_error.json", "clone/toy/figures/toy_error.py", "book/toy.ipynb"
BUILT = "_build/laptop/figures/toy/toy_error.json"
INJECTED = ("# Parameters\nseed = 5\n", ["injected-parameters"])


def content(path, content, clone):
    """Write the content of the file that matches `path`."""
    (file,) = clone.root.glob(path)
    file.write_bytes(content)


def mark(path, clone, mark=codecs.BOM_UTF8):
    """Write a byte-order mark, as editors on Windows do, before a file."""
    content(path, mark + (clone.root / path).read_bytes(), clone)


def in_a_fresh_clone(change, clone):
    shutil.rmtree(clone.project.generated)
    change(clone)


def no_folder(replace, clone):
    shutil.rmtree(clone.project.generated)
    replace(clone.project.generated)


LOCKS = ("book/.#toy.ipynb", "book/.#index.md", "profiles/.#smoke.yml", "clone/toy/.#parameters.py")
LOCKS += ("clone/toy/figures/.#toy_error.py", "clone/.#__init__.py", "figures/toy/.#toy_error.json")
# as macOS leaves on file systems of other systems
OTHERS = ("book/._toy.ipynb", "book/._index.md", "profiles/._full.yml", "figures/toy/._toy_error.json")
OTHERS += ("book/.ipynb_checkpoints/toy-checkpoint.ipynb", "figures/.ipynb_checkpoints/toy_error-checkpoint.json")
OTHERS += ("clone/toy/data/.ipynb_checkpoints/table-checkpoint.csv",)


def hidden_files(clone):
    for name in (*LOCKS, *OTHERS):
        (clone.root / name).parent.mkdir(parents=True, exist_ok=True)
    for name in LOCKS:  # Emacs marks an unsaved file with a link to nothing
        (clone.root / name).symlink_to("someone@desk.1234:1700000000")
    for name in OTHERS:
        (clone.root / name).write_bytes(b"\x00\x05\x16\x07\xff")


def stray_notebooks(clone):
    empty = {"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    clone.write("book/Untitled.ipynb", json.dumps(empty))
    clone.write("book/Untitled1.ipynb", "")
    shutil.copyfile(clone.project.notebook("toy"), clone.project.notebook("toy-Copy1"))


GARBAGE = {"no UTF-8": b"\xff\xfe\xfa", "a list": b"[1]", "cut off": b'{"files": {'}
# A file that has one of these contents, a command, its exit code and words of its output.
DAMAGED = {
    "stamp": (partial(content, "_build/laptop/keys/numbers/toy.*.json"), "list", 0, "stale"),
    "built record": (partial(content, BUILT), "list", 0, "redraw"),
    "published record": (partial(content, RECORD), "redraw toy_error", 0, "replaced"),
    "published record in a fresh clone": (
        lambda text, clone: in_a_fresh_clone(partial(content, RECORD, text), clone),
        *("redraw toy_error", 2, f"{RECORD} is not the record of a figure. Restore it, or run its notebook"),
    ),
}
# A file, its content, and words of the error of `build`.
WRITTEN_BY_USERS = {
    "tabs": ("_toc.yml", b"format: jb-book\n\troot: book/index\n", "_toc.yml, line 2: not YAML"),
    "no UTF-8": ("_toc.yml", b"\xff", "_toc.yml is not UTF-8, from byte 0 on"),
    "tabs in the configuration": ("_config.yml", b"title: a\n\tb: c\n", "_config.yml, line 2: not YAML"),
    "profile, no UTF-8": ("profiles/smoke.yml", b"\xff", "smoke.yml is not UTF-8"),
    "notebook, a list": (NOTEBOOK, b"[]", "toy.ipynb is not a notebook"),
    "notebook, no UTF-8": (NOTEBOOK, b"\xff", "toy.ipynb is not a notebook"),
    "notebook, cut off": (NOTEBOOK, b'{"cells": [{"cell_type": "code"}]}', "toy.ipynb is not a notebook"),
}
LOCK = "requirements.lock, which pins what the numbers depend on"
# Cause, command, exit code and words of the output. Files that can be made again are; files that users wrote are named.
CAUSES = {
    **{
        f"{name}, {kind}": (partial(change, text), *rest)
        for name, (change, *rest) in DAMAGED.items()
        for kind, text in GARBAGE.items()
    },
    **{
        name: (partial(content, path, text), "build", 2, words)
        for name, (path, text, words) in WRITTEN_BY_USERS.items()
    },
    "no lock": (lambda clone: clone.project.lock.unlink(), "build", 2, LOCK),
    "mark before a source": (partial(mark, CODE), "list", 0, "fresh"),
    "mark before parameters": (partial(mark, "clone/toy/parameters.py"), "run toy --isolated", 0, "1 claim holds"),
    "encoding": (partial(mark, CODE, mark=b"# \xe9\n"), "list", 2, "does not have the encoding that it declares"),
    "parameters of another run": (
        *(lambda clone: clone.add_cells(INJECTED), "run toy", 2),
        "toy.ipynb has a cell tagged `injected-parameters`",
    ),
    "a link to nothing": (
        *(partial(no_folder, lambda folder: folder.symlink_to("/a/disk/that/is/not/mounted")), "build", 2),
        "Commands write to `_build`",
    ),
    "a file in place of _build": (partial(no_folder, lambda folder: folder.touch()), "run toy", 2, "Not a directory"),
    "hidden files, run": (hidden_files, "run toy -p seed=1", 0, "1 claim holds"),
    "hidden files, site": (hidden_files, "site --published", 0, "the site: "),
    "stray notebooks": (stray_notebooks, "list", 0, "Ignored: book/toy-Copy1.ipynb is not in the table of contents"),
    "stray notebooks, build": (stray_notebooks, "build --dry-run", 0, "Ignored: book/Untitled.ipynb"),
    "stray notebooks, run": (stray_notebooks, "run toy-Copy1", 2, "Add `- file: book/toy-Copy1` to _toc.yml"),
}


@pytest.mark.parametrize("cause", CAUSES.values(), ids=CAUSES)
def test_a_cause_is_repaired_or_named(ran_clone, ran, cause):
    """After a success the published figures are those before the damage; after an error none has changed."""
    change, command, code, words = cause
    change(ran_clone)
    damaged = ran_clone.tree("figures")
    finished = ran_clone.companion(*command.split())
    output = " ".join((finished.stdout + finished.stderr).split())
    assert finished.returncode == code, output
    assert words in output
    assert "Traceback" not in output
    own = {path: digest for path, digest in ran_clone.tree("figures").items() if "/." not in path}
    assert own == (ran.tree("figures") if code == 0 else damaged)


ROWS = {
    "- file: book/toy": ["toy"],
    "- file: book/toy.ipynb": ["toy"],
    '- {file: "book/toy", title: Toy}': ["toy"],
    "- file: book/toy-Copy1\n      - file: book/toy": ["toy-Copy1", "toy"],
    "# - file: book/toy\n      - file: book/claims": [],
}


@pytest.mark.parametrize(("row", "notebooks"), ROWS.items())
def test_notebooks_are_those_of_the_table_of_contents(clone, row, notebooks):
    """In its order; a row that is a comment does not count."""
    stray_notebooks(clone)
    clone.replace("_toc.yml", "- file: book/toy", row)
    assert clone.project.notebooks() == notebooks


# --- folders of any name ----------------------------------------------------------------------------------

# It would create a file if a shell executed it.
FOLDER = "{x} $HOME; 'touch' executed; & \"touch\" executed `touch executed` $(touch executed)"


def test_a_book_in_a_folder_of_any_name_is_built(ran, tmp_path):
    """Snakemake redraws the stale picture, Sphinx writes the site, and nothing executes a part of the name.

    Neither a profile of Snakemake, which a user of a cluster has and which runs nothing here, nor the backend of
    matplotlib in another environment governs the build. Warnings that the user made errors stop no site.
    """
    clone = ran.copy_to(tmp_path / "books" / FOLDER / "clone")
    clone.succeed("run", "toy", "-p", "seed=5")
    clone.replace(CODE, "Points are means", "Points are averages")
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile/config.yaml").write_text("dry-run: true\n", encoding="utf-8")
    clone.environment |= {"SNAKEMAKE_PROFILE": str(tmp_path / "profile"), "MPLBACKEND": "module://backend_elsewhere"}
    output = clone.succeed("build", "--target", "figures")
    assert "toy/toy_error redrawn; replaced" in output
    clone.environment["PYTHONWARNINGS"] = "error"
    clone.succeed("site")
    assert [path for path in tmp_path.rglob("executed*") if path.is_file()] == []
    assert [path.name for path in (tmp_path / "books").iterdir()] == [FOLDER]


# --- settings of a user -----------------------------------------------------------------------------------

RC = "text.usetex: True\nlines.linewidth: 9\naxes.linewidth: 4\nsavefig.transparent: True\n"
KERNEL = {"argv": ["false"], "display_name": "Another Python", "language": "python"}
PACKAGES = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
ANOTHER = "raise RuntimeError('the package of another project')\n"
SCRATCH = f"scratch-of-a-job-{'0' * 90}"
# Files in a folder of the user, and variables, in which {} is this folder.
FILES = {
    **{"matplotlibrc": RC, "kernels/python3/kernel.json": json.dumps(KERNEL), "clone/__init__.py": ""},
    **{f"{SCRATCH}/a": "", f".venv/{PACKAGES}/numpy/__init__.py": ANOTHER},
}
VARIABLES = {
    **{"MATPLOTLIBRC": "{}/matplotlibrc", "JUPYTER_PATH": "{}", "PYTHONSAFEPATH": "1", "PYTHONPATH": "{}"},
    **{"TMPDIR": f"{{}}/{SCRATCH}", "VIRTUAL_ENV": "{}/.venv", "MPLBACKEND": "module://backend_elsewhere"},
    **{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},  # a terminal that shows ASCII only
}


def test_a_run_gives_the_same_bytes(ran, tmp_path):
    """Numbers and pictures are computed again, because nothing of the first run is there."""
    clone = ran.copy_to(tmp_path / "clone")
    for folder in (clone.project.published, clone.project.root / "_build"):
        shutil.rmtree(folder)
    for name, text in FILES.items():
        path = tmp_path / "user" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for name, value in VARIABLES.items():
        more = [clone.environment["PYTHONPATH"]] if name == "PYTHONPATH" else []
        clone.environment[name] = os.pathsep.join([value.format(tmp_path / "user"), *more])
    output = clone.succeed("run", "toy")
    assert "toy: 1 figure" in output
    assert "Warning" not in output
    assert clone.tree("figures/toy") == ran.tree("figures/toy")


VARIABLE = [
    ({"PYTHONIOENCODING": "ascii"}, "run toi\N{LATIN SMALL LETTER E WITH DIAERESIS}", 2, r"notebook 'toi\xeb'"),
    ({"PYTHONIOENCODING": "latin-1"}, "run toy --parameters", 0, r"(a whole number, \u2265 2)"),
]


@pytest.mark.parametrize(("variables", "command", "code", "words"), VARIABLE)
def test_a_variable_of_a_user_stops_no_command_or_is_named(ran_clone, variables, command, code, words):
    ran_clone.environment |= variables
    finished = ran_clone.companion(*command.split())
    assert finished.returncode == code, finished.stderr
    assert words in finished.stdout + finished.stderr


def test_the_commit_is_that_of_the_book_whatever_the_user_set(clone, tmp_path, monkeypatch):
    """Not that of a repository above, and not that of another repository whose hook runs the command."""
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    (tmp_path / "gitconfig").write_text("[status]\n\tshowUntrackedFiles = no\n", encoding="utf-8")
    commit_all(tmp_path)
    assert provenance.commit_of(clone.root) is None
    commit = commit_all(clone.root)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    assert provenance.commit_of(clone.root) == {"commit": commit, "modified": False}
    clone.write("book/new.md", "# New\n")
    assert provenance.commit_of(clone.root) == {"commit": commit, "modified": True}
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # as in a container
    assert provenance.commit_of(clone.root) is None


def test_own_packages_are_imported_from_a_folder_behind_a_link(clone, tmp_path):
    (tmp_path / "link").symlink_to(clone.root)
    assert Project(tmp_path / "link").import_module("clone.toy.parameters").Parameters


def test_a_user_without_a_home_folder_can_run_notebooks(clone, monkeypatch):
    """For example a user of a container that has no name: neither HOME nor the list of users names a folder."""
    monkeypatch.chdir(clone.root)
    for name in ("HOME", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "")  # so that the variable is as before when the test ends
        monkeypatch.delenv(name)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: {}[f"uid not found: {number}"])
    terminal.make_home()
    assert Path.home() == clone.project.cache / "home"
    assert Path.home().is_dir()
    assert getpass.getuser() == f"user-{os.getuid()}"
