"""The chapter on finite samples: tracked runs agree with theory, are above the optimal risk, and can be repeated."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from chapters.finite_samples import extrapolation, gradient_training, published_settings, style, theory, training
from chapters.finite_samples.data import make
from chapters.finite_samples.extrapolation import solve_infinite_size, solve_risk_differences
from chapters.finite_samples.figures import overlaps_against_samples
from chapters.finite_samples.parameters import ALPHAS, Parameters
from companion import Claims
from lib.single_location.activations import _affine_fit
from lib.single_location.erm import _GRADIENT_TOLERANCE
from lib.statistics import comparison_quantile

NAME = "finite_samples"


def test_claims_hold_and_tables_are_finite(run):
    # with so few points, rounding decides whether an iteration ends
    run.assert_sound("finite-samples-right-floor")


def test_a_head_that_has_seen_the_wrong_number_of_prompts_is_noticed(run):
    """The alternative of the two claims of agreement is far beyond their tolerance, not just beyond it."""
    for name in training.HEADS:
        claim = run.claims[f"finite-samples-{name}"]
        assert claim.alternative.measured > 3 * claim.tolerance


@pytest.mark.parametrize("name", training.HEADS)
def test_replica_is_where_simulated_training_ends(float64, name):
    """Risk, overlaps and training loss of the tracked runs at D = 200, 400, 800, at six sample ratios."""
    runs = training.read_tracked("runs")
    limits = solve_infinite_size(runs.loc[runs["head"] == name])
    deviations = []
    for (_, alpha), run in limits.items():
        ridge = theory.ridge_at(training.read_tracked("best_ridges"), name, alpha)
        assert min(ridge) >= 0.3
        fixed = theory.solve_fixed_point(training.HEADS[name], alpha, ridge, points=512)
        assert fixed.converged
        predicted = theory.quantities_of(fixed)
        deviations += [
            (run[q].value - predicted[q].value) / np.hypot(run[q].std_error, predicted[q].std_error)
            for q in theory.QUANTITIES
        ]
    deviations = np.abs(deviations)
    assert deviations.max() < comparison_quantile(deviations.size)
    assert np.mean(deviations < 2) > 0.85
    assert deviations.size >= 36


def test_trained_heads_are_worse_than_the_best_at_every_setting(float64):
    """By more than their error bars, softmax and linear, at all tracked sample ratios."""
    limits = solve_infinite_size(training.read_tracked("runs"))
    assert sorted(alpha for _, alpha in limits) == sorted(2 * ALPHAS)
    optimal = theory.bayes_optimal(ALPHAS)
    for (_, alpha), run in limits.items():
        excess = run["risk"].value - optimal[alpha]
        assert excess > comparison_quantile(len(limits)) * run["risk"].std_error


def test_the_limit_of_an_exact_straight_line_is_its_end():
    """Quantities that are a + b/D without noise go to a, with no error."""
    size = np.repeat(list(training.RUNS), 3)
    columns = {quantity: index + 5.0 / size for index, quantity in enumerate(theory.QUANTITIES)}
    runs = pd.DataFrame({"head": "softmax", "alpha": 1.0, "dimension": size, **columns})
    (found,) = solve_infinite_size(runs).values()
    np.testing.assert_allclose([found[quantity].value for quantity in theory.QUANTITIES], range(6), atol=1e-10)
    np.testing.assert_allclose([found[quantity].std_error for quantity in theory.QUANTITIES], 0.0, atol=1e-10)


def test_tracked_runs_are_those_that_make_writes(float64):
    """Their columns, their settings in order, and one run as numbers; the chapter does another one again."""
    runs, weak = training.read_tracked("runs"), training.read_tracked("weak_ridges")
    last = weak.iloc[-1]
    again = make.train_all(
        last["head"],
        last["start"],
        alpha=make.WEAK_ALPHA,
        ridge=(make.WEAK_RIDGES[-1], make.WEAK_RIDGES[-1]),
        dimension=make.WEAK_DIMENSION,
        seeds=[int(last["seed"])],
    )
    assert list(again.columns) == list(weak.columns) == list(runs.columns) == list(make.TRAINED)
    for column in ("risk", "m_k", "q_k", "m_v", "q_v", "train_loss", "objective"):
        np.testing.assert_allclose(again[column].iloc[0], last[column], rtol=1e-3)
    seeds = runs.groupby(["head", "alpha", "dimension"], sort=False)["seed"].apply(list)
    expected = {
        (name, alpha, dimension): list(range(n))
        for name in training.HEADS
        for alpha in ALPHAS
        for dimension, n in training.RUNS.items()
    }
    assert seeds.to_dict() == expected
    assert tuple(weak["ridge_k"].unique()) == make.WEAK_RIDGES
    assert len(weak) == len(make.WEAK_RIDGES) * len(training.STARTS) * make.WEAK_RUNS


def test_a_tracked_published_fixed_point_and_run_are_found_again(float64):
    """The linear head has them at sample ratio 1 of the max task; the next ratio and other prompts give other risks."""
    tables = [training.read_tracked(f"published_{name}") for name in ("ridges", "theory", "runs")]
    of_head = [table[(table["panel"] == published_settings.MAX) & (table["head"] == "linear")] for table in tables]
    ridges, tracked, runs = (rows[rows["alpha"] == 1].iloc[0] for rows in of_head)
    after = of_head[1][of_head[1]["alpha"] > 1].sort_values("alpha").iloc[0]
    ridge = (float(ridges["ridge_k"]), float(ridges["ridge_v"]))
    task = published_settings.tasks()[published_settings.MAX]
    fixed = theory.solve_fixed_point(training.HEADS["linear"], 1.0, ridge, points=512, task=task)
    risk = theory.quantities_of(fixed)["risk"]
    error = comparison_quantile(1) * np.hypot(risk.std_error, tracked["risk_error"])
    assert abs(risk.value - tracked["risk"]) < error < abs(risk.value - after["risk"])
    setting = {"alpha": 1.0, "ridge": ridge, "dimension": int(runs["dimension"]), "task": task}
    seeds = [int(runs["seed"]), training.OTHER_SEED]
    again, other = training.train("linear", runs["start"], **setting, seeds=seeds).risk
    # the final gradient of L-BFGS, and rounding on another machine
    assert abs(again - runs["risk"]) < 1e-4 < abs(other - runs["risk"])


def test_tracked_ridges_have_the_columns_of_their_script():
    assert list(training.read_tracked("best_ridges").columns) == list(make.RIDGES)


def test_the_key_of_least_squares_is_that_of_the_best_linear_head(float64):
    """Its squared slope, by the library's own fit; and half a floor is below what the ridges were searched over."""
    fit = _affine_fit(training.chapter_task().marginals(np.ones(()), np.ones(())))
    np.testing.assert_allclose(theory.least_squares_key(), fit[1] ** 2, rtol=1e-9)
    ridges = training.read_tracked("best_ridges")
    assert theory.ridge_at(ridges, "softmax", theory.AT_FLOOR)[0] == training.SMALLEST_RIDGE
    assert theory.ridge_at(ridges, "softmax", theory.ABOVE_FLOOR)[0] > training.SMALLEST_RIDGE
    assert theory.LOWERED < 1


