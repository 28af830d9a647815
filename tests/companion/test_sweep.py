"""Runs over several values of a parameter: kept whatever their claims say, not made twice, put together in tables."""

import pandas as pd
import pytest

from companion.cli import sweep as command
from companion.figures import store
from companion.figures.record import ClaimRecord
from companion.figures.schema import Alternative, Claim
from companion.io.errors import UserError
from companion.runs import sweep as sweeping

FIGURE, CODE = "toy_error", "clone/toy/figures/toy_error.py"
POINTS = ("seed=1:2", "repeats=200")


@pytest.fixture(scope="module")
def swept(pristine, tmp_path_factory):
    """A clone whose claim expects what is not true, swept over two seeds, then over three."""
    clone = pristine.copy_to(tmp_path_factory.mktemp("swept") / "clone")
    clone.replace(CODE, "expected=1.0", "expected=2.0")
    clone.first = clone.companion("sweep", "toy", "-p", POINTS[0], "-p", POINTS[1])
    clone.before = clone.tree("_build/runs")
    clone.second = clone.companion("sweep", "-p", "seed=1:3", "-p", POINTS[1])
    return clone


def test_sweep_says_how_often_each_claim_holds(swept):
    """Exit code 3, as for a run; the claim, and where its tables are."""
    assert swept.first.returncode == 3
    assert "Running 2 of 2 (0 cached)" in swept.first.stdout
    assert "toy-rate" in swept.first.stdout
    assert "0/2" in swept.first.stdout
    assert str(swept.project.sweeps / "toy-seed-repeats") in swept.first.stdout


def test_run_whose_claim_fails_keeps_its_results(swept):
    """With parameters of one's own: whole figures, whose records say so."""
    runs = sorted(swept.project.runs.iterdir())
    assert len(runs) == 3
    for run in runs:
        assert store.faults(run / "figures/toy", FIGURE) == []
        (claim,) = store.read_record(run / "figures/toy", FIGURE).claims
        assert not claim.holds


def test_wider_sweep_computes_only_what_is_new(swept):
    """What was there is not touched; a notebook that has the parameters needs not be named."""
    assert "Running 1 of 3 (2 cached)" in swept.second.stdout
    after = swept.tree("_build/runs")
    assert {path: after[path] for path in swept.before} == swept.before


def test_tables_of_a_sweep_have_a_row_for_every_point(swept):
    """Claims, and the figure's numbers, with the point in front."""
    folder = swept.project.sweeps / "toy-seed-repeats"
    claims = pd.read_csv(folder / "claims.csv")
    assert list(claims["seed"]) == [1, 2, 3]
    assert list(claims["claim"].unique()) == ["toy-rate"]
    assert not claims["holds"].any()
    assert (claims["deviation"] > 1).all()
    numbers = pd.read_csv(folder / f"{FIGURE}.csv")
    assert list(numbers.columns[:2]) == ["seed", "repeats"]
    assert list(numbers["seed"].unique()) == [1, 2, 3]
    assert numbers.groupby("seed").size().nunique() == 1


def test_picture_of_a_sweep_is_drawn(swept):
    """As SVG, and as PNG."""
    folder = swept.project.sweeps / "toy-seed-repeats"
    assert "<svg" in (folder / "claims.svg").read_text(encoding="utf-8")
    assert (folder / "claims.png").stat().st_size > 5000


def test_edit_makes_runs_of_a_sweep_stale(swept, tmp_path):
    """Of a number or of a picture; of a comment not."""
    clone = swept.copy_to(tmp_path / "clone")
    (sweep,) = sweeping.plan(clone.project, ["toy"], POINTS, "laptop")
    assert all(map(sweep.is_there, sweep.points))
    clone.replace(CODE, "# the 99.9", "# a 99.9")
    assert all(map(sweep.is_there, sweep.points))
    clone.replace(CODE, "Points are means", "Points are averages")
    assert not any(map(sweep.is_there, sweep.points))


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
    """A range with both ends, or a list; lists are values too."""
    assert sweeping.parse_values(text) == values


@pytest.mark.parametrize("text", ["seed", "seed=3:1", "seed="])
def test_values_that_are_none_are_refused(text):
    """With the way to write them."""
    with pytest.raises(UserError):
        sweeping.parse_values(text)


@pytest.mark.parametrize(
    ("names", "values", "says"),
    [
        (["toy"], ["seed=-2:1"], "seed"),
        (["toy"], ["typo=1:2"], "typo"),
        (["tyo"], ["seed=1:2"], "Did you mean 'toy'"),
        ([], ["typo=1:2"], "No notebook has"),
        ([], [], "needs values"),
    ],
)
def test_mistaken_sweep_starts_nothing(pristine, names, values, says):
    """Every point is checked first."""
    with pytest.raises(UserError, match=says):
        sweeping.plan(pristine.project, names, values, "laptop")


def test_deviation_counts_in_tolerances():
    """Two-sided for an equality, signed for a bound; 1 is where a claim ends to hold."""

    def outcome(relation, tolerance):
        claim = Claim("a", "A.", "ours", 3.0, 2.0, tolerance, Alternative("b", 5.0), relation=relation)
        return sweeping._outcome(ClaimRecord.of(claim))

    assert outcome("=", 0.5)["deviation"] == 2.0
    assert outcome("≤", 0.5)["deviation"] == 2.0
    assert outcome("≥", 0.5)["deviation"] == -2.0
    assert outcome("=", 0.0)["deviation"] == float("inf")
    assert not outcome("=", 0.5)["holds"]


def test_a_bound_without_tolerance_is_kept_or_broken():
    assert command._in_tolerances(float("-inf")) == "within its bound"
    assert command._in_tolerances(float("inf")) == "beyond its bound"
    assert command._in_tolerances(0.251) == "0.25 tolerances"
