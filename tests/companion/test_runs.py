"""The runs with parameters of one's own are listed, for people and programs, and compared by their names."""

import json
import shutil

import pytest

from companion import figure_set
from companion.runs import all_runs

FIGURE = "toy_error"
OWN = ("toy-11111111", "toy-22222222")


@pytest.fixture(scope="module")
def listed(ran, tmp_path_factory):
    """A clone with two runs: the newer one of another seed, where the claim fails; and what is no run."""
    clone = ran.copy_to(tmp_path_factory.mktemp("listed") / "clone")
    build = clone.house.build("laptop")
    for name, started in zip(OWN, ("2026-02-01T00:00:00+00:00", "2026-01-01T00:00:00+00:00"), strict=True):
        own = clone.house.own_build(name)
        for kind in ("figures", "tables"):
            shutil.copytree(build.folder / kind, own.folder / kind)
        own.provenance.mkdir()
        origin = json.loads((build.provenance / "toy.json").read_text()) | {"started": started, "seconds": 12.5}
        (own.provenance / "toy.json").write_text(json.dumps(origin))
    path = clone.house.own_build(OWN[0]).figures / "toy" / f"{FIGURE}.json"
    record = json.loads(path.read_text())
    record["parameters"]["seed"] = 7
    record["claims"][0]["holds"] = False
    path.write_text(json.dumps(record))
    (clone.house.runs / "toy-33333333/.staging").mkdir(parents=True)
    (clone.house.runs / "notes.txt").write_text("mine")
    return clone


def test_runs_are_listed_newest_last(listed):
    """Each with its parameters, its claims, when, and where its page is; what left no figures is no run."""
    said = listed.companion("runs")
    assert said.returncode == 0, said.stderr
    older, newer = OWN[1], OWN[0]
    assert [line.strip() for line in said.stdout.splitlines()] == [
        f"{older}  1/1 claims hold  2026-01-01T00:00:00+00:00",
        "as published",
        str(listed.house.runs / older / "index.html"),
        f"{newer}  0/1 claims hold  2026-02-01T00:00:00+00:00",
        "seed: 0 → 7",
        str(listed.house.runs / newer / "index.html"),
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
        "page": str(listed.house.runs / OWN[0] / "index.html"),
    }


def test_no_runs_is_said(pristine):
    """In a sentence that says how to make one; for programs it is a list."""
    assert "There are no runs" in pristine.companion("runs").stdout
    assert "companion run NOTEBOOK -p NAME=VALUE" in pristine.companion("runs").stdout
    assert json.loads(pristine.companion("runs", "--json").stdout) == []


def test_run_whose_figure_is_damaged_is_none(listed, tmp_path):
    """It is not said to hold what cannot be checked."""
    clone = listed.copy_to(tmp_path / "clone")
    (clone.house.own_build(OWN[0]).figures / "toy" / f"{FIGURE}.png").unlink()
    assert [run.name for run in all_runs(clone.house)] == [OWN[1]]


def test_run_of_a_notebook_that_is_gone_is_listed(listed, tmp_path):
    """All that it was run with is news."""
    clone = listed.copy_to(tmp_path / "clone")
    clone.house.notebook("toy").unlink()
    shutil.rmtree(clone.house.published)
    newer = all_runs(clone.house)[-1]
    record = figure_set.read_record(newer.build.figures / "toy", FIGURE)
    assert newer.changed == {name: (None, value) for name, value in record["parameters"].items()}


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
