"""Unreadable generated files are made again; unreadable source files are named in an error message."""

import os
import shutil

import pytest
from typer.testing import CliRunner

from companion.build import cache_keys
from companion.build.run_spec import Target
from companion.cli import app
from companion.figures import store
from companion.io import yaml
from companion.io.errors import UserError
from companion.project import provenance

RECORD = "figures/toy/toy_error.json"
GARBAGE = {"no UTF-8": b"\xff\xfe\xfa", "a list": b"[1]", "a number": b"1", "cut off": b'{"files": {', "empty": b""}


@pytest.fixture
def companion(ran_clone, monkeypatch):
    """Return a function that runs a command in the clone and returns its output in one line and its exit code."""
    monkeypatch.chdir(ran_clone.root)

    def run(*command):
        result = CliRunner().invoke(app, command)
        assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
        return " ".join(result.output.split()), result.exit_code

    return run


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_target_with_an_unreadable_stamp_is_stale(ran_clone, companion, content):
    """The next build removes the stamp."""
    stamps = cache_keys.stamps(ran_clone.project, "laptop")
    stamps[Target("toy")].write_bytes(content)
    output, code = companion("list")
    assert code == 0
    assert "stale" in output
    cache_keys.discard_damaged(ran_clone.project, "laptop")
    assert not stamps[Target("toy")].exists()
    assert stamps[Target("toy", "toy_error")].exists()


@pytest.mark.parametrize("content", [*GARBAGE.values(), b'{"files": 3, "claims": []}', b'{"files": {}}'])
def test_unreadable_published_record_is_published_again(ran_clone, companion, content):
    """A redrawing or a build replaces it."""
    before = ran_clone.tree("figures")
    (ran_clone.root / RECORD).write_bytes(content)
    assert store.faults(ran_clone.root / "figures/toy", "toy_error") == ["toy_error.json is not a record"]
    assert companion("list")[1] == 0
    output, code = companion("redraw", "toy/toy_error")
    assert code == 0, output
    assert ran_clone.tree("figures") == before


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_unreadable_published_record_in_a_fresh_clone_is_named(ran_clone, companion, content):
    """A fresh clone draws the published table, whose columns only the record describes."""
    shutil.rmtree(ran_clone.project.generated)
    (ran_clone.root / RECORD).write_bytes(content)
    output, code = companion("redraw", "toy/toy_error")
    assert code == 2
    assert f"{RECORD} is not the record of a figure. Restore it, or run its notebook" in output


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_figure_with_an_unreadable_built_record_is_to_be_redrawn(ran_clone, companion, content):
    """`companion list` reports the state `redraw`."""
    (ran_clone.project.build("laptop").figures / "toy/toy_error.json").write_bytes(content)
    output, code = companion("list")
    assert code == 0
    assert "redraw" in output


@pytest.mark.parametrize("content", [*GARBAGE.values(), b'{"seconds": 1}'])
def test_unreadable_provenance_is_ignored(ran_clone, companion, content):
    """The next run replaces it."""
    path = ran_clone.project.build("laptop").provenance / "toy.json"
    assert provenance.read(path)
    path.write_bytes(content)
    assert provenance.read(path) is None
    assert companion("list")[1] == 0


def test_one_build_replaces_all_unreadable_files(ran_clone):
    """Its results have the same bytes as before."""
    build, before = ran_clone.project.build("laptop"), ran_clone.tree("figures", "_build/laptop/figures")
    cache_keys.stamps(ran_clone.project, "laptop")[Target("toy")].write_bytes(b"\xff")
    (build.figures / "toy/toy_error.json").write_text("[]")
    (build.tables / "toy/toy_error.json").write_text("[]")
    (build.executed / "toy.ipynb").write_text("[]")
    (build.provenance / "toy.json").write_text("[]")
    shutil.rmtree(ran_clone.project.published / "toy")
    (ran_clone.project.published / "toy").symlink_to("nowhere")
    finished = ran_clone.companion("build", "--target", "figures")
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert ran_clone.tree("figures", "_build/laptop/figures") == before
    assert not (ran_clone.project.published / "toy").is_symlink()


BOMB = "a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
TRACKED = {
    "table of contents with tabs": ("_toc.yml", b"format: jb-book\n\troot: book/index\n", "_toc.yml, line 2: not YAML"),
    "table of contents, no UTF-8": ("_toc.yml", b"\xff", "_toc.yml is not UTF-8, from byte 0 on"),
    "table of contents, a list": ("_toc.yml", b"[1]", "_toc.yml must be a mapping"),
    "configuration with tabs": ("_config.yml", b"title: a\n\tb: c\n", "_config.yml, line 2: not YAML"),
    "profile, a list": ("profiles/smoke.yml", b"- toy\n", "must map notebooks to overrides"),
    "profile, a number as notebook": (
        "profiles/smoke.yml",
        b"1: {seed: 1}\n",
        "the name of a notebook or parameter must be text. Got 1",
    ),
    "profile, a number as parameter": (
        "profiles/smoke.yml",
        b"toy: {2: 1}\n",
        "the name of a notebook or parameter must be text. Got 2",
    ),
    "profile, no UTF-8": ("profiles/smoke.yml", b"\xff", "smoke.yml is not UTF-8"),
    "profile, nested aliases": ("profiles/smoke.yml", BOMB.encode(), "more than 100,000 values after its aliases"),
    "profile, an endless alias": ("profiles/smoke.yml", b"toy: &a {seed: *a}\n", "more than 100,000 values"),
    "notebook that is a list": ("book/toy.ipynb", b"[]", "toy.ipynb is not a notebook"),
    "notebook, no UTF-8": ("book/toy.ipynb", b"\xff", "toy.ipynb is not a notebook"),
    "notebook, cut off": ("book/toy.ipynb", b'{"cells": [{"cell_type": "code"}]}', "toy.ipynb is not a notebook"),
    "missing lock": ("requirements.lock", None, "There is no"),
}


@pytest.mark.parametrize(("path", "content", "words"), TRACKED.values(), ids=TRACKED)
def test_unreadable_source_file_is_named(ran_clone, companion, path, content, words):
    """Before anything runs, with exit code 2; the published figures stay."""
    before = ran_clone.tree("figures")
    if content is None:
        (ran_clone.root / path).unlink()
    else:
        (ran_clone.root / path).write_bytes(content)
    output, code = companion("build")
    assert code == 2
    assert words in output
    assert os.path.basename(path) in output
    assert ran_clone.tree("figures") == before


def test_nested_aliases_on_the_command_line_are_refused():
    """As in a profile; a few aliases are accepted."""
    with pytest.raises(UserError, match="more than 100,000 values"):
        yaml.parse_yaml(BOMB, "here")
    assert yaml.parse_yaml("{a: &x [1, 2], b: *x}", "here") == {"a": [1, 2], "b": [1, 2]}


def test_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match="cannot be read: No such file or directory"):
        yaml.read_yaml(tmp_path / "index.yml")
