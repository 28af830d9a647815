"""The chapter on message passing: tracked runs end where theory says, can be made anew, and the hard phase is one."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from chapters.message_passing import descents, runs, settings, theory
from chapters.message_passing.data import make
from chapters.message_passing.figures import reached_risk, risk_along_iterations
from chapters.message_passing.theory import Ends, Measured, widths
from companion import Claims
from lib.statistics import comparison_quantile

NAME = "message_passing"


def one_end(shown):
    """Return the claim that both starts end at one risk, which may be withheld."""
    claims = Claims("message-passing")
    risk_along_iterations.claim_one_end(claims, shown)
    return next(iter(claims))


def test_claims_hold_and_tables_are_finite(run):
    run.assert_sound()


def test_a_limit_is_the_end_of_a_line_with_its_error():
    """By the pseudoinverse of the line, with rows scaled to equal variance."""
    dimension = np.repeat([200.0, 400.0, 800.0], [4, 2, 1])
    risk = 0.3 + 5 / dimension + np.random.default_rng(0).normal(size=7) / np.sqrt(dimension)
    setting = {"length": 3, "snr": 4.0, "noise_std": 0.3, "alpha": 1.0, "start": "informed"}
    (limit,) = runs.at_infinity(pd.DataFrame({**setting, "dimension": dimension, "risk": risk})).values()
    design = np.stack([1 / dimension, np.ones(7)], axis=1) * np.sqrt(dimension)[:, None]
    inverse = np.linalg.pinv(design)
    line = inverse @ (np.sqrt(dimension) * risk)
    scatter = np.linalg.norm(np.sqrt(dimension) * risk - design @ line) / np.sqrt(5)
    np.testing.assert_allclose(limit, (line[1], scatter * np.linalg.norm(inverse[1])), rtol=1e-9)


def test_tracked_tables_have_the_columns_of_their_script():
    for name, columns in (
        ("passed", make.PASSED),
        ("hard_runs", make.PASSED),
        ("best_ridges", make.RIDGES),
        ("trained", make.TRAINED),
        ("phases", make.PHASES),
        ("descent_ridges", make.DESCENT_RIDGES),
        ("descended", make.DESCENDED),
    ):
        assert list(settings.read_tracked(name).columns) == list(columns)


def test_tracked_runs_are_those_that_make_writes(float64):
    """Their settings, all of them, and one run as numbers; another seed has other ones."""
    passed = settings.read_tracked("passed")
    expected = len(settings.COMPARED) * len(settings.ALPHAS) * sum(settings.RUNS.values()) * len(settings.STARTS)
    assert len(passed) == expected
    setting, size = settings.COMPARED[0], min(settings.RUNS)
    found = settings.infer(setting, alpha=settings.ALPHAS[0], dimension=size, seeds=[0, 1], starts=["informed"])
    again = make.numbers_of(found["informed"])[:-1].T
    mine = passed[
        (passed["length"] == setting.length)
        & (passed["alpha"] == settings.ALPHAS[0])
        & (passed["dimension"] == size)
        & (passed["start"] == "informed")
    ].sort_values("seed")
    tracked = mine[[*make.PASSED][7:-1]].to_numpy()[:2]
    np.testing.assert_allclose(again, tracked, rtol=1e-3)
    assert np.abs(again[0] - tracked[1]).max() > 1e-2


def test_trained_heads_saw_the_prompts_of_message_passing(float64):
    """The same key gives the same truth and prompts, so one trained risk is found again by that name."""
    trained = settings.read_tracked("trained")
    ridges = settings.read_tracked("best_ridges")
    row = ridges[(ridges["head"] == "linear") & (ridges["alpha"] == 1.0)].iloc[0]
    part = tuple(row[[*make.RIDGES][:7]])
    mine = trained[(trained["head"] == "linear") & (trained["alpha"] == 1.0) & (trained["length"] == row["length"])]
    np.testing.assert_allclose(make._trained(part), mine["risk"], rtol=1e-3)
    assert ridges[["ridge_k", "ridge_v"]].min().min() >= make.SMALLEST_RIDGE


def test_a_phase_is_hard_only_if_the_hidden_end_has_the_larger_evidence():
    low, high = Measured(0.3, 0.0), Measured(0.5, 0.0)
    assert Ends(high, low, (-1.0, -0.5)).hard
    assert not Ends(high, low, (-0.5, -1.0)).hard
    assert not Ends(high, high, (-1.0, -0.5)).hard
    assert Ends(high, low, (-0.5, -1.0)).two


def test_widths_of_a_grid_are_those_of_its_hard_points():
    """One cell with a hard interval, one with two ends of which the known one counts, one with a single end."""
    rows = [
        (length, 0.01, 1.0, alpha, 0.5, 0.3 if two else 0.5, -1.0, -0.5 if hard else -2.0)
        for length, two, hard in ((3, True, True), (10, True, False), (30, False, True))
        for alpha in (1.0, 1.5, 2.0)
    ]
    names = ["length", "noise_std", "snr", "alpha", "risk_uninformed", "risk_informed"]
    names += ["free_entropy_uninformed", "free_entropy_informed"]
    found = widths(pd.DataFrame(rows, columns=names)).set_index("length")
    assert found.loc[3, ["lowest", "highest", "two"]].tolist() == [1.0, 2.0, 3]
    assert found.loc[[10, 30], "lowest"].isna().all()
    assert found["two"].tolist() == [3, 3, 0]


def test_tracked_phases_are_those_of_the_library(float64):
    """One point of the hard phase and one next to it agree with the page's points within their standard errors."""
    phases = settings.read_tracked("phases")
    mine = phases[(phases["length"] == 10) & (phases["snr"] == 2.0) & (phases["noise_std"] == 0.03)]
    for alpha in (mine["alpha"].iloc[2], mine["alpha"].iloc[17]):
        (both,) = theory.solve_ends(settings.HARD, [alpha]).values()
        row = mine[mine["alpha"] == alpha].iloc[0]
        for start in settings.STARTS:
            tracked = Measured(row[f"risk_{start}"], row[f"std_error_{start}"])
            assert abs(getattr(both, start).away(tracked)) < comparison_quantile(4)
        assert both.hard == (alpha > 1.5)


