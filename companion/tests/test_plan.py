"""`companion build --dry-run`: the steps of a build with their reasons; nothing is written."""

import shutil

import pytest

from companion.build import cache_keys, plan
from companion.build.run_spec import Target

FIGURE, NOTEBOOK = "clone/toy/figures/toy_error.py", "book/toy.ipynb"


def planned(clone, *, site=False):
    """Return the reasons of each step."""
    return {(step.verb, step.what): step.why for step in plan.plan(clone.project, "laptop", site=site)}


def test_a_fresh_notebook_is_not_planned_and_a_new_one_is_run(ran_clone):
    """The site is a step only on request; a run draws its pictures, which are no extra steps."""
    assert planned(ran_clone) == {}
    assert planned(ran_clone, site=True) == {("build", "the site"): ["it was not built yet"]}
    shutil.rmtree(ran_clone.project.generated)
    assert planned(ran_clone) == {("run", "toy"): ["it was not built yet"]}


def test_every_part_of_a_key_has_words(clone):
    """Otherwise a change of it would end in a traceback."""
    parts = {part for content in cache_keys.all_made_of(clone.project, "laptop").values() for part in content}
    assert parts <= plan.WORDS.keys() | plan.NAMED.keys()


def test_snakemake_builds_the_whole_book_by_default(clone):
    """On a cluster it is called without a target."""
    planned = clone.python("-m", "snakemake", "--config", "tasks=1", "--dry-run", "--cores", "1", "--nolock")
    assert planned.returncode == 0, planned.stderr
    assert {"rule notebook_toy:", "rule book:"} <= set((planned.stdout + planned.stderr).splitlines())


def much(clone):
    clone.write("clone/toy/data/long.csv", "x\n1\n")
    clone.replace("pyproject.toml", "# context = ", "context = ")
    clone.write("clone/__init__.py", "def prepare(): ...\n")
    clone.replace(NOTEBOOK, "lengths = [10,", "lengths = [5, 6, 7, 8, 9, 10,")


def older_version(clone):
    """It may not have stored the last sources."""
    shutil.rmtree(clone.project.build("laptop").made_of)
    clone.replace(NOTEBOOK, "repeats = 500", "repeats = 501")


def edited(path, old, new):
    return lambda clone: clone.replace(path, old, new)


RUN, DRAW, TABLE = ("run", "toy"), ("draw", "toy/toy_error"), "_build/laptop/tables/toy/toy_error.csv"
# A change, the only step of the next build, and its reasons; long values are left out.
CHANGES = {
    "parameter": (edited(NOTEBOOK, "repeats = 500", "repeats = 501"), RUN, ["parameter repeats (500 → 501)"]),
    "cells": (edited(NOTEBOOK, "p.lengths, p.repeats", "p.lengths[:2], p.repeats"), RUN, ["code in its cells"]),
    "sources": (edited(FIGURE, "values.mean()", "values.max()"), RUN, [f"code of {FIGURE}"]),
    "lock": (edited("requirements.lock", "# Pin", "numpy==2.4\n# Pin"), RUN, ["version of numpy"]),
    "caption": (edited(FIGURE, "Points are", "They are"), DRAW, ["its `draw`, its caption or the style"]),
    "much": (much, RUN, ["parameter lengths", "the context of the computation", "data: long.csv"]),
    "results": (lambda clone: (clone.root / TABLE).unlink(), RUN, [f"{TABLE} was altered or removed"]),
    "published": (
        lambda clone: (clone.project.published / "toy/toy_error.png").write_bytes(b"another"),
        *(("put back", "figures/toy"), ["toy_error differs from what was built"]),
    ),
    "older version": (older_version, RUN, ["its sources changed"]),
    "killed": (
        lambda clone: cache_keys.forget(clone.project.build("laptop"), Target("toy")),
        *(RUN, ["its last results are gone"]),
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
    first, *lines = ran_clone.succeed("build", "--dry-run", *arguments).splitlines()
    assert first == "▸ run toy: parameter repeats (500 → 501)"
    assert lines[-1].startswith("1 notebook to run: about ")
    assert any("the site" in line for line in lines) is ("figures" not in arguments)
    assert ran_clone.tree() == before
