"""Redrawing: after an edit of a caption or a colour a figure is drawn from its stored table, without a kernel."""

import json
import shutil
from types import SimpleNamespace

import pytest

from companion.build import cache_keys
from companion.build.run_spec import Target
from companion.figures import store
from companion.io import atomic

CAPTION, COLOUR = ("Points are means", "Points are averages"), ('fmt="o"', 'fmt="s"')
FIGURE, SPREAD, NOTEBOOK = "clone/toy/figures/toy_error.py", "clone/toy/figures/toy_spread.py", "book/toy.ipynb"
ERROR = Target("toy", "toy_error")
TARGETS = (Target("toy"), ERROR, Target("toy", "toy_spread"))
RECORD, PICTURES = "toy_error.json", {f"toy_error{suffix}" for suffix in store.PICTURES}
SPREAD_PICTURES = {f"toy_spread{suffix}" for suffix in store.PICTURES}


@pytest.fixture(scope="module")
def drawn(pristine, tmp_path_factory):
    """A clone whose notebook publishes two figures and was run, for reading only."""
    clone = pristine.copy_to(tmp_path_factory.mktemp("drawn") / "clone")
    shutil.copyfile(clone.root / FIGURE, clone.root / SPREAD)
    clone.replace(SPREAD, '"rate"', '"spread"')
    clone.replace(NOTEBOOK, "import toy_error\\n", "import toy_error, toy_spread\\n")
    both = '"publish(toy_spread, errors)\\n", "publish(toy_error, errors)"'
    clone.replace(NOTEBOOK, '"publish(toy_error, errors)"', both)
    finished = clone.companion("run", "toy")
    assert finished.returncode == 0, finished.stderr
    return clone


@pytest.fixture
def desk(drawn, tmp_path):
    """A copy of it to change; its commands report which files they changed besides sources."""
    clone = drawn.copy_to(tmp_path / "clone")

    def companion(*arguments):
        before = clone.tree("figures", "_build")
        finished = clone.companion(*arguments)
        after = clone.tree("figures", "_build")
        paths = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        stamps = {path for path in paths if "/keys/" in path or "/made_of/" in path}
        return SimpleNamespace(
            code=finished.returncode,
            output=finished.stdout,
            errors=finished.stderr,
            changed={path for path in paths - stamps if ".lock" not in path},
            stamps={target for target in TARGETS if any(f"/{target.stem}." in path for path in stamps)},
        )

    return SimpleNamespace(clone=clone, companion=companion, replace=clone.replace)


def published_and_built(*files):
    return {f"{room}/toy/{file}" for room in ("figures", "_build/laptop/figures") for file in files}


def test_a_new_caption_changes_one_record(desk):
    """It changes in the build and in `figures/`; no picture, table or executed notebook changes."""
    desk.replace(FIGURE, *CAPTION)
    drawn = desk.companion("redraw")
    assert drawn.code == 0, drawn.errors
    assert "✓ toy/toy_error redrawn; replaced in figures/toy: toy_error" in drawn.output
    assert "toy_spread" not in drawn.output
    assert drawn.stamps == {ERROR}
    assert drawn.changed == published_and_built(RECORD)
    record = store.read_record(desk.clone.project.published / "toy", "toy_error")
    assert record.caption.endswith("Points are averages over repeats; bars are two standard errors.")


def test_a_new_colour_changes_pictures_and_record(desk):
    """The data stay the same."""
    desk.replace(FIGURE, *COLOUR)
    drawn = desk.companion("redraw")
    assert drawn.code == 0, drawn.errors
    assert drawn.stamps == {ERROR}
    assert drawn.changed == published_and_built(RECORD, *PICTURES)
    assert store.faults(desk.clone.project.published / "toy", "toy_error") == []


def test_the_record_names_the_present_drawing_code(desk):
    """The page of the figure finds its code by these names."""
    size = "plt.subplots(figsize=(COLUMN, 4))"
    desk.replace(FIGURE, size, "_empty()")
    desk.replace(FIGURE, "    return figure\n", f"    return figure\n\n\ndef _empty():\n    return {size}\n")
    assert desk.companion("redraw").code == 0
    record = store.read_record(desk.clone.project.published / "toy", "toy_error")
    assert "clone.toy.figures.toy_error._empty" in record.functions


def test_a_build_redraws_figures_without_a_kernel(desk):
    """One rule redraws both figures."""
    desk.replace(FIGURE, *CAPTION)
    desk.replace(SPREAD, *COLOUR)
    built = desk.companion("build", "--target", "figures")
    assert built.code == 0, built.output + built.errors
    assert "✓ toy/toy_error redrawn" in built.output
    assert "✓ toy/toy_spread redrawn" in built.output
    assert "▸ toy" not in built.output
    assert built.changed == published_and_built(RECORD, "toy_spread.json", *SPREAD_PICTURES)
    assert all(cache_keys.is_fresh(desk.clone.project, target, "laptop") for target in TARGETS)


def test_a_damaged_picture_is_restored(desk):
    """Built and published files get the same bytes as before."""
    before = desk.clone.tree("figures", "_build")
    (desk.clone.project.build("laptop").figures / "toy/toy_error.svg").unlink()
    (desk.clone.project.published / "toy/toy_spread.png").write_bytes(b"")
    assert desk.companion("redraw", "toy").code == 0
    assert desk.clone.tree("figures", "_build") == before


def test_stale_numbers_are_redrawn_only_on_request(desk):
    """Without a name the figure is left for a run; by name it is redrawn from the last numbers and stays stale."""
    desk.replace(FIGURE, "expected=1.0", "expected=2.0")
    desk.replace(FIGURE, *CAPTION)
    assert desk.companion("redraw").changed == set()
    drawn = desk.companion("redraw", "toy/toy_error")
    assert drawn.stamps == {ERROR}
    assert drawn.changed == published_and_built(RECORD)
    (claim,) = json.loads((desk.clone.project.published / "toy" / RECORD).read_text())["claims"]
    assert claim["expected"] == 1.0
    assert not cache_keys.is_fresh(desk.clone.project, ERROR, "laptop")


def test_a_fresh_clone_redraws_the_published_table(desk):
    """The data stay the same, a second command changes nothing, and no stamp is written."""
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


def test_a_fresh_clone_keeps_a_picture_of_the_present_code(desk):
    """Other fonts do not matter, so there is nothing to commit; a damaged picture is redrawn."""
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


def test_a_figure_that_was_never_run_is_not_redrawn(desk):
    """The published numbers belong to the default profile; the message says what to run."""
    drawn = desk.companion("redraw", "toy_error", "--profile", "smoke")
    assert drawn.code == 2
    assert "no numbers of toy/toy_error in profile 'smoke' yet. Run `companion run toy --profile smoke`" in drawn.errors
    assert drawn.changed == set()


def test_an_unknown_figure_is_refused_with_a_suggestion(desk):
    """No figure is redrawn then."""
    drawn = desk.companion("redraw", "toy_spread", "toy_eror")
    assert drawn.code == 2
    assert "no figure and no notebook 'toy_eror'" in drawn.errors
    assert "Did you mean" in drawn.errors
    assert drawn.changed == set()


def test_a_failing_draw_function_changes_no_file(desk):
    desk.replace(FIGURE, 'axes.set(xscale="log"', "axes.set(yscale=len")
    before = desk.clone.tree("figures", "_build/laptop/figures")
    assert desk.companion("redraw").code != 0
    assert desk.clone.tree("figures", "_build/laptop/figures") == before
