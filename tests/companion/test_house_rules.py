"""The project is complete: nothing of a notebook was forgotten, nothing is left of one that is gone.

The lists themselves, `forgotten` and `unpublished`, stand in conftest.py and are tested here on a clone.
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
    not any(PROJECT.published.glob("*/")), reason="figures/ has no folder yet: nothing was ever published (`make book`)"
)


def test_first_chapter_is_there():
    """Or the rules below would hold of nothing."""
    assert "gaussian_limit" in NOTEBOOKS


def test_nothing_is_forgotten(forgotten):
    """Of any notebook of this repository; nor is anything there without one."""
    assert forgotten(PROJECT) == []


@needs_figures
def test_every_figure_is_published(unpublished):
    """Five files that belong together for each, and none for others."""
    assert unpublished(PROJECT) == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_names_in_the_code_are_importable(name):
    """The parameters and every figure are what the notebook finds."""
    assert parameters_of(PROJECT, name).__module__ == f"chapters.{name}.parameters"
    for figure in Notebook.named(PROJECT, name).figures:
        module = PROJECT.import_module(f"chapters.{name}.{figure}")
        assert callable(module.numbers)
        assert callable(module.draw)


@needs_figures
@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_published_claims_hold_and_could_fail(name, figure):
    """Each one, with its alternative."""
    for claim in store.read_record(PROJECT.published / name, figure).claims:
        assert claim.holds, claim
        assert claim.catches_alternative, claim
        assert claim.alternative.theory.strip(), claim


@needs_figures
@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_published_claims_have_a_source(name, figure):
    """A key of the bibliography, in square brackets; or derived in a box of the book; or measured; or a heuristic."""
    keys = re.findall(r"^@\w+\{(\w+),", (PROJECT.book / "references.bib").read_text(encoding="utf-8"), re.MULTILINE)
    assert keys
    for claim in store.read_record(PROJECT.published / name, figure).claims:
        cited = re.findall(r"\[(\w+)(?:, [^\]]+)?\]", claim.source)
        assert cited or claim.source in ("derived here", "measured here", "heuristic"), claim
        assert set(cited) <= set(keys), claim
        assert claim.box or claim.source != "derived here", claim
        assert claim.box is None or claim.box in theorem_labels(PROJECT), claim


@needs_figures
@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_published_figure_has_caption_and_alt(name, figure):
    """Neither is empty, and the alt text is no copy of the caption."""
    record = store.read_record(PROJECT.published / name, figure)
    assert record.caption.strip()
    assert len(record.alt.split()) >= 8, "an alt text describes the picture"
    assert record.alt != record.caption


@needs_figures
@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_published_files_are_small(name, figure):
    """At most 300 kB each."""
    sizes = {s: (PROJECT.published / name / f"{figure}{s}").stat().st_size for s in store.SUFFIXES}
    assert max(sizes.values()) <= 300_000, sizes


@needs_figures
@pytest.mark.parametrize(("name", "figure"), FIGURES)
def test_published_by_the_default_profile(name, figure):
    """With the parameters of the notebook as it stands, its columns being those of the CSV."""
    record = store.read_record(PROJECT.published / name, figure)
    assert record.profile == "laptop"
    assert record.parameters == Notebook.named(PROJECT, name).defaults
    header = (PROJECT.published / name / f"{figure}.csv").read_text(encoding="utf-8").splitlines()[0]
    assert set(header.split(",")) == set(record.columns)


def test_claims_of_the_house_have_different_names():
    """Pages link to them by name alone."""
    ids = [claim.id for claim in publication_policy.published_claims(PROJECT)]
    assert sorted(ids) == sorted(set(ids))


def test_figures_of_the_house_have_different_names():
    """They share one namespace on the pages, and one on the command line."""
    figures = [figure for _, figure in FIGURES]
    assert sorted(figures) == sorted(set(figures))


def test_scaffold_forgets_nothing(forgotten, clone):
    """A notebook as `companion new` lays it out."""
    assert forgotten(clone.project) == []


def test_scaffold_is_not_published(unpublished, clone):
    """Before its first run; the sentence says what to run."""
    assert unpublished(clone.project)
    assert all("companion run toy" in sentence for sentence in unpublished(clone.project))


def test_run_publishes_the_scaffold(unpublished, ran):
    """After it, nothing is missing."""
    assert unpublished(ran.project) == []


def remove_line(clone, path, line):
    clone.replace(path, line, "")


def drop(clone, path):
    (clone.root / path).unlink()


def add_page(clone):
    clone.replace("_toc.yml", "- file: book/toy", "- file: book/toy\n      - file: book/gone")


def leave_outputs(clone):
    path = clone.project.notebook("toy")
    notebook = json.loads(path.read_text())
    notebook["cells"][-1]["execution_count"] = 7
    path.write_text(json.dumps(notebook))


def drop_notebook(clone):
    drop(clone, "book/toy.ipynb")


def setup_cell(addition):
    return lambda clone: clone.rewrite_cell("# setup", f"# setup\nfrom companion import begin\n{addition}\n")


def rename(function):
    return lambda clone: clone.replace(FIGURE, f"def {function}(", f"def {function}_of(")


def leave(path, text="x"):
    return lambda clone: clone.write(path, text)


OLD = "clone/toy/figures/old.py"
FIGURE, PARAMETERS = "clone/toy/figures/toy_error.py", "clone/toy/parameters.py"
SEED = "    seed: companion.Seed\n"
OLD_FIGURE = dedent("""
    \"\"\"A caption.

    Alt: A line.\"\"\"
    def numbers(): ...
    def draw(table): ...
