"""Custom runs: of one figure, listed for people and programs, and compared by name."""

import json
import shutil

import pytest

import companion
from companion.build.run_spec import RunSpec
from companion.figures import store
from companion.project.notebooks import Notebook
from companion.runs.custom_runs import all_runs

FIGURE, CODE = "toy_error", "clone/toy/figures/toy_error.py"
NAMES = ("toy-11111111", "toy-22222222")


@pytest.fixture(scope="module")
def listed(ran, tmp_path_factory):
    """A clone with two custom runs, and files that are no runs; in the newer run the claim fails at another seed."""
    clone = ran.copy_to(tmp_path_factory.mktemp("listed") / "clone")
    build = clone.project.build("laptop")
    for name, started in zip(NAMES, ("2026-02-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00"), strict=True):
        custom = clone.project.custom_build(name)
        for kind in ("figures", "tables"):
            shutil.copytree(build.folder / kind, custom.folder / kind)
        custom.provenance.mkdir()
        RunSpec("toy", isolated=True).write(custom)
        origin = json.loads((build.provenance / "toy.json").read_text()) | {"started": started, "seconds": 12.5}
        (custom.provenance / "toy.json").write_text(json.dumps(origin))
    folder = clone.project.custom_build(NAMES[0]).figures / "toy"
    record = store.read_record(folder, FIGURE)
    parameters, failed = {**record.parameters, "seed": 7}, record.claims[0].model_copy(update={"holds": False})
    store.write_record(folder, record.model_copy(update={"parameters": parameters, "claims": (failed,)}))
    (clone.project.runs / "toy-33333333/.staging").mkdir(parents=True)
    (clone.project.runs / "notes.txt").write_text("mine")
    return clone


def test_runs_are_listed_newest_last(listed):
    """Each run is listed with its changed parameters, claims, start and page; a folder without figures is not a run."""
    older, newer = NAMES[1], NAMES[0]
    assert [line.strip() for line in listed.companion("list", "--runs").stdout.splitlines()] == [
        f"{older}  1/1 claims hold  2026-01-01T00:00:00+00:00",
        "published parameters",
        str(listed.project.runs / older / "index.html"),
        f"{newer}  0/1 claims hold  2026-02-01T00:00:00+00:00",
        "seed: 0 → 7",
        str(listed.project.runs / newer / "index.html"),
    ]


def test_runs_are_listed_as_json(listed):
    """Standard output contains only the JSON."""
    _, newer = json.loads(listed.companion("list", "--runs", "--json").stdout)
    assert newer == {
        "name": NAMES[0],
        "notebook": "toy",
        "changed": {"seed": [0, 7]},
        "started": "2026-02-01T00:00:00+00:00",
        "seconds": 12.5,
        "claims": 1,
        "hold": 0,
        "page": str(listed.project.runs / NAMES[0] / "index.html"),
    }


def test_an_empty_list_explains_how_to_make_a_run(pristine):
    """As JSON it is an empty list."""
    listed = pristine.companion("list", "--runs").stdout
    assert "There are no custom runs" in listed
    assert "companion run NOTEBOOK -p NAME=VALUE" in listed
    assert json.loads(pristine.companion("list", "--runs", "--json").stdout) == []


def test_a_run_with_a_damaged_figure_is_not_listed(listed, tmp_path):
    """Its claims cannot be checked."""
    clone = listed.copy_to(tmp_path / "clone")
    (clone.project.custom_build(NAMES[0]).figures / "toy" / f"{FIGURE}.png").unlink()
    assert [run.name for run in all_runs(clone.project)] == [NAMES[1]]


def test_runs_are_compared_by_name(listed):
    """A run is compared with another run or with a folder, from any folder of the clone."""
    finished = listed.companion("compare", NAMES[0], NAMES[1], folder="book")
    assert finished.returncode == 1, finished.stderr
    assert "claim 'toy-rate', holds: False and True" in finished.stdout
    assert listed.companion("compare", NAMES[1], "_build/laptop").returncode == 0


def test_an_unknown_run_is_an_error_that_lists_the_known_ones(listed, pristine):
    """The message suggests the closest name."""
    finished = listed.companion("compare", "toy-1111111", "figures")
    assert finished.returncode == 2
    assert f"no folder and no custom run 'toy-1111111'. Did you mean '{NAMES[0]}'?" in finished.stderr
    assert "Known: none." in pristine.companion("compare", "toy-1111111", "figures").stderr


