"""A caption or a colour costs a picture: drawn from the stored table, without a kernel, and nothing else moves."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from companion.build import cache_keys
from companion.figures import store
from companion.io import atomic

CAPTION, COLOUR = ("Points are means", "Points are averages"), ('fmt="o"', 'fmt="s"')
FIGURE, SPREAD, NOTEBOOK = "clone/toy/figures/toy_error.py", "clone/toy/figures/toy_spread.py", "book/toy.ipynb"
RECORD, PICTURES = "toy_error.json", {f"toy_error{suffix}" for suffix in store.PICTURES}
SPREAD_PICTURES = {f"toy_spread{suffix}" for suffix in store.PICTURES}


@pytest.fixture(scope="module")
def drawn(pristine, tmp_path_factory):
    """A clone whose notebook publishes two figures, and was run, for reading only."""
    clone = pristine.copy_to(tmp_path_factory.mktemp("drawn") / "clone")
    shutil.copyfile(clone.root / FIGURE, clone.root / SPREAD)
    clone.replace(SPREAD, "toy-rate", "toy-spread")
    clone.replace(NOTEBOOK, "import toy_error\\n", "import toy_error, toy_spread\\n")
    both = '"publish(toy_spread, errors)\\n", "publish(toy_error, errors)"'
    clone.replace(NOTEBOOK, '"publish(toy_error, errors)"', both)
    finished = clone.companion("run", "toy")
    assert finished.returncode == 0, finished.stderr
    return clone


@pytest.fixture
def desk(drawn, tmp_path):
    """A copy of it to change, and what a command changed in it outside the sources."""
    clone = drawn.copy_to(tmp_path / "clone")

    def companion(*arguments):
        before = clone.tree("figures", "_build")
        finished = clone.companion(*arguments)
        after = clone.tree("figures", "_build")
        paths = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        stamps = {path for path in paths if "/keys/" in path}
        return SimpleNamespace(
            code=finished.returncode,
            said=finished.stdout,
            errors=finished.stderr,
            changed={path for path in paths - stamps if ".lock" not in path},
            stamps={Path(path).name.partition(".")[0] for path in stamps},
        )

    return SimpleNamespace(clone=clone, companion=companion, replace=clone.replace)


def published_and_built(*files):
    return {f"{room}/toy/{file}" for room in ("figures", "_build/laptop/figures") for file in files}


def test_a_caption_costs_a_record(desk):
    """Of that figure, where it was built and where it is published: no picture, no table, no executed notebook."""
    desk.replace(FIGURE, *CAPTION)
    drawn = desk.companion("redraw")
    assert drawn.code == 0, drawn.errors
    assert "✓ toy/toy_error redrawn; replaced in figures/toy: toy_error" in drawn.said
    assert "toy_spread" not in drawn.said
    assert drawn.stamps == {"toy-toy_error"}
    assert drawn.changed == published_and_built(RECORD)
    record = store.read_record(desk.clone.project.published / "toy", "toy_error")
    assert record.caption.endswith("Points are averages over repeats; bars are two standard errors.")


def test_a_colour_costs_the_pictures(desk):
    """And the record, which names them; the data stay to the byte."""
    desk.replace(FIGURE, *COLOUR)
    drawn = desk.companion("redraw")
    assert drawn.code == 0, drawn.errors
    assert drawn.stamps == {"toy-toy_error"}
    assert drawn.changed == published_and_built(RECORD, *PICTURES)
    assert store.faults(desk.clone.project.published / "toy", "toy_error") == []


def test_what_is_undone_is_the_same_bytes_again(desk, drawn):
    """Drawn by the kernel or from its table, at full precision: all five files of both figures."""
    desk.replace(FIGURE, *COLOUR)
    assert desk.companion("redraw").code == 0
    assert desk.clone.tree("figures") != drawn.tree("figures")
    desk.replace(FIGURE, *COLOUR[::-1])
    assert desk.companion("redraw").code == 0
    for folder in ("figures", "_build"):
        assert desk.clone.tree(folder) == drawn.tree(folder)


def test_build_draws_what_is_to_be_drawn(desk):
    """By the graph, both figures at once, and no kernel starts."""
    desk.replace(FIGURE, *CAPTION)
    desk.replace(SPREAD, *COLOUR)
    built = desk.companion("build", "--target", "figures")
    assert built.code == 0, built.said + built.errors
    assert "✓ toy/toy_error redrawn" in built.said
    assert "✓ toy/toy_spread redrawn" in built.said
    assert "▸ toy" not in built.said
    assert built.changed == published_and_built(RECORD, "toy_spread.json", *SPREAD_PICTURES)
    names = ["toy", "toy-toy_error", "toy-toy_spread"]
    assert all(cache_keys.is_fresh(desk.clone.project, name, "laptop") for name in names)


def test_a_harmed_picture_is_mended(desk):
    """From the table, to the same bytes, published or built."""
    before = desk.clone.tree("figures", "_build")
    (desk.clone.project.build("laptop").figures / "toy/toy_error.dark.svg").unlink()
    (desk.clone.project.published / "toy/toy_spread.png").write_bytes(b"")
    assert desk.companion("redraw", "toy").code == 0
    assert desk.clone.tree("figures", "_build") == before


def test_nothing_is_drawn_where_all_is_fresh(desk):
    """And it is said."""
    drawn = desk.companion("redraw")
    assert drawn.changed == set()
    assert "All pictures are up to date." in drawn.said


def test_stale_numbers_are_not_drawn_unasked(desk):
    """Their notebook is to be run, which draws them; asked for, the last numbers are drawn, and stay stale."""
    desk.replace(FIGURE, "expected=1.0", "expected=2.0")
    desk.replace(FIGURE, *CAPTION)
    assert desk.companion("redraw").changed == set()
    drawn = desk.companion("redraw", "toy/toy_error")
    assert drawn.stamps == {"toy-toy_error"}
    assert drawn.changed == published_and_built(RECORD)
    (claim,) = json.loads((desk.clone.project.published / "toy" / RECORD).read_text())["claims"]
    assert claim["expected"] == 1.0
    assert not cache_keys.is_fresh(desk.clone.project, "toy-toy_error", "laptop")


def test_a_sister_that_was_not_built_here_stays_published(desk):
    """As after a pull that brought a figure: what is drawn is one figure, whatever the build lacks."""
    for room in ("figures", "tables"):
        for path in (desk.clone.project.build("laptop").folder / room / "toy").glob("toy_spread.*"):
            path.unlink()
    desk.replace(FIGURE, *CAPTION)
    drawn = desk.companion("redraw", "toy_error")
    assert drawn.code == 0, drawn.errors
    assert drawn.changed == published_and_built(RECORD)


def test_fresh_clone_draws_the_published_table(desk):
    """Nothing was run there: the published data stay, the picture is today's, twice the same, and nothing is built."""
    shutil.rmtree(desk.clone.root / "_build")
    desk.replace(FIGURE, *COLOUR)
    drawn = desk.companion("redraw", "toy_error")
    assert drawn.code == 0, drawn.errors
    assert drawn.changed == {f"figures/toy/{file}" for file in (RECORD, *PICTURES)}
    assert drawn.stamps == set()
    assert store.faults(desk.clone.project.published / "toy", "toy_error") == []
    before = desk.clone.tree("figures")
    assert desk.companion("redraw", "toy_error").code == 0
    assert desk.clone.tree("figures") == before


