"""The repository is complete: every notebook has all its parts, and no part belongs to a deleted notebook.

The checks are the fixtures `omissions` and `unpublished` of conftest.py; here they are also tested on a clone.
"""

import json
import re
import shutil
from pathlib import Path
from textwrap import dedent

import pytest

from companion.build import publication_policy
from companion.figures import store
from companion.project.notebooks import Notebook
from companion.project.parameters import parameters_of
from companion.project.paths import Project
from companion.site.sphinx.ledger import theorem_labels

ROOT = Path(__file__).resolve().parents[2]
PROJECT = Project(ROOT)
NOTEBOOKS = PROJECT.notebooks()
FIGURES = [(name, figure) for name in NOTEBOOKS for figure in Notebook.named(PROJECT, name).figures]

needs_figures = pytest.mark.skipif(
    not any(PROJECT.published.glob("*/")), reason="figures/ is empty: no figure was ever published (`make book`)"
)


def test_no_part_of_a_notebook_is_missing(omissions):
    """No part without a notebook remains either."""
    assert omissions(PROJECT) == []


@needs_figures
def test_every_figure_is_published(unpublished):
    """Each figure has five consistent files, and no other file is published."""
    assert unpublished(PROJECT) == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_names_in_the_code_are_importable(name):
    """The parameters and figures of the notebook can be imported from its chapter."""
    assert parameters_of(PROJECT, name).__module__ == f"chapters.{name}.parameters"
    for figure in Notebook.named(PROJECT, name).figures:
        module = PROJECT.import_module(PROJECT.figure_module(name, figure))
        assert callable(module.numbers)
        assert callable(module.draw)


@needs_figures
@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_published_claims_hold_and_could_fail(name, figure):
    """Each claim holds, and would fail for its alternative."""
    for claim in store.read_record(PROJECT.published / name, figure).claims:
        assert claim.holds, claim
        assert claim.catches_alternative, claim
        assert claim.alternative.theory.strip(), claim


@pytest.fixture(scope="module")
def sources():
    """The keys of the bibliography, and the labels of the boxes."""
    keys = re.findall(r"^@\w+\{(\w+),", (PROJECT.book / "references.bib").read_text(encoding="utf-8"), re.MULTILINE)
    assert keys
    return set(keys), theorem_labels(PROJECT)


@needs_figures
@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_published_claims_have_a_source(name, figure, sources):
    """The source is a cited key of the bibliography, a box of the book, a measurement here, or a heuristic."""
    keys, labels = sources
    for claim in store.read_record(PROJECT.published / name, figure).claims:
        cited = re.findall(r"\[(\w+)(?:, [^\]]+)?\]", claim.source)
        assert cited or claim.source in ("derived here", "measured here", "heuristic"), claim
        assert set(cited) <= keys, claim
        assert claim.box or claim.source != "derived here", claim
        assert claim.box is None or claim.box in labels, claim


@needs_figures
@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_published_figure_has_caption_and_alt(name, figure):
    """Neither is empty, and the alt text does not repeat the caption."""
    record = store.read_record(PROJECT.published / name, figure)
    assert record.caption.strip()
    assert len(record.alt.split()) >= 8, "an alt text describes the picture"
    assert record.alt != record.caption


@needs_figures
@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_published_files_are_small(name, figure):
    """Each file has at most 300 kB."""
    sizes = {s: (PROJECT.published / name / f"{figure}{s}").stat().st_size for s in store.SUFFIXES}
    assert max(sizes.values()) <= 300_000, sizes


@needs_figures
@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_figure_is_published_by_the_default_profile(name, figure):
    """Its parameters are those of the current notebook, and its columns those of the CSV file."""
    record = store.read_record(PROJECT.published / name, figure)
    assert record.profile == "laptop"
    assert record.parameters == Notebook.named(PROJECT, name).defaults
    header = (PROJECT.published / name / f"{figure}.csv").read_text(encoding="utf-8").splitlines()[0]
    assert list(filter(None, header.split(","))) == list(record.columns)  # none in a schematic