def test_tracked_phases_have_more_points_where_the_phase_is_hard():
    phases = settings.read_tracked("phases")
    for _, along in phases.groupby(["length", "snr", "noise_std"], sort=False):
        assert (along["points"] >= make.points_needed(along)).all()
    assert (phases.loc[theory.has_two_ends(phases), "points"] > make.GRID_POINTS).all()
    assert (phases.loc[make.undecided(phases), "points"] == make.FINEST_GRID_POINTS).all()
    assert (phases["points"] == make.GRID_POINTS).mean() > 0.5
    errors = phases[[f"std_error_{start}" for start in settings.STARTS]]
    assert errors.max().max() < theory.DIFFERENT


def test_more_points_go_to_two_ends_their_neighbours_and_large_errors():
    columns = ["risk_uninformed", "risk_informed", "std_error_uninformed", "std_error_informed"]
    small, large = 0.1 * make.LARGEST_ERROR, 2 * make.LARGEST_ERROR
    rows = [(0.9, 0.9), (0.9, 0.9), (0.8, 0.5), (0.4, 0.4), (0.3, 0.3), (0.2, 0.2)]
    ends = pd.DataFrame([(*risks, small, small) for risks in rows], columns=columns)
    assert make.near_two_ends(ends).tolist() == [False, True, True, True, False, False]
    ends.loc[5, "std_error_informed"] = large
    assert make.near_two_ends(ends).tolist() == [False, True, True, True, False, True]


@pytest.mark.parametrize(("apart", "error", "more"), [(0.1, 0.01, False), (-0.02, 0.01, True), (0.02, 0.01, True)])
def test_the_most_points_go_to_free_entropies_that_hardly_differ(apart, error, more):
    row = {"risk_uninformed": 0.8, "risk_informed": 0.5, "std_error_uninformed": 0.0, "std_error_informed": 0.0}
    row |= {"free_entropy_uninformed": -1.0, "free_entropy_informed": -1.0 + apart, "entropy_std_error": error}
    assert make.undecided(pd.DataFrame([row])).tolist() == [more]
    needed = make.points_needed(pd.DataFrame([row | {"points": make.FINER_GRID_POINTS}]))
    assert needed.tolist() == [make.FINEST_GRID_POINTS if more else make.FINER_GRID_POINTS]
    assert make.points_needed(pd.DataFrame([row | {"points": make.GRID_POINTS}])).tolist() == [make.FINER_GRID_POINTS]
    assert make.undecided(pd.DataFrame([row | {"risk_informed": 0.8}])).tolist() == [False]


def test_ends_near_the_hard_phase_are_known_well(float64):
    """The reference is that of `tests/lib/test_message_passing.py`, on other points."""
    (both,) = theory.solve_ends(settings.HARD, [2.239]).values()
    assert both.uninformed.std_error < theory.LARGEST_ERROR
    assert abs(both.uninformed.away(Measured(0.84134, 4.9e-4))) < comparison_quantile(1)
    assert both.gap.std_error >= both.uninformed.std_error


