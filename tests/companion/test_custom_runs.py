"""Runs of one's own: of one figure alone; listed, for people and programs, and compared by their names."""

import json
import shutil

import pytest

from companion.figures import store
from companion.project.notebooks import Notebook
from companion.runs.custom_runs import all_runs

FIGURE, CODE = "toy_error", "clone/toy/figures/toy_error.py"
OWN = ("toy-11111111", "toy-22222222")


@pytest.fixture(scope="module")
def listed(ran, tmp_path_factory):
    """A clone with two runs: the newer one of another seed, where the claim fails; and what is no run."""
    clone = ran.copy_to(tmp_path_factory.mktemp("listed") / "clone")
    build = clone.project.build("laptop")
    for name, started in zip(OWN, ("2026-02-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00"), strict=True):
        own = clone.project.own_build(name)
        for kind in ("figures", "tables"):
            shutil.copytree(build.folder / kind, own.folder / kind)
        own.provenance.mkdir()
        origin = json.loads((build.provenance / "toy.json").read_text()) | {"started": started, "seconds": 12.5}
        (own.provenance / "toy.json").write_text(json.dumps(origin))
    path = clone.project.own_build(OWN[0]).figures / "toy" / f"{FIGURE}.json"
    record = json.loads(path.read_text())
    record["parameters"]["seed"] = 7
    record["claims"][0]["holds"] = False
    path.write_text(json.dumps(record))
    (clone.project.runs / "toy-33333333/.staging").mkdir(parents=True)
    (clone.project.runs / "notes.txt").write_text("mine")
    return clone


def test_runs_are_listed_newest_last(listed):
    """Each with its parameters, its claims, when, and where its page is; what left no figures is no run."""
    said = listed.companion("runs")
    assert said.returncode == 0, said.stderr
    older, newer = OWN[1], OWN[0]
    assert [line.strip() for line in said.stdout.splitlines()] == [
        f"{older}  1/1 claims hold  2026-01-01T00:00:00+00:00",
        "published parameters",
        str(listed.project.runs / older / "index.html"),
        f"{newer}  0/1 claims hold  2026-02-01T00:00:00+00:00",
        "seed: 0 → 7",
        str(listed.project.runs / newer / "index.html"),
    ]


def test_runs_are_json_for_programs(listed):
    """Nothing else on standard output."""
    _, newer = json.loads(listed.companion("runs", "--json").stdout)
    assert newer == {
        "name": OWN[0],
        "notebook": "toy",
        "changed": {"seed": [0, 7]},
        "started": "2026-02-01T00:00:00+00:00",
        "seconds": 12.5,
        "claims": 1,
        "hold": 0,
        "page": str(listed.project.runs / OWN[0] / "index.html"),
    }


def test_no_runs_is_said(pristine):
    """In a sentence that says how to make one; for programs it is a list."""
    assert "There are no runs" in pristine.companion("runs").stdout
    assert "companion run NOTEBOOK -p NAME=VALUE" in pristine.companion("runs").stdout
    assert json.loads(pristine.companion("runs", "--json").stdout) == []


def test_run_whose_figure_is_damaged_is_none(listed, tmp_path):
    """It is not said to hold what cannot be checked."""
    clone = listed.copy_to(tmp_path / "clone")
    (clone.project.own_build(OWN[0]).figures / "toy" / f"{FIGURE}.png").unlink()
    assert [run.name for run in all_runs(clone.project)] == [OWN[1]]


def test_run_of_a_notebook_that_is_gone_is_listed(listed, tmp_path):
    """All that it was run with is news."""
    clone = listed.copy_to(tmp_path / "clone")
    clone.project.notebook("toy").unlink()
    shutil.rmtree(clone.project.published)
    newer = all_runs(clone.project)[-1]
    record = store.read_record(newer.build.figures / "toy", FIGURE)
    assert newer.changed == {name: (None, value) for name, value in record.parameters.items()}


def test_runs_are_compared_by_name(listed):
    """With one another, and with a folder; from anywhere in the clone."""
    said = listed.python("-m", "companion", "compare", OWN[0], OWN[1], cwd=listed.root / "book")
    assert said.returncode == 1, said.stderr
    assert "claim 'toy-rate', holds: False and True" in said.stdout
    assert listed.companion("compare", OWN[1], "_build/laptop").returncode == 0


def test_name_of_no_run_is_answered_with_those_there_are(listed, pristine):
    """And with a guess."""
    said = listed.companion("compare", "toy-1111111", "figures")
    assert said.returncode == 2
    assert f"no folder and no run 'toy-1111111'. Did you mean '{OWN[0]}'?" in said.stderr
    assert "Known: none." in pristine.companion("compare", "toy-1111111", "figures").stderr