def test_claim_ids_are_unique():
    """Pages link to a claim by its id alone."""
    ids = [claim.id for claim in publication_policy.published_claims(PROJECT)]
    assert sorted(ids) == sorted(set(ids))


def test_figure_names_are_unique():
    """Pages and the command line share one namespace for figures."""
    figures = [figure for _, figure in FIGURES]
    assert sorted(figures) == sorted(set(figures))


def remove_line(clone, path, line):
    clone.replace(path, line, "")


def delete(clone, path):
    (clone.root / path).unlink()


def set_execution_count(clone):
    path = clone.project.notebook("toy")
    notebook = json.loads(path.read_text())
    notebook["cells"][-1]["execution_count"] = 7
    path.write_text(json.dumps(notebook))


def delete_notebook(clone):
    delete(clone, "book/toy.ipynb")


def setup_cell(addition):
    return lambda clone: clone.rewrite_cell("# setup", f"# setup\nfrom companion import begin\n{addition}\n")


def create(path, text="x"):
    return lambda clone: clone.write(path, text)


OLD = "clone/toy/figures/old.py"
FIGURE = "clone/toy/figures/toy_error.py"
OLD_FIGURE = dedent("""
    \"\"\"A caption.

    Alt: A line.\"\"\"
    def numbers(): ...
    def draw(table): ...
""")

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
    "contents": (lambda c: remove_line(c, "_toc.yml", "      - file: book/toy\n"), ["`- file: book/toy` to _toc.yml"]),
    "default": (lambda c: remove_line(c, "book/toy.ipynb", '"seed = 0\\n",'), ["same parameters", "['seed']"]),
    "picture": (lambda c: c.rewrite_cell("# means", "p\n"), ["publishes nothing", "`publish(FIGURE, …)`"]),
    "bootstrap": (lambda c: c.replace("book/toy.ipynb", "clones = ", "clones =  "), ["`companion set-url`"]),
    "stripped": (set_execution_count, ["strip the outputs", "nbstripout book/toy.ipynb"]),
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


@pytest.mark.parametrize(
    "text",
    [
        "from companion import begin\nfrom clone.toy.figures import toy_error, runs",
        "from clone.toy.parameters import Parameters",
        "keys = toy_error.keys(p.seed)\nlong, short = p.lengths[-1], p.lengths[:2]",
    ],
    ids=["companion and chapter", "parameters", "steps"],
)
def test_valid_notebook_is_accepted(omissions, clone, text):
    """Imports of `companion` and of the notebook's chapter, and calls of steps, are allowed."""
    clone.rewrite_cell("# setup", text)
    assert omissions(clone.project) == []


@pytest.mark.parametrize("suffix", store.SUFFIXES)
def test_missing_published_file_is_named(unpublished, ran_clone, suffix):
    """The message names the file."""
    (ran_clone.project.published / f"toy/toy_error{suffix}").unlink()
    assert any(f"toy_error{suffix} is missing" in sentence for sentence in unpublished(ran_clone.project))


def test_figure_that_is_no_longer_published_is_named(unpublished, ran_clone):
    """Its file remains in `figures/`, but no notebook publishes it."""
    folder = ran_clone.project.published / "toy"
    shutil.copyfile(folder / "toy_error.csv", folder / "toy_old.csv")
    assert any("figures/toy/toy_old: no longer published" in sentence for sentence in unpublished(ran_clone.project))


def test_figure_drawn_by_older_code_is_named(unpublished, ran_clone):
    """An edit of the caption counts; the message names the figure to redraw."""
    ran_clone.replace(FIGURE, "Points are means", "Points are averages")
    (sentence,) = unpublished(ran_clone.project)
    assert "companion redraw toy/toy_error" in sentence
