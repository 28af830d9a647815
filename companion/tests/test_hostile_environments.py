"""Causes from outside a book, each with a command and its sentence: damaged files, other tools, settings, folders."""

import codecs
import errno
import json
import os
import shutil
import subprocess
import sys
import unicodedata
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from companion import cli
from companion.build import cache_keys
from companion.build.run_spec import Target
from companion.io import atomic
from companion.io.errors import UserError
from companion.project import provenance
from companion.project.paths import Project
from small_books import Clone

GARBAGE = {"no UTF-8": b"\xff\xfe\xfa", "a list": b"[1]", "cut off": b'{"files": {'}
RECORD, CODE, NOTEBOOK = "figures/toy/toy_error.json", "clone/toy/figures/toy_error.py", "book/toy.ipynb"
BUILT, ORIGIN = "_build/laptop/figures/toy/toy_error.json", "_build/provenance/laptop/toy.json"
INJECTED = {
    **{"cell_type": "code", "execution_count": None, "id": "injected", "outputs": []},
    **{"metadata": {"tags": ["injected-parameters"]}, "source": ["# Parameters\n", "seed = 5\n"]},
}


def content(path, content, clone):
    """Write the content of a file."""
    (clone.root / path).write_bytes(content)


def mark(path, clone, mark=codecs.BOM_UTF8):
    """Write a byte-order mark, as editors on Windows do, before a file."""
    content(path, mark + (clone.root / path).read_bytes(), clone)


def in_a_fresh_clone(change, clone):
    shutil.rmtree(clone.project.generated)
    change(clone)


def in_notebook(change):
    return lambda clone: clone.edit_notebook(change)


def stamp(content, clone):
    cache_keys.stamps(clone.project, "laptop")[Target("toy")].write_bytes(content)


def half_a_character(clone):
    clone.replace(NOTEBOOK, "# setup", "# setup \\ud83d")


def separate_accents(clone):
    """Rename a notebook as macOS does: it looks like the name in the table of contents."""
    composed = "notes_\N{LATIN SMALL LETTER E WITH ACUTE}"
    shutil.copyfile(clone.project.notebook("toy"), clone.project.notebook(unicodedata.normalize("NFD", composed)))
    clone.replace("_toc.yml", "- file: book/toy", f"- file: book/toy\n      - file: book/{composed}")


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


