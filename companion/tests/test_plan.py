"""`companion build --dry-run`: the steps of a build with their reasons; nothing is written."""

import shutil

import pytest

from companion.build import cache_keys, plan
from companion.build.run_spec import Target

FIGURE, NOTEBOOK = "clone/toy/figures/toy_error.py", "book/toy.ipynb"


def planned(clone, *, site=False):
    """Return the reasons of each step."""
    return {(step.verb, step.what): step.why for step in plan.plan(clone.project, "laptop", site=site)}


def test_nothing_is_planned_if_all_is_fresh(ran_clone):
    """The site is a step only on request."""
    assert planned(ran_clone) == {}
    assert planned(ran_clone, site=True) == {("build", "the site"): ["it was not built yet"]}


def test_a_notebook_that_was_never_built_is_run(clone):
    """The run draws its pictures, which are no extra steps."""
    assert planned(clone) == {("run", "toy"): ["it was not built yet"]}


def test_every_part_of_a_key_has_words(clone):
    """Otherwise a change of it would end in a traceback."""
    parts = {part for content in cache_keys.all_made_of(clone.project, "laptop").values() for part in content}
    assert parts <= plan.WORDS.keys() | plan.NAMED.keys()


def test_snakemake_builds_the_whole_book_by_default(clone):
    """On a cluster it is called without a target."""
    planned = clone.python("-m", "snakemake", "--config", "tasks=1", "--dry-run", "--cores", "1", "--nolock")
    assert planned.returncode == 0, planned.stderr
    assert {"rule notebook_toy:", "rule book:"} <= set((planned.stdout + planned.stderr).splitlines())


EDITS = {
    "parameter": ((NOTEBOOK, "repeats = 500", "repeats = 501"), "run", "parameter repeats (500 → 501)"),
    "cells": ((NOTEBOOK, "p.lengths, p.repeats", "p.lengths[:2], p.repeats"), "run", "code in its cells"),
    "sources": ((FIGURE, "values.mean()", "values.max()"), "run", "code of clone/toy/figures/toy_error.py"),
    "lock": (("requirements.lock", "# Pin", "numpy==2.4\n# Pin"), "run", "version of numpy"),
    "caption": ((FIGURE, "Points are means", "Points are averages"), "draw", "its `draw`, its caption or the style"),
}


@pytest.mark.parametrize(("edit", "verb", "why"), EDITS.values(), ids=EDITS)
def test_what_changed_is_named(ran_clone, edit, verb, why):
    """If the edit is undone, nothing is planned."""
    path, old, new = edit
    ran_clone.replace(path, old, new)
    what = "toy" if verb == "run" else "toy/toy_error"
    assert planned(ran_clone) == {(verb, what): [why]}
    ran_clone.replace(path, new, old)
    assert planned(ran_clone) == {}


def much(clone):
    clone.write("clone/toy/data/long.csv", "x\n1\n")
    clone.replace("pyproject.toml", "# context = ", "context = ")
    clone.write("clone/__init__.py", "def prepare(): ...\n")
    clone.replace(NOTEBOOK, "lengths = [10,", "lengths = [5, 6, 7, 8, 9, 10,")


def older_version(clone):
    """It may not have stored the last sources."""
    shutil.rmtree(clone.project.build("laptop").made_of)
    clone.replace(NOTEBOOK, "repeats = 500", "repeats = 501")


TABLE = "_build/laptop/tables/toy/toy_error.csv"
# A change, the only step of the next build, and its reasons; long values are left out.
CHANGES = {
    "much": (much, ("run", "toy"), ["parameter lengths", "the context of the computation", "data: long.csv"]),
    "results": (lambda clone: (clone.root / TABLE).unlink(), ("run", "toy"), [f"{TABLE} was altered or removed"]),
    "published": (
        lambda clone: (clone.project.published / "toy/toy_error.png").write_bytes(b"another"),
        *(("put back", "figures/toy"), ["toy_error differs from what was built"]),
    ),
    "older version": (older_version, ("run", "toy"), ["its sources changed"]),
    "killed": (
        lambda clone: cache_keys.forget(clone.project.build("laptop"), Target("toy")),
        *(("run", "toy"), ["its last results are gone"]),
    ),
}


@pytest.mark.parametrize(("change", "step", "why"), CHANGES.values(), ids=CHANGES)
def test_all_that_changed_is_a_reason(ran_clone, change, step, why):
    change(ran_clone)
    ((planned_step, reasons),) = planned(ran_clone).items()
    assert (planned_step, sorted(reasons)) == (step, sorted(why))


def test_the_site_is_rebuilt_for_pages_and_figures(ran_clone):
    """The reason names them."""
    project = ran_clone.project
    content = cache_keys.made_of(project, cache_keys.Site.BUILT, "laptop")
    cache_keys.leave_stamp_of(project, cache_keys.Site.BUILT, "laptop", content, [])
    assert planned(ran_clone, site=True) == {}
    ran_clone.replace("book/index.md", "Every figure", "Each figure")
    assert planned(ran_clone, site=True) == {("build", "the site"): ["pages: book/index.md"]}
    ran_clone.replace(NOTEBOOK, "repeats = 500", "repeats = 501")
    why = planned(ran_clone, site=True)["build", "the site"]
    assert why == ["numbers of toy", "pictures: toy/toy_error", "pages: book/index.md, book/toy.ipynb"]


@pytest.mark.parametrize("arguments", [(), ("--target", "figures"), ("--tasks",)])
def test_a_dry_run_writes_nothing(ran_clone, arguments):
    """It prints the steps, the reasons and the last run time."""
    ran_clone.replace(NOTEBOOK, "repeats = 500", "repeats = 501")
    before = ran_clone.tree()
    finished = ran_clone.companion("build", "--dry-run", *arguments)
    assert finished.returncode == 0, finished.stderr
    first, *lines = finished.stdout.splitlines()
    assert first == "▸ run toy: parameter repeats (500 → 501)"
    assert lines[-1].startswith("1 notebook to run: about ")
    assert any("the site" in line for line in lines) is ("figures" not in arguments)
    assert ran_clone.tree() == before


def test_a_dry_run_checks_parameters(ran_clone):
    """A wrong value is refused before anything is planned."""
    ran_clone.replace(NOTEBOOK, "repeats = 500", "repeats = -1")
    finished = ran_clone.companion("build", "--dry-run")
    assert finished.returncode == 2
    assert "repeats" in finished.stderr
