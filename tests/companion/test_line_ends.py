"""A clone in which git converts line ends: published figures and data stay intact."""

import subprocess
from pathlib import Path

from companion.figures import store
from companion.project.paths import Project
from companion.site.notebook_pages import weave_published

ROOT = Path(__file__).resolve().parents[2]
AUTHOR = ("-c", "user.name=x", "-c", "user.email=x@x")


def git(folder, *arguments):
    return subprocess.check_output(["git", *arguments], cwd=folder, stderr=subprocess.PIPE, text=True).splitlines()


def commit(folder):
    git(folder, "init", "-q")
    git(folder, "-c", "core.autocrlf=false", "-c", "core.safecrlf=false", "add", "-A")
    git(folder, *AUTHOR, "commit", "-q", "-m", "x")


def clone_with_crlf(origin, folder):
    """Clone a repository as Git for Windows does by default."""
    git(folder.parent, "clone", "-q", "-c", "core.autocrlf=true", str(origin), str(folder))
    return folder


def test_a_clone_of_a_new_book_has_intact_figures_and_data_where_git_converts_line_ends(ran_clone, tmp_path):
    """A dataset keeps its own line ends, even CRLF."""
    ran_clone.write("clone/toy/data/table.csv", "a\n1\n")
    (ran_clone.root / "clone/toy/data/foreign.csv").write_bytes(b"a\r\n1\r\n")
    commit(ran_clone.root)
    clone = clone_with_crlf(ran_clone.root, tmp_path / "clone with crlf")
    for path in ran_clone.project.published.rglob("*.*"):
        assert (clone / path.relative_to(ran_clone.root)).read_bytes() == path.read_bytes()
    assert store.faults(clone / "figures/toy", "toy_error") == []
    assert (clone / "clone/toy/data/table.csv").read_bytes() == b"a\n1\n"
    assert (clone / "clone/toy/data/foreign.csv").read_bytes() == b"a\r\n1\r\n"
    assert b"\r" not in (clone / "Snakefile").read_bytes()
    assert weave_published(Project(clone), "toy").is_file()


def test_git_converts_no_file_of_this_repository():
    """Nothing is checked out with CRLF, and files with digests are never converted."""
    pinned = ["figures/a/b.svg", "figures/a/b.json", "chapters/a/data/b.csv", "chapters/a/data/c/b.csv"]
    others = ["Makefile", "book/a.ipynb", "chapters/a.py", ".ci/run"]
    for attribute, paths, value in (("text", pinned, "unset"), ("eol", others, "lf")):
        assert git(ROOT, "check-attr", attribute, "--", *paths) == [f"{path}: {attribute}: {value}" for path in paths]
