"""The repository is complete: every notebook has all its parts, and no part belongs to a deleted notebook.

The checks are the fixtures `omissions` and `unpublished` of conftest.py; here they are also tested on a clone.
"""

import re
import shutil
from pathlib import Path

import pytest

from companion.build import publication_policy
from companion.figures import store
from companion.project.notebooks import Notebook
from companion.project.paths import Project
from companion.project.theorem_blocks import boxes

ROOT = Path(__file__).resolve().parents[2]
PROJECT = Project(ROOT)
NOTEBOOKS = PROJECT.notebooks()
FIGURES = [(name, figure) for name in NOTEBOOKS for figure in Notebook.named(PROJECT, name).figures]


def test_no_part_of_a_notebook_is_missing(omissions):
    """No part without a notebook remains either."""
    assert omissions(PROJECT) == []


def test_every_figure_is_published(unpublished):
    """Each figure has four consistent files, and no other file is published."""
    assert unpublished(PROJECT) == []


@pytest.fixture(scope="module")
def sources():
    """The keys of the bibliography, and the labels of the boxes."""
    keys = re.findall(r"^@\w+\{(\w+),", (PROJECT.book / "references.bib").read_text(encoding="utf-8"), re.MULTILINE)
    assert keys
    return set(keys), {box.label for box in boxes(PROJECT)}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_published_claims_hold_could_fail_and_have_a_source(name, sources):
    """The source is a cited key of the bibliography, a box of the book, a measurement here, or a heuristic."""
    keys, labels = sources
    for record in store.records_in(PROJECT.published / name):
        for claim in record.claims:
            assert claim.holds, claim
            assert claim.catches_alternative, claim
            cited = re.findall(r"\[(\w+)(?:, [^\]]+)?\]", claim.source)
            assert cited or claim.source in ("derived here", "measured here", "heuristic"), claim
            assert set(cited) <= keys, claim
            assert claim.box or claim.source != "derived here" or not record.figure, claim
            assert claim.box is None or claim.box in labels, claim


@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_figure_is_published_by_the_default_profile(name, figure):
    """Its parameters are those of the current notebook, its columns those of the CSV file, and its files are small."""
    record, paths = store.read_record(PROJECT.published / name, figure), store.files(PROJECT.published / name, figure)
    assert (record.profile, record.parameters) == ("laptop", Notebook.named(PROJECT, name).defaults)
    header = (PROJECT.published / name / f"{figure}.csv").read_text(encoding="utf-8").splitlines()[0]
    assert list(filter(None, header.split(","))) == list(record.columns)  # none in a schematic
    assert max(path.stat().st_size for path in paths) <= store.LARGEST


def test_claim_ids_are_unique():
    """Pages link to a claim by its id alone."""
    ids = [claim.id for claim in publication_policy.published_claims(PROJECT)]
    assert sorted(ids) == sorted(set(ids))


def test_figure_names_are_unique():
    """Pages and the command line share one namespace for figures."""
    figures = [figure for _, figure in FIGURES]
    assert sorted(figures) == sorted(set(figures))


def delete(clone, path):
    (clone.root / path).unlink()


def delete_notebook(clone):
    delete(clone, "book/toy.ipynb")


def setup_cell(addition):
    return lambda clone: clone.rewrite_cell("# setup", f"# setup\nfrom companion import begin\n{addition}\n")


def create(path, text="x"):
    return lambda clone: clone.write(path, text)


OLD = "clone/toy/figures/old.py"
FIGURE = "clone/toy/figures/toy_error.py"
OLD_FIGURE = '"""A caption.\n\nAlt: A line."""\n\n\ndef numbers(): ...\n\n\ndef draw(table): ...\n'