@pytest.fixture(scope="module")
def one_figure(ran, tmp_path_factory):
    """A clone with a second figure that cannot be computed, in which the first figure was run alone."""
    clone = ran.copy_to(tmp_path_factory.mktemp("one_figure") / "clone")
    shutil.copyfile(clone.root / CODE, clone.root / "clone/toy/figures/impossible.py")
    cells = Notebook.named(clone.project, "toy").code
    (setup,) = [cell for cell in cells if cell.startswith("# setup")]
    clone.rewrite_cell("# setup", setup.replace("import toy_error", "import impossible, toy_error"))
    clone.rewrite_cell("# means", f"nothing = 1 / 0\n{cells[-1]}\npublish(impossible, nothing)\n")
    clone.before = clone.tree()
    clone.finished = clone.companion("run", "toy", "--figure", FIGURE)
    (clone.run_folder,) = clone.project.runs.iterdir()
    return clone


def test_one_figure_is_run_without_cells_that_only_others_need(ran, one_figure):
    """Its numbers equal those of a complete run in every digit, and no other file changes."""
    assert one_figure.finished.returncode == 0, one_figure.finished.stderr
    assert "toy: 1 figure, 1 claim holds" in one_figure.finished.stdout
    assert one_figure.run_folder.name.startswith(f"toy-{FIGURE}-")
    assert store.names_in(one_figure.run_folder / "figures/toy") == [FIGURE]
    table = f"tables/toy/{FIGURE}.csv"
    assert (one_figure.run_folder / table).read_bytes() == (ran.project.build("laptop").folder / table).read_bytes()
    after = {path: digest for path, digest in one_figure.tree().items() if not path.startswith("_build/runs/")}
    assert after == one_figure.before


def test_a_fresh_custom_run_is_not_computed_again(one_figure):
    """Tables, executed notebook and provenance stay the same."""
    kept = [f"_build/runs/{one_figure.run_folder.name}/{kind}" for kind in ("tables", "executed", "provenance")]
    before = one_figure.tree(*kept)
    one_figure.succeed("run", "toy", "--figure", FIGURE)
    assert one_figure.tree(*kept) == before


def test_a_figure_is_rerun_from_python(ran, tmp_path):
    """Other parameters keep their defaults, nothing is published, and a claim that fails raises no exception."""
    clone = ran.copy_to(tmp_path / "clone")
    clone.replace(CODE, "expected=1.0", "expected=2.0")
    before = clone.tree("figures")
    with clone.inside():
        result = companion.rerun("toy", FIGURE, seed=3, lengths=[5, 50])
    assert len(result.table) == 2
    assert [claim.holds for claim in result.claims] == [False]
    assert result.page.is_file()
    assert clone.tree("figures") == before
    (name,) = [run.name for run in all_runs(clone.project)]
    record = store.read_record(clone.project.custom_build(name).figures / "toy", FIGURE)
    assert record.parameters == {"seed": 3, "lengths": [5, 50], "repeats": 500}


@pytest.mark.parametrize(
    ("names", "parameters", "says"),
    [
        (("toy", "toy_eror"), {}, "has no figure 'toy_eror'. Did you mean 'toy_error'? Known: toy_error."),
        (("toi", "toy_error"), {}, "There is no notebook 'toi'. Did you mean 'toy'?"),
        (("toy", "toy_error"), {"sed": 1}, "no parameter 'sed'. Did you mean 'seed'?"),
    ],
)
def test_unknown_names_are_refused_before_a_kernel_starts(pristine, names, parameters, says):
    """The error of Python is a public class, and does not speak of a command line."""
    assigned = [word for name, value in parameters.items() for word in ("-p", f"{name}={value}")]
    finished = pristine.companion("run", names[0], "--figure", names[1], *assigned)
    assert finished.returncode == 2
    assert says in finished.stderr
    with pristine.inside(), pytest.raises(companion.UserError) as caught:
        companion.rerun(*names, **parameters)
    assert says in str(caught.value)
    assert "command line" not in str(caught.value)
    assert not pristine.project.generated.exists()
