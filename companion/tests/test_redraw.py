"""Redrawing: after an edit of a caption or a colour a figure is drawn from its stored table, without a kernel."""

import shutil
from types import SimpleNamespace

import pytest

from companion.build import cache_keys
from companion.build.run_spec import Target
from companion.figures import store

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
    clone.succeed("run", "toy")
    return clone


@pytest.fixture
def desk(drawn, tmp_path):
    """A copy of it to change; its commands report which files they changed besides sources."""
    clone = drawn.copy_to(tmp_path / "clone")

    def companion(*arguments, code=0):
        before = clone.tree("figures", "_build")
        finished = clone.companion(*arguments)
        assert finished.returncode == code, finished.stdout + finished.stderr
        after = clone.tree("figures", "_build")
        paths = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        stamps = {path for path in paths if "/keys/" in path or "/made_of/" in path}
        return SimpleNamespace(
            output=finished.stdout + finished.stderr,
            changed={path for path in paths - stamps if ".lock" not in path},
            stamps={target for target in TARGETS if any(f"/{target.stem}." in path for path in stamps)},
        )

    published = clone.project.published / "toy"
    return SimpleNamespace(clone=clone, companion=companion, replace=clone.replace, published=published)


def published_and_built(*files):
    return {f"{room}/toy/{file}" for room in ("figures", "_build/laptop/figures") for file in files}


@pytest.mark.parametrize(("edit", "files"), [(CAPTION, [RECORD]), (COLOUR, [RECORD, *PICTURES])])
def test_only_what_shows_an_edit_is_redrawn(desk, edit, files):
    """A caption changes one record; no picture, table or executed notebook changes. A colour changes no data."""
    desk.replace(FIGURE, *edit)
    drawn = desk.companion("redraw")
    assert "✓ toy/toy_error redrawn; replaced in figures/toy: toy_error" in drawn.output
    assert "toy_spread" not in drawn.output
    assert drawn.stamps == {ERROR}
    assert drawn.changed == published_and_built(*files)
    assert store.faults(desk.published, "toy_error") == []
    ending = "Points are averages over repeats; bars are two standard errors."
    assert store.read_record(desk.published, "toy_error").caption.endswith(ending) == (edit is CAPTION)


def test_a_run_copies_pictures_that_the_same_code_drew_from_the_same_numbers(desk):
    """The published picture has a mark here; a run with another colour draws its own."""
    published, record = desk.published / "toy_error.png", store.read_record(desk.published, "toy_error")
    published.write_bytes(published.read_bytes() + b"mark")
    store.write_record(desk.published, record.model_copy(update={"files": store.digests(desk.published, "toy_error")}))
    built = desk.clone.project.build("laptop")
    shutil.rmtree(built.folder)
    desk.companion("run", "toy")
    assert (built.figures / "toy/toy_error.png").read_bytes() == published.read_bytes()
    desk.replace(FIGURE, *COLOUR)
    desk.companion("run", "toy")
    assert not (built.figures / "toy/toy_error.png").read_bytes().endswith(b"mark")


def test_the_record_names_the_present_drawing_code(desk):
    """The page of the figure finds its code by these names."""
    size = "plt.subplots(figsize=(COLUMN, 4))"
    desk.replace(FIGURE, size, "_empty()")
    desk.replace(FIGURE, "    return figure\n", f"    return figure\n\n\ndef _empty():\n    return {size}\n")
    desk.companion("redraw")
    assert "clone.toy.figures.toy_error._empty" in store.read_record(desk.published, "toy_error").functions


def test_a_build_redraws_figures_without_a_kernel(desk):
    """One rule redraws both figures."""
    desk.replace(FIGURE, *CAPTION)
    desk.replace(SPREAD, *COLOUR)
    built = desk.companion("build", "--target", "figures")
    assert "✓ toy/toy_error redrawn" in built.output
    assert "✓ toy/toy_spread redrawn" in built.output
    assert "▸ toy" not in built.output
    assert built.changed == published_and_built(RECORD, "toy_spread.json", *SPREAD_PICTURES)
    assert all(cache_keys.is_fresh(desk.clone.project, target, "laptop") for target in TARGETS)


def test_a_damaged_picture_is_restored(desk):
    """Built and published files get the same bytes as before."""
    before = desk.clone.tree("figures", "_build")
    (desk.clone.project.build("laptop").figures / "toy/toy_error.svg").unlink()
    (desk.published / "toy_spread.png").write_bytes(b"")
    desk.companion("redraw", "toy")
    assert desk.clone.tree("figures", "_build") == before


def test_stale_numbers_are_redrawn_only_on_request(desk):
    """Without a name the figure is left for a run; by name it is redrawn from the last numbers and stays stale."""
    desk.replace(FIGURE, "expected=1.0", "expected=2.0")
    desk.replace(FIGURE, *CAPTION)
    assert desk.companion("redraw").changed == set()
    drawn = desk.companion("redraw", "toy/toy_error")
    assert drawn.stamps == {ERROR}
    assert drawn.changed == published_and_built(RECORD)
    (claim,) = store.read_record(desk.published, "toy_error").claims
    assert claim.expected == 1.0
    assert not cache_keys.is_fresh(desk.clone.project, ERROR, "laptop")


def test_a_fresh_clone_redraws_the_published_table(desk):
    """The data stay the same, a second command changes nothing, and no stamp is written."""
    shutil.rmtree(desk.clone.root / "_build")
    desk.replace(FIGURE, *COLOUR)
    drawn = desk.companion("redraw", "toy_error")
    assert drawn.changed == {f"figures/toy/{file}" for file in (RECORD, *PICTURES)}
    assert drawn.stamps == set()
    assert store.faults(desk.published, "toy_error") == []
    assert desk.companion("redraw", "toy_error").changed == set()


def test_a_fresh_clone_keeps_a_picture_of_the_present_code(desk):
    """Other fonts do not matter, so there is nothing to commit; a damaged picture is redrawn."""
    shutil.rmtree(desk.clone.root / "_build")
    picture = desk.published / "toy_error.svg"
    picture.write_bytes(picture.read_bytes() + b"<!-- other fonts -->")
    record = store.read_record(desk.published, "toy_error")
    digests = store.digests(desk.published, "toy_error")
    store.write_record(desk.published, record.model_copy(update={"files": digests}))
    assert desk.companion("redraw", "toy_error").changed == set()
    picture.write_bytes(b"")
    changed = desk.companion("redraw", "toy_error").changed
    assert {f"figures/toy/{RECORD}", f"figures/toy/{picture.name}"} <= changed
    assert changed <= {f"figures/toy/{file}" for file in (RECORD, *PICTURES)}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("toy_error --profile smoke", "in profile 'smoke' yet. Run `companion run toy --profile smoke`"),
        ("toy_spread toy_eror", "no figure and no notebook 'toy_eror'. Did you mean"),
    ],
)
def test_a_figure_without_numbers_and_an_unknown_one_are_refused(desk, arguments, words):
    """The published numbers belong to the default profile. No figure is redrawn then."""
    drawn = desk.companion("redraw", *arguments.split(), code=2)
    assert words in " ".join(drawn.output.split())
    assert drawn.changed == set()


def test_a_failing_draw_function_changes_no_file(desk):
    desk.replace(FIGURE, 'axes.set(xscale="log"', "axes.set(yscale=len")
    changed = desk.companion("redraw", code=1).changed
    assert {path for path in changed if path.startswith(("figures", "_build/laptop/figures"))} == set()
