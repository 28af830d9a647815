"""`companion build --dry-run`: what would run and why, and nothing is written."""

import shutil

import pytest

from companion.build import cache_keys, plan

FIGURE, NOTEBOOK = "clone/toy/figures/toy_error.py", "book/toy.ipynb"


def planned(clone, *, site=False):
    """What would be done to each thing, and why."""
    return {(step.verb, step.what): step.why for step in plan.plan(clone.project, "laptop", site=site)}


def test_nothing_is_planned_where_all_is_fresh(ran_clone):
    """And the site only if it is asked for."""
    assert planned(ran_clone) == {}
    assert planned(ran_clone, site=True) == {("build", "the site"): ["it was not built yet"]}


def test_what_was_never_built_is_run(clone):
    """Its pictures come with it."""
    assert planned(clone) == {("run", "toy"): ["it was not built yet"]}


def test_every_part_that_decides_something_has_words(clone):
    """Or a change of it would be told by a traceback."""
    parts = {part for content in cache_keys.all_made_of(clone.project, "laptop").values() for part in content}
    assert parts <= plan.WORDS.keys() | plan.NAMED.keys()


def test_snakemake_called_by_hand_is_asked_for_the_whole_book(clone):
    """As on a cluster: without a target it would find nothing to do."""
    planned = clone.python("-m", "snakemake", "--config", "tasks=1", "--dry-run", "--cores", "1", "--nolock")
    assert planned.returncode == 0, planned.stderr
    assert {"rule notebook_toy:", "rule book:"} <= set((planned.stdout + planned.stderr).splitlines())


EDITS = {
    "parameter": ((NOTEBOOK, "repeats = 500", "repeats = 501"), "run", "parameter repeats (500 → 501)"),
    "cells": ((NOTEBOOK, "p.lengths, p.repeats", "p.lengths[:2], p.repeats"), "run", "code in its cells"),
    "sources": ((FIGURE, "these.mean()", "these.max()"), "run", "code of clone/toy/figures/toy_error.py"),
    "lock": (("requirements.lock", "# Pin", "numpy==2.4\n# Pin"), "run", "version of numpy"),
    "caption": ((FIGURE, "Points are means", "Points are averages"), "draw", "its `draw`, its caption or the style"),
}


@pytest.mark.parametrize(("edit", "verb", "why"), EDITS.values(), ids=EDITS)
def test_what_changed_is_named(ran_clone, edit, verb, why):
    """And is forgotten when it is undone."""
    path, old, new = edit
    ran_clone.replace(path, old, new)
    what = "toy" if verb == "run" else "toy/toy_error"
    assert planned(ran_clone) == {(verb, what): [why]}
    ran_clone.replace(path, new, old)
    assert planned(ran_clone) == {}


def test_all_that_changed_is_named(ran_clone):
    """Data that came, a context that was chosen; long values are not spelled out."""
    ran_clone.write("clone/toy/data/long.csv", "x\n1\n")
    ran_clone.replace("pyproject.toml", "# context = ", "context = ")
    ran_clone.write("clone/__init__.py", "def prepare(): ...\n")
    ran_clone.replace(NOTEBOOK, "lengths = [10,", "lengths = [5, 6, 7, 8, 9, 10,")
    ((step, why),) = planned(ran_clone).items()
    assert step == ("run", "toy")
    assert set(why) == {"parameter lengths", "data: long.csv", "the context that all is computed in"}


def test_altered_results_are_named(ran_clone):
    """They are what is wrong, though nothing was edited."""
    (ran_clone.project.build("laptop").tables / "toy/toy_error.csv").unlink()
    why = ["_build/laptop/tables/toy/toy_error.csv was altered or removed"]
    assert planned(ran_clone) == {("run", "toy"): why}


def test_altered_published_figure_is_put_back(ran_clone):
    """Without a kernel, as a build does it."""
    (ran_clone.project.published / "toy/toy_error.png").write_bytes(b"another")
    why = ["toy_error there is not what was built"]
    assert planned(ran_clone) == {("put back", "figures/toy"): why}


def test_where_nobody_noted_what_it_was_made_of_no_more_is_said(ran_clone):
    """As after a build by an older version."""
    shutil.rmtree(ran_clone.project.build("laptop").stamps / "made_of")
    ran_clone.replace(NOTEBOOK, "repeats = 500", "repeats = 501")
    assert planned(ran_clone) == {("run", "toy"): ["what it is made of changed"]}


def test_results_that_were_discarded_are_made_again(ran_clone):
    """A run that was killed while it replaced them leaves no stamp."""
    cache_keys.forget(ran_clone.project.build("laptop"), "toy")
    assert planned(ran_clone) == {("run", "toy"): ["its last results are gone"]}


def test_the_site_is_built_for_pages_and_for_figures(ran_clone):
    """Which, is said."""
    project = ran_clone.project
    content = cache_keys.made_of(project, cache_keys.BOOK, "laptop")
    cache_keys.leave_stamp(project, cache_keys.stamp(project, cache_keys.BOOK, "laptop"), [], content)
    assert planned(ran_clone, site=True) == {}
    ran_clone.replace("book/index.md", "Every figure", "Each figure")
    assert planned(ran_clone, site=True) == {("build", "the site"): ["pages: book/index.md"]}
    ran_clone.replace(NOTEBOOK, "repeats = 500", "repeats = 501")
    why = planned(ran_clone, site=True)["build", "the site"]
    assert why == ["numbers of toy", "pictures: toy-toy_error", "pages: book/index.md, book/toy.ipynb"]


def test_many_names_are_cut_short():
    """Three, and how many more."""
    assert plan._some(list("abcde")) == "a, b, c and 2 more"
    assert plan._some(list("abc")) == "a, b, c"


@pytest.mark.parametrize("arguments", [(), ("--target", "figures"), ("--tasks",)])
def test_dry_run_writes_nothing(ran_clone, arguments):
    """It says what would run, why, and how long that took last time."""
    ran_clone.replace(NOTEBOOK, "repeats = 500", "repeats = 501")
    before = ran_clone.tree()
    finished = ran_clone.companion("build", "--dry-run", *arguments)
    assert finished.returncode == 0, finished.stderr
    first, *others = finished.stdout.splitlines()
    assert first == "▸ run toy: parameter repeats (500 → 501)"
    assert others[-1].startswith("The notebooks to run took about ")
    assert any("the site" in line for line in others) is ("figures" not in arguments)
    assert ran_clone.tree() == before


def test_dry_run_checks_as_a_build_does(ran_clone):
    """A value that is not allowed is refused before anything is planned."""
    ran_clone.replace(NOTEBOOK, "repeats = 500", "repeats = -1")
    finished = ran_clone.companion("build", "--dry-run")
    assert finished.returncode == 2
    assert "repeats" in finished.stderr


def test_dry_run_says_how_many_tasks_come_first(split_clone):
    """Those that are not there."""
    said = split_clone.companion("build", "--dry-run", "--tasks", "--target", "figures").stdout
    assert "first: 3 of its 3 tasks" in said
