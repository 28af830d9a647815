"""Schematics: figures without data and claims pass through the same commands as all other figures."""

import copy
import shutil

import pytest

from companion.figures import store

SKETCH = '''r"""A mean is one number.

Two boxes and an arrow.

Alt: An arrow leads from a box with many numbers to a box with one number.
"""

from companion import no_numbers
from companion.figures.schematics import arrow, box, canvas
from companion.figures.style import ink

numbers = no_numbers


def draw(_):
    """Draw two boxes and an arrow between them."""
    figure, axes = canvas(5, 1.4)
    box(axes, (0.1, 0.2), (2, 1), "many numbers", ink())
    box(axes, (2.9, 0.2), (2, 1), "one number", ink())
    arrow(axes, (2.15, 0.7), (2.85, 0.7))
    return figure
'''
CARD = ":::::{companion-card} toy\n:::::\n\n"


def add_cell(notebook):
    """Add a cell that publishes the schematic, and a card that shows it."""
    notebook["metadata"]["card"] = {"figure": "toy_sketch", "summary": "What a mean is."}
    cell = copy.deepcopy(notebook["cells"][-1])
    notebook["cells"].append(cell | {"id": "sketch", "source": ["publish(toy_sketch)"]})


@pytest.fixture(scope="module")
def sketched(pristine, tmp_path_factory):
    """A book whose notebook also publishes a schematic, after a run; for reading only."""
    clone = pristine.copy_to(tmp_path_factory.mktemp("sketched") / "clone")
    clone.write("clone/toy/figures/toy_sketch.py", SKETCH)
    clone.replace("book/toy.ipynb", "import toy_error\\n", "import toy_error, toy_sketch\\n")
    clone.edit_notebook(add_cell)
    clone.output = clone.succeed("run", "toy")
    return clone


@pytest.fixture
def desk(sketched, tmp_path):
    return sketched.copy_to(tmp_path / "clone")


def test_it_is_published_with_an_empty_table(sketched, omissions):
    """The run warns of nothing, and the checks of a contributor find nothing missing."""
    folder = sketched.project.published / "toy"
    assert store.faults(folder, "toy_sketch") == []
    record = store.read_record(folder, "toy_sketch")
    assert record.is_schematic
    assert record.claims == ()
    assert record.steps == ("publish(toy_sketch)",)
    assert (folder / "toy_sketch.csv").read_bytes().strip() == b""
    assert not store.read_record(folder, "toy_error").is_schematic
    assert "Warning" not in sketched.output
    assert omissions(sketched.project) == []


def test_a_second_run_verify_and_compare_find_no_difference(desk):
    before = desk.tree("figures")
    for command in ("run toy", "verify toy", "compare _build/laptop figures", "redraw toy/toy_sketch"):
        desk.succeed(*command.split())
    assert desk.tree("figures") == before


def test_it_is_redrawn_in_a_fresh_clone(desk):
    """Only the schematic changes; its table stays empty."""
    shutil.rmtree(desk.root / "_build")
    before = desk.tree("figures")
    desk.replace("clone/toy/figures/toy_sketch.py", '"one number", ink()', '"a single number", ink()')
    desk.succeed("redraw", "toy_sketch")
    changed = {path for path, digest in desk.tree("figures").items() if before[path] != digest}
    assert changed == {f"figures/toy/toy_sketch{ending}" for ending in (".svg", ".png", ".json")}


def test_a_sweep_leaves_it_out(desk):
    for command in ("run", "sweep"):  # which finds the result of the run
        desk.succeed(command, "toy", "-p", "seed=1")
    tables = {path.name for path in desk.project.sweeps.rglob("*.csv")}
    assert tables == {"claims.csv", "toy_error.csv"}


def test_the_site_shows_its_code_and_origin_but_no_data(desk):
    """The site marks it as a schematic; a card shows its thumbnail, although it has no axes."""
    desk.replace("book/index.md", "Every figure", f"{CARD}Every figure")
    desk.succeed("site", "--published")
    site = desk.project.site("laptop")
    page = (site / "book/toy.html").read_text(encoding="utf-8")
    assert page.count(">schematic<") == 1
    assert "toy_sketch.svg" in page
    assert "toy_sketch.csv" not in page
    assert "toy_error.csv" in page
    assert (site / "thumbnails/toy_sketch.png").is_file()