@pytest.mark.parametrize("tested", range(2, 7))
def test_as_many_sample_ratios_are_compared_as_were_asked_for(tested):
    compared = Parameters(alphas=[1.0, 2.0], points=512, tested=tested).compared
    assert len(compared) == tested
    assert compared == sorted(set(compared) & set(ALPHAS))


def test_the_published_runs_are_all_there():
    """Every task, head and sample ratio; both starts on the same prompts at one dimension; all came to rest."""
    runs = training.read_tracked("published_runs")
    counts = runs.groupby(["panel", "head", "alpha", "start", "dimension"])["seed"].agg(["nunique", "size"])
    sizes = [("informed", size) for size in published_settings.RUNS] + [
        ("uninformed", published_settings.RANDOM_STARTS)
    ]
    expected = {
        (panel, head, float(alpha), start, size): published_settings.RUNS[size]
        for panel in published_settings.PANELS
        for head in training.HEADS
        for alpha in published_settings.RUN_ALPHAS
        for start, size in sizes
    }
    assert counts["nunique"].to_dict() == counts["size"].to_dict() == expected
    assert runs["flatness"].max() < _GRADIENT_TOLERANCE


@pytest.mark.parametrize("panel", published_settings.PANELS)
def test_no_ridge_nearby_is_better_than_the_tracked_one(float64, panel):
    """By the same equations, at a sample ratio and points that the search did not use together."""
    ridges = training.read_tracked("published_ridges")
    row = ridges[(ridges["panel"] == panel) & (ridges["head"] == "softmax") & (ridges["alpha"] == 4)].iloc[0]

    def risk(factor_k, factor_v):
        ridge = (row["ridge_k"] * factor_k, row["ridge_v"] * factor_v)
        task = published_settings.tasks()[panel]
        return theory.solve_fixed_point(training.HEADS["softmax"], 4.0, ridge, points=1024, task=task)

    best = risk(1.0, 1.0)
    for factors in ((0.5, 1.0), (2.0, 1.0), (1.0, 0.5), (1.0, 2.0)):
        other = risk(*factors)
        assert other.risk > best.risk - 2 * np.hypot(other.std_error, best.std_error)


def test_starts_are_told_apart_by_their_objectives():
    """Two seeds of three end elsewhere by more than rounding."""
    common = {"head": "softmax", "alpha": 1.0, "risk": 0.5}
    pairs = [(1.0, 1.0), (1.0, 1.2), (1.0, 0.9)]
    runs = pd.DataFrame(
        {"seed": seed, "start": start, "objective": objective, **common}
        for seed, pair in enumerate(pairs)
        for start, objective in zip(("informed", "uninformed"), pair, strict=True)
    )
    (found,) = published_settings._starts(runs).values()
    assert found.apart == pytest.approx(2 / 3)
    assert (found.differing, found.seeds) == (2, 3)
    assert (found.informed.value, found.informed.std_error) == (0.5, 0.0)