@pytest.mark.parametrize("seed", [13, 15])
def test_both_starts_end_at_one_risk_at_other_seeds(seed, float64):
    """After the few iterations that a small run shows, they have not at these seeds: the claim is about the ends."""
    shown = runs.simulate_message_passing_runs(alpha=3.0, dimension=300, runs=8, iterations=12, seed=seed)
    claim = one_end(shown)
    assert claim.holds
    assert claim.catches_alternative
    apart = np.abs(shown.by_start["uninformed"].risk - shown.by_start["informed"].risk).max(axis=0)
    assert apart[-1] < 0.1 * apart[11]


def test_message_passing_is_below_heads_on_the_same_prompts():
    """Run by run, at the same dimension: not only the means."""
    passed, trained = settings.read_tracked("passed"), settings.read_tracked("trained")
    keys = ["length", "snr", "noise_std", "alpha", "dimension", "seed"]
    pairs = trained.merge(passed[passed["start"] == "uninformed"], on=keys, suffixes=("_head", "_passed"))
    assert len(pairs) == len(trained)
    assert (pairs["risk_passed"] < pairs["risk_head"]).mean() > 0.95


def test_the_best_risk_stands_at_all_settings_that_are_compared(float64):
    best = theory.solve_best_risks([2.0, 4.0])
    assert set(best) == {(setting, alpha) for setting in settings.COMPARED for alpha in (2.0, 4.0)}
    assert all(best[setting, 4.0].value < best[setting, 2.0].value for setting in settings.COMPARED)
    assert set(reached_risk.COLOURS) == {*make.HEADS, "Bayes-optimal"}


@pytest.mark.parametrize("wrong", [{"alpha": 0.1}, {"runs": 2}, {"dimension": 50}, {"iterations": 4}])
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)


def test_descents_are_on_the_prompts_of_message_passing():
    """Every tracked descent has its run of message passing, except at sample ratios for which there is none."""
    descended, messages = settings.read_tracked("descended"), descents.read_message_passing_runs()
    keys = ["length", "snr", "noise_std", "alpha", "dimension", "seed", "start"]
    expected = len(settings.STARTS) * descents.RUNS * (len(settings.ALPHAS) + len(descents.HARD_ALPHAS))
    assert len(descended) == expected
    assert len(descended.merge(messages, on=keys)) == len(messages)
    assert descended["steps"].max() < descents.STEPS


def test_ridges_were_chosen_on_prompts_that_nothing_else_sees():
    tried, seen = settings.read_tracked("descent_ridges"), settings.read_tracked("descended")
    assert not set(tried["seed"]) & set(seen["seed"])
    for alpha in descents.HARD_ALPHAS:
        ridge = descents.ridge(settings.HARD, alpha)
        means = tried[tried["alpha"] == alpha].groupby(["ridge_k", "ridge_v"])["risk"].mean()
        assert means[ridge] == means.min()


def test_a_tracked_descent_can_be_made_anew(float64):
    descended = settings.read_tracked("descended")
    row = descended[descended["length"] == descents.EASY.length].iloc[0]
    how = {"alpha": row["alpha"], "ridge": (row["ridge_k"], row["ridge_v"]), "dimension": int(row["dimension"])}
    again = descents.descend(descents.EASY, row["start"], **how, seeds=[int(row["seed"])])
    np.testing.assert_allclose(again.risk[0], row["risk"], atol=1e-3)


def test_the_moves_ahead_of_a_run_are_bounded_by_a_geometric_series():
    """The bound is above what the run still moves, also if it oscillates; moves that do not shrink have no bound."""
    rest, times = np.zeros(21), np.arange(21.0)

    def ahead(path):
        return risk_along_iterations.ahead([np.stack([rest + 3, path - 3])])

    for rate in (0.7, -0.7, 0.9, -0.9):
        scale = np.std([3.0, rate**20 - 3], ddof=1)
        assert abs(rate) ** 20 / scale < ahead(rate**times) < 30 * abs(rate) ** 20 / scale
    assert ahead(rest) == 0.0
    assert ahead(1.1**times) == np.inf
    assert ahead((-1.0) ** times) == np.inf


def test_one_end_is_claimed_only_for_runs_at_rest():
    """Both starts end at the same risk or not; the claim fails only if they are at rest at different ones."""
    sets = np.asarray([[0.0], [1.0]])

    def start(end, rate):
        return SimpleNamespace(risk=sets + end + rate ** np.arange(30.0))

    def claim(first, second):
        return one_end(runs.Shown({"uninformed": first, "informed": second}, {}))

    assert claim(start(0.0, 0.3), start(0.0, 0.4)).holds
    assert not claim(start(0.0, 0.3), start(0.5, 0.3)).holds
    assert "not all runs are at rest" in claim(start(0.0, 0.3), start(0.0, 0.95)).reason