def test_fresh_clone_leaves_a_picture_of_todays_code_alone(desk):
    """Whatever other fonts another machine made of it: there is nothing to commit; harmed, it is drawn."""
    shutil.rmtree(desk.clone.root / "_build")
    folder = desk.clone.project.published / "toy"
    picture = folder / f"toy_error{store.PICTURES[0]}"
    picture.write_bytes(picture.read_bytes() + b"<!-- other fonts -->")
    record = json.loads((folder / RECORD).read_text())
    record["files"] = store.digests(folder, "toy_error")
    (folder / RECORD).write_text(atomic.dump_json(record))
    drawn = desk.companion("redraw", "toy_error")
    assert drawn.code == 0, drawn.errors
    assert drawn.changed == set()
    picture.write_bytes(b"")
    changed = desk.companion("redraw", "toy_error").changed
    assert {f"figures/toy/{RECORD}", f"figures/toy/{picture.name}"} <= changed
    assert changed <= {f"figures/toy/{file}" for file in (RECORD, *PICTURES)}


def test_other_profile_is_drawn_beside(desk):
    """From its own table, into its own folder; what is published is the default profile's."""
    laptop, smoke = (desk.clone.project.build(profile).folder for profile in ("laptop", "smoke"))
    shutil.copytree(laptop, smoke)
    desk.replace(FIGURE, *CAPTION)
    drawn = desk.companion("redraw", "toy_error", "--profile", "smoke")
    assert drawn.code == 0, drawn.errors
    assert drawn.changed == {f"_build/smoke/figures/toy/{RECORD}"}


def test_figure_that_was_never_run_is_not_drawn(desk):
    """Nor are the published numbers those of another profile; the answer says what to run."""
    drawn = desk.companion("redraw", "toy_error", "--profile", "smoke")
    assert drawn.code == 2
    assert "no numbers of toy/toy_error in profile 'smoke' yet. Run `companion run toy --profile smoke`" in drawn.errors
    assert drawn.changed == set()


@pytest.mark.parametrize("name", ["toy/toy_eror", "toy_eror", "tou"])
def test_unknown_figure_names_those_there_are(desk, name):
    """And nothing is drawn, not even what was named beside it."""
    drawn = desk.companion("redraw", "toy_spread", name)
    assert drawn.code == 2
    assert f"no figure and no notebook {name!r}" in drawn.errors
    assert "Did you mean" in drawn.errors
    assert drawn.changed == set()


def test_drawing_that_fails_leaves_what_was_there(desk):
    """Whole, in both places."""
    desk.replace(FIGURE, 'axes.set(xscale="log"', "axes.set(yscale=len")
    before = desk.clone.tree("figures", "_build/laptop/figures")
    assert desk.companion("redraw").code != 0
    assert desk.clone.tree("figures", "_build/laptop/figures") == before
