"""A notebook's cells are read as a program: what they publish and import, and which steps lead to a figure."""

from pathlib import Path

import pytest

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


def test_figures_are_the_first_arguments_of_publish():
    """In order, by their last name; what is published otherwise is no figure."""
    assert slicing.published_figures(CELLS) == ["line", "curve"]
    assert slicing.published_figures(["publish()", "publish('line')", "publish", "republish(line)"]) == []


def test_everything_imported_is_a_dotted_name():
    """Under its own name, whatever the notebook calls it; magics are no Python."""
    assert slicing.modules(CELLS) == ["book.one.line", "book.one.runs", "companion.begin", "lib.lung"]


def test_steps_are_those_that_lead_to_the_figure():
    """In order, without comments and without what leads elsewhere; functions of the book only, in order."""
    found = slicing.steps_of(CELLS, "line", ["book"])
    assert found.lines == [
        "p, publish = begin(Parameters, globals())",
        "keys = r.keys(p.seed)",
        "long = r.run(p.lengths, key=keys.long)",
        "publish(line, long)",
    ]
    assert found.functions == ["book.one.runs.keys", "book.one.runs.run", "book.one.line"]


def test_functions_are_of_the_packages_asked_for():
    """Also one that is only named."""
    assert "lib.lung.volume" in slicing.steps_of(CELLS, "curve", ["book", "lib"]).functions
    assert "lib.lung.volume" not in slicing.steps_of(CELLS, "curve", ["book"]).functions


@pytest.mark.parametrize(
    ("cells", "lines"),
    [
        (["x = 1", "x = 2", "publish(line, x)"], ["x = 2", "publish(line, x)"]),
        (["x = 1", "x += 2", "publish(line, x)"], ["x = 1", "x += 2", "publish(line, x)"]),
        (["x = y = 1", "publish(line, y)"], ["x = y = 1", "publish(line, y)"]),
        (["x: int = 1", "publish(line, x)"], ["x: int = 1", "publish(line, x)"]),
        (["publish(line, x)", "x = 2"], ["publish(line, x)"]),
        (["x = 1", "publish(line, x)", "x = 2", "publish(line, x)"], ["x = 2", "publish(line, x)"]),
    ],
    ids="; ".join,
)
def test_the_last_value_counts(cells, lines):
    """Of what is assigned again, and of a figure that is published again."""
    assert slicing.steps_of(cells, "line", []).lines == lines


def test_figure_that_no_cell_publishes_has_no_steps():
    """As by hand, where there are no cells."""
    assert slicing.steps_of([], "line", ["book"]) == slicing.Steps([], [])
    assert slicing.steps_of(CELLS, "lines", ["book"]) == slicing.Steps([], [])


def test_what_somebody_typed_beside_is_passed_over():
    """A cell that is no Python hides no step."""
    assert slicing.steps_of(["x = 1", "help me?", "publish(line, x)"], "line", []).lines == [
        "x = 1",
        "publish(line, x)",
    ]


def test_only_what_leads_to_a_figure_is_left():
    """Imports, magics and comments stay; a cell of which nothing is left is empty."""
    head, begun, runs, line, curve = CELLS
    assert slicing.reduced_cells(CELLS, "line") == [head, begun, runs.rsplit("\n", 1)[0], line, ""]
    assert slicing.reduced_cells(CELLS, "curve") == [
        head,
        begun.split("\n", 1)[0],
        "# long runs\nother = r.run(p.others)",
        "",
        curve,
    ]


@pytest.mark.parametrize(
    ("cells", "left"),
    [
        (["x = f()\ny = g()\npublish(line, x)"], ["x = f()\npublish(line, x)"]),
        (["x = f()\npublish(curve, x)\npublish(line, x)"], ["x = f()\npublish(line, x)"]),
        (["x = 1", "x = 2", "publish(line, x)"], ["", "x = 2", "publish(line, x)"]),
        (["x = 1", "x += 2", "publish(line, x)"], ["x = 1", "x += 2", "publish(line, x)"]),
        (
            ["y = 1", "x = []", "x.append(y)", "publish(line, x)"],
            ["y = 1", "x = []", "x.append(y)", "publish(line, x)"],
        ),
        (["publish(line, 1)", "x = 2", "publish(line, x)", "x.f()"], ["", "x = 2", "publish(line, x)", ""]),
        (["x = f(\n  1,\n)\ny = g(\n  2,\n)\npublish(line, y)"], ["y = g(\n  2,\n)\npublish(line, y)"]),
        (["x = 1; y = 2", "publish(line, y)"], ["x = 1; y = 2", "publish(line, y)"]),
    ],
)
def test_what_a_figure_does_not_need_is_left_out(cells, left):
    """Assignments that lead elsewhere, other figures, and what comes later; a call for its effect is kept."""
    assert slicing.reduced_cells(cells, "line") == left


@pytest.mark.parametrize("name", PROJECT.notebooks())
def test_every_figure_of_the_book_can_be_run_alone(name):
    """What is left publishes it and nothing else, and leads to it by the same steps."""
    cells = Notebook.named(PROJECT, name).code
    for figure in slicing.published_figures(cells):
        left = slicing.reduced_cells(cells, figure)
        assert slicing.published_figures(left) == [figure]
        assert slicing.steps_of(left, figure, ["chapters"]) == slicing.steps_of(cells, figure, ["chapters"])
        assert slicing.modules(left) == slicing.modules(cells)
