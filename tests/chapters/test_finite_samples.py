"""The chapter on finite samples: tracked training runs are where theory says, above the best, and can be made anew."""

import importlib.util

import numpy as np
import pandas as pd
import pytest

from chapters.finite_samples import risk_against_samples, theory, training
from chapters.finite_samples.overlaps_against_samples import extrapolate
from chapters.finite_samples.parameters import ALPHAS
from lib.statistics import comparison_quantile

NAME = "finite_samples"


@pytest.fixture(scope="module")
def run(run_chapter):
    return run_chapter(NAME)


@pytest.fixture(scope="module")
def make():
    """The script that wrote the tracked data."""
    spec = importlib.util.spec_from_file_location("make_finite_samples", training.DATA / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_claim_is_broken(run):
    assert run.claims
    assert run.broken == []


def test_the_tables_are_finite(run):
    for table in run.tables.values():
        assert not table.frame.isna().to_numpy().any()
        assert np.isfinite(table.frame.select_dtypes("number").to_numpy()).all()


def test_a_head_that_has_seen_the_wrong_number_of_prompts_is_noticed(run):
    """The alternative of the two claims of agreement is far beyond their tolerance, not just beyond it."""
    for name in training.HEADS:
        claim = run.claims[f"finite-samples-{name}"]
        assert claim.alternative.measured > 3 * claim.tolerance


@pytest.mark.parametrize("name", training.HEADS)
def test_replica_is_where_simulated_training_ends(float64, name):
    """Risk, overlaps and training loss of the tracked runs at D = 200, 400, 800, at six sample ratios."""
    runs = training.tracked("runs")
    limits = extrapolate(runs.loc[runs["head"] == name])
    deviations = []
    for (_, alpha), run in limits.items():
        ridge = theory.ridge_at(training.tracked("best_ridges"), name, alpha)
        assert min(ridge) >= 0.3
        fixed = theory.predict(training.HEADS[name], alpha, ridge, points=512)
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
    limits = extrapolate(training.tracked("runs"))
    assert sorted(alpha for _, alpha in limits) == sorted(2 * ALPHAS)
    optimal = risk_against_samples.bayes_optimal(ALPHAS)
    for (_, alpha), run in limits.items():
        excess = run["risk"].value - optimal[alpha]
        assert excess > comparison_quantile(len(limits)) * run["risk"].std_error


def test_the_limit_of_an_exact_straight_line_is_its_end():
    """Quantities that are a + b/D without noise go to a, with no error."""
    size = np.repeat(list(training.RUNS), 3)
    columns = {quantity: index + 5.0 / size for index, quantity in enumerate(theory.QUANTITIES)}
    runs = pd.DataFrame({"head": "softmax", "alpha": 1.0, "dimension": size, **columns})
    (found,) = extrapolate(runs).values()
    np.testing.assert_allclose([found[quantity].value for quantity in theory.QUANTITIES], range(6), atol=1e-10)
    np.testing.assert_allclose([found[quantity].std_error for quantity in theory.QUANTITIES], 0.0, atol=1e-10)


def test_tracked_runs_are_those_that_make_writes(float64, make):
    """Their columns, their settings in order, and one run as numbers; the chapter does another one again."""
    runs, weak = training.tracked("runs"), training.tracked("weak_ridges")
    last = weak.iloc[-1]
    again = make.table(
        last["head"],
        last["start"],
        alpha=make.WEAK_ALPHA,
        ridge=(make.WEAK_RIDGES[-1], make.WEAK_RIDGES[-1]),
        dimension=make.WEAK_DIMENSION,
        seeds=[int(last["seed"])],
    )
    assert list(again.columns) == list(weak.columns) == list(runs.columns)
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


@pytest.mark.parametrize(
    "wrong", [{"alphas": [1.0, 0.5]}, {"alphas": [0.1, 0.5]}, {"points": 1000}, {"points": 128}, {"tested": 7}]
)
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)