NO_RECORD = f"{RECORD} is not the record of a figure. Restore it, or run its notebook"
YAML = {
    "tabs": ("_toc.yml", b"format: jb-book\n\troot: book/index\n", "_toc.yml, line 2: not YAML"),
    "no UTF-8": ("_toc.yml", b"\xff", "_toc.yml is not UTF-8, from byte 0 on"),
    "a list": ("_toc.yml", b"[1]", "_toc.yml must be a mapping"),
    "tabs in the configuration": ("_config.yml", b"title: a\n\tb: c\n", "_config.yml, line 2: not YAML"),
    "profile, a list": ("profiles/smoke.yml", b"- toy\n", "must map notebooks to overrides"),
    "profile, a number": ("profiles/smoke.yml", b"1: {seed: 1}\n", "notebook or parameter must be text. Got 1"),
    "profile, a parameter": ("profiles/smoke.yml", b"toy: {2: 1}\n", "notebook or parameter must be text. Got 2"),
    "profile, no UTF-8": ("profiles/smoke.yml", b"\xff", "smoke.yml is not UTF-8"),
    "notebook, a list": (NOTEBOOK, b"[]", "toy.ipynb is not a notebook"),
    "notebook, no UTF-8": (NOTEBOOK, b"\xff", "toy.ipynb is not a notebook"),
    "notebook, cut off": (NOTEBOOK, b'{"cells": [{"cell_type": "code"}]}', "toy.ipynb is not a notebook"),
}
# Cause, command, exit code and words of the output. Files that can be made again are; files that users wrote are named.
CAUSES = {
    **{f"stamp, {name}": (partial(stamp, text), "list", 0, "stale") for name, text in GARBAGE.items()},
    **{f"built record, {name}": (partial(content, BUILT, text), "list", 0, "redraw") for name, text in GARBAGE.items()},
    **{f"origin, {name}": (partial(content, ORIGIN, text), "list", 0, "—") for name, text in GARBAGE.items()},
    "origin, in part": (partial(content, ORIGIN, b'{"seconds": 1}'), "list", 0, "—"),
    **{
        f"published record, {text}": (partial(content, RECORD, text), "redraw toy_error", 0, "replaced")
        for text in GARBAGE.values()
    },
    **{
        f"published record in a fresh clone, {name}": (
            *(partial(in_a_fresh_clone, partial(content, RECORD, text)), "redraw toy_error", 2, NO_RECORD),
        )
        for name, text in GARBAGE.items()
    },
    **{name: (partial(content, path, text), "build", 2, words) for name, (path, text, words) in YAML.items()},
    "no lock": (lambda clone: (clone.root / "requirements.lock").unlink(), "build", 2, "requirements.lock"),
    "mark before a source": (partial(mark, CODE), "list", 0, "fresh"),
    "mark before parameters": (partial(mark, "clone/toy/parameters.py"), "run toy --isolated", 0, "1 claim holds"),
    "encoding": (partial(mark, CODE, mark=b"# \xe9\n"), "list", 2, "does not have the encoding that it declares"),
    "parameters of another run": (
        *(in_notebook(lambda notebook: notebook["cells"].insert(3, INJECTED)), "run toy", 2),
        "toy.ipynb has a cell tagged `injected-parameters`",
    ),
    **{
        f"metadata {value}": (
            in_notebook(lambda notebook, value=value: notebook["cells"][3].update(metadata=value)),
            *("list", 2, "The metadata of cell 4 of"),
        )
        for value in (None, {"tags": "hide-parameters"})
    },
    **{
        f"no {part}": (in_notebook(lambda notebook, part=part: notebook["cells"][2].pop(part)), "list", 2, part)
        for part in ("cell_type", "metadata", "source")
    },
    "later format": (in_notebook(lambda notebook: notebook.update(nbformat=5)), "list", 2, "has format 5 of notebooks"),
    "format 3": (
        *(partial(content, NOTEBOOK, b'{"worksheets": [], "metadata": {}, "nbformat": 3}'), "list", 2),
        "has the format of notebooks before 2015 (nbformat 3). Open it in JupyterLab",
    ),
    "mark before a notebook": (partial(mark, NOTEBOOK), "list", 2, "begins with a byte-order mark"),
    "half a character": (half_a_character, "list", 2, "is not a notebook: UnicodeEncodeError"),
    "accents": (separate_accents, "list", 0, r"has other Unicode characters than its row in _toc.yml"),
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


def test_a_stray_notebook_does_not_make_the_site_stale(clone):
    before = cache_keys.stamps(clone.project, "laptop")
    stray_notebooks(clone)
    assert cache_keys.stamps(clone.project, "laptop") == before


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
    stray_notebooks(clone)
    clone.replace("_toc.yml", "- file: book/toy", row)
    assert clone.project.notebooks() == notebooks


def test_a_refused_write_is_an_error_with_the_reason(clone, monkeypatch):
    """For example on a read-only file system."""
    monkeypatch.chdir(clone.root)

    def refuse(path, *_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(atomic, "write_bytes", refuse)
    finished = CliRunner().invoke(cli.app, ["run", "toy", "--isolated"])
    assert finished.exit_code == 2, finished.exception
    assert f"{os.strerror(errno.EROFS)}: '" in finished.stderr.replace("\n", " ")


# --- folders of any name ----------------------------------------------------------------------------------

# It would create a file if a shell executed it.
FOLDER = "$HOME; 'touch' executed; & \"touch\" executed `touch executed` $(touch executed)"


def test_a_book_in_a_folder_of_any_name_is_built(ran, tmp_path):
    """Snakemake redraws the stale picture, Sphinx writes the site, and nothing executes a part of the name.

    Neither a profile of Snakemake, which a user of a cluster has and which runs nothing here, nor the backend of
    matplotlib in another environment governs the build.
    """
    clone = ran.copy_to(tmp_path / "books" / FOLDER / "clone")
    clone.replace(CODE, "Points are means", "Points are averages")
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile/config.yaml").write_text("dry-run: true\n", encoding="utf-8")
    clone.environment |= {"SNAKEMAKE_PROFILE": str(tmp_path / "profile"), "MPLBACKEND": "module://backend_elsewhere"}
    finished = clone.companion("build", "--target", "figures")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "toy/toy_error redrawn; replaced" in finished.stdout
    finished = Clone(clone.root).companion("site")
    assert finished.returncode == 0, finished.stderr
    assert [path for path in tmp_path.rglob("executed*") if path.is_file()] == []
    assert [path.name for path in (tmp_path / "books").iterdir()] == [FOLDER]


def test_a_folder_name_that_is_not_utf8_is_refused_with_a_message(tmp_path, pristine, monkeypatch):
    """Records, pages and notebooks must be UTF-8; other characters of UTF-8 are accepted."""
    clone = pristine.copy_to(Path(os.fsdecode(os.fsencode(tmp_path) + b"/na\xefve")))
    finished = clone.companion("list")
    assert finished.returncode == 2
    assert r"na\udcefve" in finished.stderr
    assert "must be UTF-8, because records, notebooks and pages are UTF-8." in " ".join(finished.stderr.split())
    clone = pristine.copy_to(tmp_path / "naïve")
    monkeypatch.chdir(clone.root)
    assert Project.here().root == clone.root


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
    **{"TMPDIR": f"{{}}/{SCRATCH}", "VIRTUAL_ENV": "{}/.venv"},
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
    finished = clone.companion("run", "toy")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "ok toy: 1 figure" in finished.stdout
    assert "Warning" not in finished.stdout
    assert clone.tree("figures/toy") == ran.tree("figures/toy")


@pytest.mark.parametrize(
    ("variables", "command", "code", "words"),
    [
        ({"PYTHONIOENCODING": "ascii"}, "run toi\N{LATIN SMALL LETTER E WITH DIAERESIS}", 2, r"notebook 'toi\xeb'"),
        ({"PYTHONIOENCODING": "latin-1"}, "run toy --parameters", 0, "(a whole number, >= 2)"),
        ({"PYTHONWARNINGS": "error"}, "site --published", 0, "the site: "),
    ],
)
def test_a_variable_of_a_user_stops_no_command_or_is_named(ran_clone, variables, command, code, words):
    ran_clone.environment |= variables
    finished = ran_clone.companion(*command.split())
    assert finished.returncode == code, finished.stderr
    assert words in finished.stdout + finished.stderr


def git(folder, *arguments):
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    finished = subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return finished.stdout.strip()


def test_the_commit_is_that_of_the_book_whatever_the_user_set(clone, tmp_path, monkeypatch):
    """Not that of a repository above, and not that of another repository whose hook runs the command."""
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    (tmp_path / "gitconfig").write_text("[status]\n\tshowUntrackedFiles = no\n", encoding="utf-8")
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "Start"]):
        git(tmp_path, *command)
    assert provenance.commit_of(clone.root) is None
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Start"]):
        git(clone.root, *command)
    commit = git(clone.root, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    assert provenance.commit_of(clone.root) == {"commit": commit, "modified": False}
    clone.write("book/new.md", "# New\n")
    assert provenance.commit_of(clone.root) == {"commit": commit, "modified": True}
    assert provenance.git_fault(clone.root) == []
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")  # as in a container
    assert provenance.commit_of(clone.root) is None
    (sentence,) = provenance.git_fault(clone.root)
    assert sentence.startswith("Git does not read this repository, so no commit is recorded: fatal: detected dubious")


@pytest.mark.parametrize("module", ["clone", "clone.toy.parameters"])
def test_another_package_that_was_imported_is_named(clone, tmp_path, monkeypatch, module):
    """The error names its file and PYTHONPATH, and asks for no class."""
    other = tmp_path / "other"
    (other / "clone").mkdir(parents=True)
    (other / "clone/__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(other))
    monkeypatch.syspath_prepend(other)
    __import__("clone")
    with pytest.raises(UserError) as caught:
        clone.project.import_module(module)
    assert str(other / "clone/__init__.py") in str(caught.value)
    assert f"PYTHONPATH is {other}" in str(caught.value)


def test_own_packages_are_imported_from_a_folder_behind_a_link(clone, tmp_path):
    (tmp_path / "link").symlink_to(clone.root)
    assert Project(tmp_path / "link").import_module("clone.toy.parameters").Parameters