@pytest.fixture(scope="module")
def one_figure(ran, tmp_path_factory):
    """A clone whose notebook has a second figure, which cannot be computed, in which the first was run alone."""
    clone = ran.copy_to(tmp_path_factory.mktemp("one_figure") / "clone")
    shutil.copyfile(clone.root / CODE, clone.root / "clone/toy/figures/impossible.py")
    cells = Notebook.named(clone.project, "toy").code
    (setup,) = [cell for cell in cells if cell.startswith("# setup")]
    clone.rewrite_cell("# setup", setup.replace("import toy_error", "import impossible, toy_error"))
    clone.rewrite_cell("# means", f"nothing = 1 / 0\n{cells[-1]}\npublish(impossible, nothing)\n")
    clone.before = clone.tree()
    clone.finished = clone.companion("run", "toy", "--figure", FIGURE)
    (clone.own,) = clone.project.runs.iterdir()
    return clone


def test_one_figure_is_run_without_what_others_need(ran, one_figure):
    """The same numbers to the last digit, in a folder of its own; what is published stays."""
    assert one_figure.finished.returncode == 0, one_figure.finished.stderr
    assert "toy: 1 figure, 1 claim holds" in one_figure.finished.stdout
    assert one_figure.own.name.startswith(f"toy-{FIGURE}-")
    assert store.names_in(one_figure.own / "figures/toy") == [FIGURE]
    table = f"tables/toy/{FIGURE}.csv"
    assert (one_figure.own / table).read_bytes() == (ran.project.build("laptop").folder / table).read_bytes()
    after = {path: digest for path, digest in one_figure.tree().items() if not path.startswith("_build/runs/")}
    assert after == one_figure.before


def test_record_of_one_figure_names_the_same_steps(ran, one_figure):
    """As if all had been run."""
    mine = store.read_record(one_figure.own / "figures/toy", FIGURE)
    published = store.read_record(ran.project.published / "toy", FIGURE)
    assert mine.steps == published.steps
    assert mine.sources == published.sources


def test_run_of_one_figure_has_a_page_and_is_listed(one_figure):
    """Nothing was changed in it, and nothing moved."""
    (run,) = all_runs(one_figure.project)
    assert (run.name, run.notebook, run.changed) == (one_figure.own.name, "toy", {})
    page = (one_figure.own / "index.html").read_text(encoding="utf-8")
    assert "No number moved." in page


def test_run_of_one_figure_is_not_computed_twice(one_figure):
    """What is there is there."""
    before = one_figure.tree(f"_build/runs/{one_figure.own.name}/tables", f"_build/runs/{one_figure.own.name}/executed")
    stamp = (one_figure.own / "provenance/toy.json").read_bytes()
    assert one_figure.companion("run", "toy", "--figure", FIGURE).returncode == 0
    after = one_figure.tree(f"_build/runs/{one_figure.own.name}/tables", f"_build/runs/{one_figure.own.name}/executed")
    assert after == before
    assert (one_figure.own / "provenance/toy.json").read_bytes() == stamp


def test_unknown_figure_is_refused(pristine):
    """With the figures there are; nothing starts."""
    finished = pristine.companion("run", "toy", "--figure", "toy_eror")
    assert finished.returncode == 2
    assert f"Notebook 'toy' has no figure 'toy_eror'. Did you mean '{FIGURE}'? Known: {FIGURE}." in finished.stderr
    assert not pristine.project.generated.exists()


CALL = """\
from companion import rerun
mine = rerun("toy", "toy_error", seed=3, lengths=[5, 50])
print(len(mine.table), [claim.holds for claim in mine.claims], mine.page.is_file())
"""


def test_figure_is_rerun_from_python(ran, tmp_path):
    """With the notebook's other parameters, in a run of its own; a claim that fails is told, not raised."""
    clone = ran.copy_to(tmp_path / "clone")
    clone.replace(CODE, "expected=1.0", "expected=2.0")
    before = clone.tree("figures")
    called = clone.python("-c", CALL)
    assert called.stdout == "2 [False] True\n", called.stderr
    assert clone.tree("figures") == before
    (name,) = [run.name for run in all_runs(clone.project)]
    record = store.read_record(clone.project.own_build(name).figures / "toy", FIGURE)
    assert record.parameters == {"seed": 3, "lengths": [5, 50], "repeats": 500}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("'toy', 'toy_eror'", "has no figure 'toy_eror'. Did you mean 'toy_error'?"),
        ("'toi', 'toy_error'", "There is no notebook 'toi'. Did you mean 'toy'?"),
        ("'toy', 'toy_error', sed=1", "no parameter 'sed'. Did you mean 'seed'?"),
    ],
)
def test_what_cannot_be_rerun_is_told_before_a_kernel_starts(ran, call, says):
    called = ran.python("-c", f"from companion import rerun; rerun({call})")
    assert called.returncode == 1
    assert says in called.stderr.splitlines()[-1]