def test_where_no_fixed_point_was_found_no_claim_holds_and_no_line_is_drawn():
    found, lost = theory.Measured(1.0, 0.1), theory.Measured(1.0, 0.1, converged=False)
    assert found.known == 1.0
    runs = {("softmax", alpha): dict.fromkeys(theory.QUANTITIES, found) for alpha in (1.0, 2.0)}
    for second, holds in ((found, True), (lost, False)):
        curves = {**runs, ("softmax", 2.0): dict.fromkeys(theory.QUANTITIES, second)}
        claims = Claims("finite-samples", source="measured here")
        claims.agree("softmax", "They agree", extrapolation.deviations(curves, runs, [1.0, 2.0], "softmax")[0])
        (claim,) = claims
        assert claim.holds == holds
    curve = pd.DataFrame({"alpha": [1.0, 2.0, 3.0], "risk": [0.3, 0.2, 0.1], "converged": [True, True, False]})
    axes = plt.figure().subplots()
    style.draw_theory(axes, curve, "risk", "C0")
    line, crosses = (drawn.get_ydata() for drawn in axes.lines)
    np.testing.assert_array_equal(line, [0.3, 0.2, np.nan])
    np.testing.assert_array_equal(crosses, [0.1])
    plt.close()


@pytest.mark.parametrize(
    "wrong", [{"alphas": [1.0, 0.5]}, {"alphas": [0.1, 0.5]}, {"points": 1000}, {"points": 128}, {"tested": 7}]
)
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)


def test_plain_training_is_tracked_on_the_prompts_of_l_bfgs():
    """Every method, head and sample ratio, at the ridges and seeds of the runs that it is compared with."""
    runs, beside = (
        training.read_tracked("plain_runs"),
        gradient_training.select_same_prompts(training.read_tracked("published_runs")),
    )
    keys = ["head", "alpha", "ridge_k", "ridge_v", "dimension", "seed"]
    random = beside[beside["start"] == "uninformed"]
    assert list(runs.columns) == [*make.PLAIN_SETTING, *[*make.TRAINED][7:]]
    for method in gradient_training.METHODS:
        mine = runs[runs["method"] == method]
        assert len(mine) == len(mine.merge(random, on=keys)) == len(random)
    descended = runs[runs["method"] == "gradient descent"]
    assert descended["steps"].max() < gradient_training.DESCENT["steps"]


def test_a_tracked_descent_can_be_made_anew(float64):
    row = training.read_tracked("plain_runs").iloc[0]
    ridge = (row["ridge_k"], row["ridge_v"])
    again = gradient_training.train(
        row["method"], row["head"], alpha=row["alpha"], ridge=ridge, seeds=[int(row["seed"])]
    )
    np.testing.assert_allclose(again.risk[0], row["risk"], atol=1e-4)


def test_the_bound_on_the_key_allows_the_error_of_the_quasi_random_average():
    """A key beyond the bound by half the tolerance holds, by twice the tolerance it fails, and so does an exact one."""

    def claim(excess, std_error):
        keys = {("linear", 1.0): (1.0, 0.0), ("linear", 2.0): (theory.least_squares_key() + excess, std_error)}
        keys[("softmax", 1.0)] = (9.0, 0.0)
        curves = {setting: {"q_k": theory.Measured(*key)} for setting, key in keys.items()}
        claims = Claims("finite-samples")
        overlaps_against_samples._claim_key(claims, curves)
        return next(iter(claims))

    tolerance = claim(0.0, 0.01).tolerance
    assert tolerance == pytest.approx(comparison_quantile(2, samples=8) * 0.01)
    assert claim(tolerance / 2, 0.01).holds
    assert not claim(2 * tolerance, 0.01).holds
    assert not claim(1e-9, 0.0).holds


def test_differences_on_the_same_prompts_have_the_same_limit_and_a_smaller_error():
    runs = training.read_tracked("runs")
    limits = solve_infinite_size(runs)
    for alpha, difference in solve_risk_differences(runs).items():
        softmax, linear = (limits[head, alpha]["risk"] for head in ("softmax", "linear"))
        assert difference.value == pytest.approx(softmax.value - linear.value, abs=1e-12)
        assert difference.std_error < np.hypot(softmax.std_error, linear.std_error)


def test_the_end_of_a_straight_line_has_an_honest_error():
    """Runs of variance 1/size about a + b/size: ends are unbiased, and their errors the scatter between repeats."""
    rng = np.random.default_rng(0)
    size = np.repeat([200.0, 400.0, 800.0], [16, 8, 4])
    found = np.array(
        [extrapolation.limit_of(size, 3.0 + 5.0 / size + rng.normal(size=28) / np.sqrt(size)) for _ in range(4000)]
    )
    away = (found[:, 0] - 3.0) / found[:, 1]
    assert abs(away.mean()) < 4 / np.sqrt(4000)
    np.testing.assert_allclose(away.std(), stats.t(26).std(), rtol=0.05)
    np.testing.assert_allclose(found[:, 0].std(), np.sqrt(np.mean(found[:, 1] ** 2)), rtol=0.05)
