"""Slices of a notebook: the figures that it publishes, the modules that it imports, and the steps behind a figure."""

from pathlib import Path

import pytest

from companion.io.errors import UserError
from companion.project import slicing
from companion.project.notebooks import Notebook
from companion.project.paths import Project

PROJECT = Project(Path(__file__).resolve().parents[2])

CELLS = [
    "%matplotlib inline\nfrom companion import begin\nfrom book.one import line, runs as r\nimport lib.lung as lung",
    "p, publish = begin(Parameters, globals())\nkeys = r.keys(p.seed)",
    "# long runs\nlong = r.run(p.lengths, key=keys.long)\nother = r.run(p.others)",
    "publish(line, long)",
    "if True:\n    publish(r.curve, other, scale=lung.volume)",
]


def test_published_figures_are_the_first_arguments_of_publish():
    """They are in order and named by their last attribute; arguments that are no names are ignored."""
    assert slicing.published_figures(CELLS) == ["line", "curve"]
    assert slicing.published_figures(["publish()", "publish('line')", "publish", "republish(line)"]) == []


def test_imports_are_listed_by_their_dotted_names():
    """Aliases are resolved, and magics are ignored."""
    assert slicing.modules(CELLS) == ["book.one.line", "book.one.runs", "companion.begin", "lib.lung"]


def test_a_cell_that_is_not_python_is_shown():
    """For example one of another language."""
    with pytest.raises(UserError, match=r"not plain Python.*\n%%bash\nfor i"):
        slicing.modules(["%%bash\nfor i in 1 2; do echo $i; done"])


@pytest.mark.parametrize("magic", ["%%time", "%%timeit -n 3", "%%capture output"])
def test_a_cell_magic_before_python_is_ignored(magic):
    assert slicing.modules([f"{magic}\nimport b"]) == ["b"]


def test_steps_of_a_figure_are_those_it_depends_on():
    """Steps and functions are in order; comments, other steps, and functions outside of the book are left out."""
    steps = slicing.steps_of(CELLS, "line", ["book"])
    assert steps.lines == [
        "p, publish = begin(Parameters, globals())",
        "keys = r.keys(p.seed)",
        "long = r.run(p.lengths, key=keys.long)",
        "publish(line, long)",
    ]
    assert steps.functions == ["book.one.runs.keys", "book.one.runs.run", "book.one.line"]


def test_only_functions_of_the_given_packages_are_listed():
    """A function that is an attribute of a module counts too."""
    assert "lib.lung.volume" in slicing.steps_of(CELLS, "curve", ["book", "lib"]).functions
    assert "lib.lung.volume" not in slicing.steps_of(CELLS, "curve", ["book"]).functions


@pytest.mark.parametrize(
    ("cells", "lines"),
    [
        (["x = y = 1", "publish(line, y)"], ["x = y = 1", "publish(line, y)"]),
        (["x: int = 1", "x += 2", "publish(line, x)"], ["x: int = 1", "x += 2", "publish(line, x)"]),
        (["x = 1", "publish(line, x)", "x = 2"], ["x = 1", "publish(line, x)"]),
        (["x = 1", "publish(line, x)", "x = 2", "publish(line, x)"], ["x = 2", "publish(line, x)"]),
        (["publish(curve, x)"], []),
        ([], []),
    ],
    ids="; ".join,
)
def test_the_last_assignment_and_the_last_publication_are_steps(cells, lines):
    """A notebook run by hand may have no cells."""
    assert slicing.steps_of(cells, "line", []).lines == lines


def test_slice_contains_only_the_steps_of_its_figure():
    """Imports, magics and comments stay; a cell without remaining steps becomes empty."""
    head, begin, runs, line, curve = CELLS
    assert slicing.reduced_cells(CELLS, "line") == [head, begin, runs.rsplit("\n", 1)[0], line, ""]
    other = "# long runs\nother = r.run(p.others)"
    assert slicing.reduced_cells(CELLS, "curve") == [head, begin.split("\n", 1)[0], other, "", curve]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["x = f()\ny = g()\npublish(line, x)"], ["x = f()\npublish(line, x)"]),
        (["x = f()\npublish(curve, x)\npublish(line, x)"], ["x = f()\npublish(line, x)"]),
        (["x = 1", "x = 2", "publish(line, x)"], ["", "x = 2", "publish(line, x)"]),
        (["x = 1", "x += 2", "publish(line, x)"], ["x = 1", "x += 2", "publish(line, x)"]),
        (["y = 1", "x = []", "x.append(y)", "publish(line, x)"],) * 2,
        (["publish(line, 1)", "x = 2", "publish(line, x)", "x.f()"], ["", "x = 2", "publish(line, x)", ""]),
        (["x = f(\n  1,\n)\ny = g(\n  2,\n)\npublish(line, y)"], ["y = g(\n  2,\n)\npublish(line, y)"]),
        (["x = 1; y = 2", "publish(line, y)"], ["x = 1; y = 2", "publish(line, y)"]),
    ],
)
def test_statements_that_a_figure_does_not_need_are_left_out(cells, expected):
    """These are other assignments, other figures and later statements; calls with side effects before it stay."""
    assert slicing.reduced_cells(cells, "line") == expected
    assert slicing.steps_of(cells, "line", []) == slicing.steps_of(expected, "line", [])


@pytest.mark.parametrize("name", PROJECT.notebooks())
def test_every_figure_of_the_book_can_be_run_alone(name):
    """Its slice publishes only this figure, and has the same steps and imports as the whole notebook."""
    cells = Notebook.named(PROJECT, name).code
    for figure in slicing.published_figures(cells):
        remaining = slicing.reduced_cells(cells, figure)
        assert slicing.published_figures(remaining) == [figure]
        assert slicing.steps_of(remaining, figure, ["chapters"]) == slicing.steps_of(cells, figure, ["chapters"])
        assert set(slicing.modules(remaining)) <= set(slicing.modules(cells))
