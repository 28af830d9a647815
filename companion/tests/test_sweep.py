"""Sweeps: results are kept although claims fail, cached runs are not repeated, and tables collect all points."""

import pandas as pd
import pytest

from companion.cli import sweep as command
from companion.figures import store
from companion.figures.claims import Claims
from companion.io.errors import UserError
from companion.runs import sweep as sweeping

FIGURE, CODE = "toy_error", "clone/toy/figures/toy_error.py"
POINTS = ("seed=1", "repeats=200")


@pytest.fixture(scope="module")
def swept(pristine, tmp_path_factory):
    """A clone with a false claim, swept over one seed and then over two."""
    clone = pristine.copy_to(tmp_path_factory.mktemp("swept") / "clone")
    clone.replace(CODE, "expected=1.0", "expected=2.0")
    clone.first = clone.companion("sweep", "toy", "-p", POINTS[0], "-p", POINTS[1])
    clone.before = clone.tree("_build/runs")
    clone.second = clone.companion("sweep", "-p", "seed=1:2", "-p", POINTS[1])
    return clone


def test_a_sweep_counts_how_often_each_claim_holds(swept):
    """The exit code is 3, as for a run, and the output has the folder of the tables."""
    assert swept.first.returncode == 3
    for words in ("Running 1 of 1 (0 cached)", "toy-rate", "0/1", str(swept.project.sweeps / "toy-seed-repeats")):
        assert words in swept.first.stdout


def test_a_run_whose_claim_fails_keeps_its_results(swept):
    """The figures are complete, and their records contain the failed claim."""
    runs = sorted(swept.project.runs.iterdir())
    assert len(runs) == 2
    for run in runs:
        assert store.faults(run / "figures/toy", FIGURE) == []
        (claim,) = store.read_record(run / "figures/toy", FIGURE).claims
        assert not claim.holds


def test_a_wider_sweep_computes_only_its_new_points(swept):
    """Cached runs are not changed; without a name, all notebooks with these parameters are swept."""
    assert "Running 1 of 2 (1 cached)" in swept.second.stdout
    after = swept.tree("_build/runs")
    assert {path: after[path] for path in swept.before} == swept.before


def test_the_tables_of_a_sweep_contain_every_point(swept):
    """The first columns of claims and numbers contain the point. A picture of the claims is an SVG and a PNG."""
    folder = swept.project.sweeps / "toy-seed-repeats"
    claims = pd.read_csv(folder / "claims.csv")
    assert list(claims["seed"]) == [1, 2]
    assert list(claims["claim"].unique()) == ["toy-rate"]
    assert not claims["holds"].any()
    assert (claims["deviation"] > 1).all()
    numbers = pd.read_csv(folder / f"{FIGURE}.csv")
    assert list(numbers.columns[:2]) == ["seed", "repeats"]
    assert list(numbers["seed"].unique()) == [1, 2]
    assert numbers.groupby("seed").size().nunique() == 1
    assert "<svg" in (folder / "claims.svg").read_text(encoding="utf-8")
    assert (folder / "claims.png").stat().st_size > 5000


def test_an_edit_makes_the_runs_of_a_sweep_stale(swept, tmp_path):
    """An edit of a number or of a caption does so, an edit of a comment does not."""
    clone = swept.copy_to(tmp_path / "clone")
    (sweep,) = sweeping.plan(clone.project, ["toy"], POINTS, "laptop")
    assert all(map(sweep.is_cached, sweep.runs))
    clone.replace(CODE, "is the 99.9", "is a 99.9")
    assert all(map(sweep.is_cached, sweep.runs))
    clone.replace(CODE, "Points are means", "Points are averages")
    assert not any(map(sweep.is_cached, sweep.runs))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("seed=1:3", ("seed", [1, 2, 3])),
        ("seed=4", ("seed", [4])),
        ("rate=1e-3,0.5", ("rate", [0.001, 0.5])),
        ("lengths=[1, 2],[3]", ("lengths", [[1, 2], [3]])),
        ("seed=-1:1", ("seed", [-1, 0, 1])),
    ],
)
def test_values_of_a_sweep(text, values):
    """A range includes both ends; a list may contain lists."""
    assert sweeping.parse_values(text) == values


@pytest.mark.parametrize(
    ("names", "values", "says"),
    [
        (["toy"], ["seed"], "A parameter is one word, name=value"),
        *((["toy"], [text], "seed") for text in ("seed=3:1", "seed=", "seed=-2:1")),
        (["toy"], ["typo=1:2"], "typo"),
        (["tyo"], ["seed=1:2"], "Did you mean 'toy'"),
        ([], ["typo=1:2"], "No notebook has"),
        ([], [], "needs values"),
    ],
)
def test_a_wrong_sweep_is_refused_before_it_starts(pristine, names, values, says):
    """Every point is checked first."""
    with pytest.raises(UserError, match=says):
        sweeping.plan(pristine.project, names, values, "laptop")


def test_deviations_are_in_tolerances():
    """A claim holds up to 1; one without tolerance is kept or broken."""
    claims = Claims("a", source="ours")
    claims.at_least("rate", "A.", 3.0, 2.0, within=0.5, because="noise", rejects=("b", 1.0))
    (claim,) = claims
    outcome = sweeping._outcome(claim)
    assert (outcome["deviation"], outcome["holds"]) == (-2.0, True)
    assert command._in_tolerances(float("-inf")) == "within its bound"
    assert command._in_tolerances(float("inf")) == "beyond its bound"
    assert command._in_tolerances(0.251) == "0.25 tolerances"