""")

# what is taken away; the words by which the contributor is told
PIECES = {
    "chapter": (lambda c: shutil.rmtree(c.root / "clone/toy"), ["Write clone/toy/parameters.py"]),
    "init": (lambda c: drop(c, "clone/toy/__init__.py"), ["Write clone/toy/__init__.py"]),
    "parameters' file": (lambda c: drop(c, PARAMETERS), ["class `Parameters(companion.Parameters)`"]),
    "parameters' class": (lambda c: c.replace(PARAMETERS, "class Parameters", "class Params"), ["class `Parameters("]),
    "figure": (lambda c: drop(c, FIGURE), ["Write clone/toy/figures/toy_error.py", "publishes it"]),
    "numbers": (rename("numbers"), ["Write a function `numbers` in clone/toy/figures/toy_error.py"]),
    "draw": (rename("draw"), ["Write a function `draw` in clone/toy/figures/toy_error.py"]),
    "caption": (
        lambda c: c.write(FIGURE, "def numbers(): ...\n"),
        [FIGURE, "needs a caption"],
    ),
    "alt": (lambda c: c.replace(FIGURE, "Alt: Log-log", "Log-log"), [FIGURE, "0 alt texts"]),
    "smoke": (lambda c: c.replace("profiles/smoke.yml", "toy:", "tou:"), ["entry `toy:` to profiles/smoke.yml"]),
    "full": (lambda c: c.replace("profiles/full.yml", "toy:", "tou:"), ["entry `toy:` to profiles/full.yml"]),
    "contents": (lambda c: remove_line(c, "_toc.yml", "      - file: book/toy\n"), ["`- file: book/toy` to _toc.yml"]),
    "default": (lambda c: remove_line(c, "book/toy.ipynb", '"seed = 0\\n",'), ["same parameters", "['seed']"]),
    "meaning": (lambda c: remove_line(c, PARAMETERS, SEED), ["same parameters", "['seed']"]),
    "parameters": (lambda c: c.rewrite_cell("# parameters", "x = 1", tags=[]), ["exactly one cell tagged"]),
    "picture": (lambda c: c.rewrite_cell("# means", "p\n"), ["publishes nothing", "`publish(FIGURE, …)`"]),
    "bootstrap": (lambda c: c.replace("book/toy.ipynb", "missing = ", "missing =  "), ["`companion set-url`"]),
    "stripped": (leave_outputs, ["strip the outputs", "nbstripout book/toy.ipynb"]),
    "thin: def": (setup_cell("def f(x): return x"), ["move `f` to clone/toy/"]),
    "thin: class": (setup_cell("class F: ..."), ["move `F` to clone/toy/"]),
    "thin: lambda": (setup_cell("f = lambda x: x"), ["move the lambda to clone/toy/"]),
    "thin: for": (setup_cell("for seed in range(3): pass"), ["move the loop to clone/toy/"]),
    "thin: list": (setup_cell("x = [seed for seed in (1, 2)]"), ["move the loop"]),
    "thin: dict": (setup_cell("x = {seed: 1 for seed in (1, 2)}"), ["move the loop"]),
    "thin: numpy": (setup_cell("import numpy as np"), ["`import numpy` belongs to clone/toy/"]),
    "thin: rc": (setup_cell("from matplotlib import pyplot"), ["`from matplotlib import` belongs to clone/toy/"]),
    "thin: lib": (setup_cell("from lib import attend"), ["`from lib import` belongs to clone/toy/"]),
    "thin: sister": (setup_cell("from clone.toys import x"), ["`from clone.toys import` belongs to clone/toy/"]),
    "thin: package": (setup_cell("from clone import toy"), ["`from clone import` belongs to clone/toy/"]),
    "thin: path": (setup_cell("x = '/home/me/data.csv'"), ["'/home/me/data.csv' looks like a path"]),
    "thin: open": (setup_cell("x = open('data.csv')"), ["neither opens files nor prints"]),
    "thin: print": (setup_cell("print(1)"), ["neither opens files nor prints"]),
    "thin: magic": (setup_cell("%matplotlib inline"), ["not plain Python"]),
    # and the inverse: what is left of a notebook that is gone
    "orphaned chapter": (drop_notebook, ["clone/toy/ has no notebook", "write book/toy.ipynb"]),
    "orphaned data": (leave("clone/gone/data/laws.csv"), ["clone/gone/ has no notebook"]),
    "orphaned entry": (drop_notebook, ["profiles/smoke.yml has an entry `toy`"]),
    "orphaned row": (drop_notebook, ["_toc.yml has a row `book/toy`"]),
    "row without a page": (add_page, ["_toc.yml has a row `book/gone`"]),
    "orphaned figure": (
        leave(OLD, OLD_FIGURE),
        [f"does not publish `old` of {OLD}"],
    ),
    "orphaned caption": (leave(OLD, '"""A.\n\nAlt: B."""\n'), ["does not publish `old`"]),
    "orphaned figures": (lambda c: (c.root / "figures/gone").mkdir(parents=True), ["figures/gone/", "no notebook"]),
}


@pytest.mark.parametrize("piece", PIECES)
def test_forgotten_piece_is_named(forgotten, clone, piece):
    """One sentence says which, where, and what to write."""
    take_away, words = PIECES[piece]
    take_away(clone)
    said = forgotten(clone.project)
    assert [sentence for sentence in said if all(word in sentence for word in words)], said


@pytest.mark.parametrize(
    "text",
    [
        "from companion import begin\nfrom clone.toy.figures import toy_error, runs",
        "from clone.toy.parameters import Parameters",
        "keys = toy_error.keys(p.seed)\nlong, short = p.lengths[-1], p.lengths[:2]",
    ],
    ids=["machine and chapter", "parameters", "steps"],
)
def test_thin_notebook_is_left_in_peace(forgotten, clone, text):
    """Imports of the machine and of its own chapter, and named steps."""
    clone.rewrite_cell("# setup", text)
    assert forgotten(clone.project) == []


def test_shared_files_and_what_python_leaves_are_no_orphans(forgotten, clone):
    """Drawing that several figures share, a folder that holds nothing but bytecode."""
    clone.write("clone/toy/marks.py", '"""How this chapter draws."""\ndef draw(table): ...\n')
    clone.write("clone/gone/__pycache__/old.cpython-311.pyc", "x")
    assert forgotten(clone.project) == []


@pytest.mark.parametrize("suffix", store.SUFFIXES)
def test_unpublished_file_is_named(unpublished, ran_clone, suffix):
    """A figure with a file missing."""
    (ran_clone.project.published / f"toy/toy_error{suffix}").unlink()
    assert any(f"toy_error{suffix} is missing" in sentence for sentence in unpublished(ran_clone.project))


def test_published_figure_of_the_past_is_named(unpublished, ran_clone):
    """One that no notebook publishes any more."""
    folder = ran_clone.project.published / "toy"
    shutil.copyfile(folder / "toy_error.csv", folder / "toy_old.csv")
    assert any("figures/toy/toy_old: no longer published" in sentence for sentence in unpublished(ran_clone.project))


def test_picture_of_other_code_is_named(unpublished, ran_clone):
    """Of another caption, too: the sentence says which to draw again."""
    ran_clone.replace(FIGURE, "Points are means", "Points are averages")
    (sentence,) = unpublished(ran_clone.project)
    assert "companion redraw toy/toy_error" in sentence