# name of the omission -> how to make it, and words that the message must contain
OMISSIONS = {
    "chapter": (
        lambda c: shutil.rmtree(c.root / "clone/toy"),
        ["needs a class `Parameters(", "clone/toy/parameters.py"],
    ),
    "init": (lambda c: delete(c, "clone/toy/__init__.py"), ["Write clone/toy/__init__.py"]),
    "figure": (lambda c: delete(c, FIGURE), ["Write clone/toy/figures/toy_error.py", "publishes it"]),
    "draw": (
        lambda c: c.replace(FIGURE, "def draw(", "def draw_of("),
        ["Write a function `draw` in clone/toy/figures/toy_error.py"],
    ),
    "alt": (lambda c: c.replace(FIGURE, "Alt: Log-log", "Log-log"), [FIGURE, "0 alt texts"]),
    "smoke": (lambda c: c.replace("profiles/smoke.yml", "toy:", "tou:"), ["entry `toy:` to profiles/smoke.yml"]),
    "contents": (lambda c: c.replace("_toc.yml", "      - file: book/toy\n", ""), ["`- file: book/toy` to _toc.yml"]),
    "default": (lambda c: c.replace("book/toy.ipynb", '"seed = 0\\n",', ""), ["same parameters", "['seed']"]),
    "picture": (lambda c: c.rewrite_cell("# means", "p\n"), ["publishes nothing", "`publish(FIGURE, …)`"]),
    "bootstrap": (lambda c: c.replace("book/toy.ipynb", "clones = ", "clones =  "), ["`companion set-url`"]),
    "stripped": (
        lambda c: c.edit_notebook(lambda notebook: notebook["cells"][-1].update(execution_count=7)),
        ["strip the outputs", "nbstripout book/toy.ipynb"],
    ),
    "notebook: def": (setup_cell("def f(x): return x"), ["move `f` to clone/toy/"]),
    "notebook: loop": (setup_cell("x = [seed for seed in (1, 2)]"), ["move the loop"]),
    "notebook: numpy": (setup_cell("import numpy as np"), ["`import numpy` belongs to clone/toy/"]),
    "notebook: chapter": (setup_cell("from clone.toys import x"), ["`from clone.toys import` belongs to clone/toy/"]),
    "notebook: path": (setup_cell("x = '/home/me/data.csv'"), ["'/home/me/data.csv' looks like a path"]),
    "notebook: open": (setup_cell("x = open('data.csv')"), ["neither opens files nor prints"]),
    # parts that remain of a deleted notebook
    "orphaned chapter": (delete_notebook, ["clone/toy/ has no notebook", "write book/toy.ipynb"]),
    "orphaned entry": (delete_notebook, ["profiles/smoke.yml has an entry `toy`"]),
    "orphaned row": (delete_notebook, ["_toc.yml has a row `book/toy`"]),
    "orphaned figure": (create(OLD, OLD_FIGURE), [f"does not publish `old` of {OLD}"]),
    "orphaned figures": (lambda c: (c.root / "figures/gone").mkdir(parents=True), ["figures/gone/", "no notebook"]),
}


@pytest.mark.parametrize("case", OMISSIONS)
def test_missing_or_superfluous_part_is_named(omissions, clone, case):
    """One sentence names the part, its file, and the correction."""
    damage, words = OMISSIONS[case]
    damage(clone)
    sentences = omissions(clone.project)
    assert [sentence for sentence in sentences if all(word in sentence for word in words)], sentences


UNPUBLISHED = {
    "missing": (lambda c: delete(c, "figures/toy/toy_error.png"), "toy_error.png is missing"),
    "left over": (create("figures/toy/toy_old.csv"), "figures/toy/toy_old: no longer published"),
    "older code": (lambda c: c.replace(FIGURE, "Points are means", "Points are averages"), "redraw toy/toy_error"),
}


@pytest.mark.parametrize("case", UNPUBLISHED)
def test_published_figure_that_is_not_that_of_its_notebook_is_named(unpublished, ran_clone, case):
    damage, words = UNPUBLISHED[case]
    damage(ran_clone)
    assert [sentence for sentence in unpublished(ran_clone.project) if words in sentence]
