"""The chapter on temperature and length: closed forms against simulations and independent quadrature, and limits."""

from pathlib import Path

import jax.random as jr
import numpy as np
import pandas as pd
import pytest
from scipy import integrate
from scipy.special import exp1, expit, logsumexp, softmax

from chapters.temperature_and_length import (
    rare_contributions,
    relevant_token,
    scalings,
    simulated_prompts,
    uniform_scores,
)
from chapters.temperature_and_length.normal_scores import typical_participation
from chapters.temperature_and_length.style import FIXED, LOGARITHM, NORMAL, ROOT, UNIFORM
from companion.project.paths import Project
from lib.finite_prompt import LARGEST_TAU, participation
from lib.random import fast_normal
from lib.statistics import comparison_quantile, standard_error

NAME = "temperature_and_length"
PROJECT = Project(Path(__file__).resolve().parents[2])
_rng = np.random.default_rng(2501)


def test_the_tables_are_finite_except_where_nothing_was_simulated(run):
    for name, table in run.tables.items():
        frame = table.frame
        if name == "three_scalings":
            simulated, errors = frame["kind"] == "simulated", frame[["mean_se", "typical_se"]]
            assert (errors.notna().to_numpy() == simulated.to_numpy()[:, None]).all()
            frame = frame.drop(columns=errors.columns)
        assert np.isfinite(frame.select_dtypes("number").to_numpy()).all()


def test_the_scalings_are_one_head_at_the_reference_length():
    for reference, ratio in ((100, 0.7), (5000, 0.65)):
        found = scalings.spreads(reference, ratio, np.asarray([np.log(reference), 2 * np.log(reference)]))
        for name, power in {FIXED: 0.0, ROOT: 0.5, LOGARITHM: 1.0}.items():
            np.testing.assert_allclose(found[name][0], ratio * np.sqrt(2 * np.log(reference)), rtol=1e-12)
            np.testing.assert_allclose(found[name][1] / found[name][0], 2**power, rtol=1e-12)


def test_curves_end_where_the_theory_does(float64):
    for name, curve in scalings.solve_normal_curves(300, 0.74, 6).items():
        assert np.isfinite(curve.mean).all()
        assert np.isfinite(curve.typical).all()
        assert curve.taus[-1] <= LARGEST_TAU
        assert curve.log_lengths[-1] <= 330.0
        assert np.isclose(curve.taus[-1], LARGEST_TAU) == (name == LOGARITHM)
        assert (curve.typical < curve.mean * (1 + 1e-9)).all()


def test_the_headline_of_the_three_scalings_is_that_of_its_table(run):
    """The power of normal scores: up to 1 without a factor, down to 0 at ln L, slowly down to a limit at √(ln L)."""
    frame = run.tables["three_scalings"].frame
    frame = frame[(frame["law"] == "normal") & (frame["kind"] == "exact")].sort_values("log_length")
    powers = {
        name: (-np.log(curve["mean"]) / curve["log_length"]).to_numpy() for name, curve in frame.groupby("scaling")
    }
    limits = frame.groupby("scaling")["mean_limit"].last()
    assert powers[FIXED][-1] > 0.95
    assert powers[LOGARITHM][-1] < 0.05
    assert (np.diff(powers[ROOT]) < 0).all()
    assert powers[ROOT][0] > 2 * limits[ROOT]
    assert powers[ROOT][-1] > 1.02 * limits[ROOT] > 0


def test_exponents_are_continuous_and_are_those_of_the_exact_averages(float64):
    """A power of L with a polynomial in ln L before it: exponents at two long lengths, extrapolated."""
    for exponent, of, places in (
        (scalings.mean_exponent, participation, (0.2, 0.45, 0.63, 0.8)),
        (scalings.typical_exponent, np.vectorize(typical_participation), (0.2, 0.42, 0.6, 0.75)),
    ):
        for corner in (scalings.MEAN_CHANGES, scalings.TYPICAL_CHANGES, 1.0):
            np.testing.assert_allclose(exponent(corner - 1e-9), exponent(corner + 1e-9), atol=1e-8)
        c, lengths = np.asarray(places)[:, None], np.asarray([250.0, 310.0])
        logs = np.log(np.asarray(of(c * np.sqrt(2 * lengths), lengths)))
        slope = -np.diff(logs, axis=1)[:, 0] / 60.0
        np.testing.assert_allclose(slope, exponent(c[:, 0]), atol=1 / 250.0)
    np.testing.assert_allclose(scalings.frozen(np.asarray([0.5, 1.0, 4.0])), [0.0, 0.0, 0.75])


@pytest.mark.parametrize("c", [0.65, 0.75])
def test_the_next_term_of_the_mean_is_that_of_an_integral_and_of_exact_averages(float64, c):
    """`M(a) = ∫ e^{-av} (1 + e^{-v})^{-2} dv`, and `E Σp² = M/(√(2π) τ) L^{-r} (1 - κ/ln L + …)`."""
    a, log_length = (1 + c**2) / (2 * c**2), 330.0

    def moment(power):
        return integrate.quad(lambda v: v**power * np.exp(-a * v) * expit(v) ** 2, -60.0, 60.0)[0]

    kappa = scalings.mean_correction(c)
    np.testing.assert_allclose(kappa, moment(2) / moment(0) / (4 * c**2), rtol=1e-5)
    tau = c * np.sqrt(2 * log_length)
    leading = moment(0) / (np.sqrt(2 * np.pi) * tau) * np.exp(-scalings.mean_exponent(c) * log_length)
    # the term of second order is at most three times the square of the first
    next_term = kappa / log_length
    np.testing.assert_allclose(participation(tau, log_length) / leading, 1 - next_term, atol=3 * next_term**2)


@pytest.mark.parametrize(("halfwidth", "length"), [(0.3, 2), (1.7, 4), (6.0, 30), (25.0, 12)])
def test_bounded_scores_agree_with_simulations(halfwidth, length):
    scores = np.random.default_rng(length).uniform(-halfwidth, halfwidth, (60000, length))
    squares = np.sum(softmax(scores, axis=1) ** 2, axis=1)
    sums = logsumexp(scores, axis=1)
    log_length = np.log(length)
    for drawn, exact in (
        (squares, uniform_scores.participation(halfwidth, log_length)),
        (np.log(squares), np.log(uniform_scores.typical_participation(halfwidth, log_length))),
        (sums, uniform_scores.mean_log_sum(halfwidth, log_length)),
    ):
        assert abs(drawn.mean() - exact) < comparison_quantile(12) * standard_error(drawn)


def test_bounded_averages_agree_with_scipy():
    for a, y in zip(_rng.uniform(0.2, 12.0, 12), _rng.uniform(-20.0, 6.0, 12), strict=True):
        theirs = integrate.quad(lambda u, y=y: np.exp(-np.exp(y + u)), -a, a, epsabs=0, epsrel=1e-11, limit=400)[0]
        ours = uniform_scores.log_survival(np.asarray([y]), a)[0]
        np.testing.assert_allclose(np.exp(ours), theirs / (2 * a), rtol=1e-8)


@pytest.mark.parametrize("log_length", [24.7, 29.6, 33.4187, 35.4945, 40.0, 330.0])
@pytest.mark.parametrize("halfwidth", [2.0, 21.8, 280.0])
def test_a_typical_prompt_of_many_bounded_scores_is_the_mean_prompt_to_round_off(halfwidth, log_length):
    """By Jensen the typical participation is below the mean; the gap is of relative order a/L."""
    # two averages of nodes that begin at -(ln L + a + DROP); each node, weight and sum is rounded
    nodes = 3 * (log_length + uniform_scores.DROP) + 4 * halfwidth
    round_off = 4 * np.finfo(float).eps * nodes
    log_ratio = np.log(
        uniform_scores.typical_participation(halfwidth, log_length)
        / uniform_scores.participation(halfwidth, log_length)
    )
    assert -round_off - halfwidth * np.exp(-log_length) < log_ratio < round_off


def test_no_published_typical_participation_is_above_the_mean():
    """Jensen's inequality, for the exact averages of both distributions."""
    published = pd.read_csv(PROJECT.published / NAME / "three_scalings.csv").query("kind == 'exact'")
    assert set(published["law"]) == {NORMAL, UNIFORM}
    assert (published["typical"] <= published["mean"]).all()


def test_two_bounded_scores_share_by_a_sigmoid():
    """the difference of two scores has a triangular distribution."""
    a = 2.3
    squares = integrate.quad(lambda d: (2 * a - d) / (2 * a**2) * (expit(d) ** 2 + expit(-d) ** 2), 0, 2 * a)[0]
    np.testing.assert_allclose(uniform_scores.participation(a, np.log(2.0)), squares, rtol=1e-10)


def test_the_weight_of_one_of_two_tokens_is_a_sigmoid():
    """One other token, uniform: `E 1/(1 + e^{χ - score})`."""
    a, score = 1.4, 0.8
    theirs = integrate.quad(lambda x: expit(score - x) / (2 * a), -a, a)[0]
    log_survival = uniform_scores.log_survival_of_uniform(a / np.sqrt(3.0))
    np.testing.assert_allclose(uniform_scores.relevant_weight(score, log_survival, np.log(2.0)), theirs, rtol=1e-9)
    # no other token
    np.testing.assert_allclose(uniform_scores.relevant_weight(score, log_survival, 0.0), 1.0, rtol=1e-9)


def test_weights_of_the_relevant_token_agree_with_simulations(float64):
    tau, length, height = 1.9, 60, 4.0
    generator, wide = np.random.default_rng(8), np.sqrt(3.0) * tau
    for law, others in (
        (relevant_token.UNIFORM, generator.uniform(-wide, wide, (40000, length - 1))),
        (relevant_token.NORMAL, tau * generator.standard_normal((40000, length - 1))),
    ):
        drawn = expit(height - logsumexp(others, axis=1))
        exact = uniform_scores.relevant_weight(height, relevant_token.OTHER_SCORES[law](tau), np.log(length))
        assert abs(drawn.mean() - exact) < comparison_quantile(2) * standard_error(drawn)


def test_the_integral_of_a_small_and_a_large_argument_is_one_function():
    log_w = np.linspace(-3.5, -1.5, 9)  # both sides of where the series ends
    theirs = [integrate.quad(lambda t: -np.expm1(-t) / t, 0, np.exp(x))[0] for x in log_w]
    np.testing.assert_allclose(uniform_scores._ein(log_w), theirs, rtol=1e-12)
    np.testing.assert_allclose(
        uniform_scores._ein(np.asarray([2.0])), np.euler_gamma + 2 + exp1(np.exp(2.0)), rtol=1e-14
    )


@pytest.mark.parametrize(("tau", "length"), [(1.3, 5), (3.1, 40)])
def test_contributions_of_rare_prompts_agree_with_simulations(float64, tau, length):
    scores = np.random.default_rng(length).standard_normal((60000, length))
    squares, largest = np.sum(softmax(tau * scores, axis=1) ** 2, axis=1), scores.max(axis=1)
    edges, below = rare_contributions.mean_below(tau, np.log(length))
    for x in (1.2, 2.0, 2.7):
        drawn = squares * (largest <= x)
        at = np.interp(x, edges, below)
        assert abs(drawn.mean() - at) < comparison_quantile(6) * standard_error(drawn)
    np.testing.assert_allclose(below[-1], participation(tau, np.log(length)), rtol=1e-9)


def test_shares_of_the_mean_run_from_none_to_all(float64):
    chances = np.geomspace(1e-5, 1.0, 25)
    found = rare_contributions.contributions(0.66, 50.0, chances)
    assert (np.diff(found.share) > -1e-9).all()
    assert (found.share > found.chance * (1 - 1e-6)).all()
    np.testing.assert_allclose(found.share[-1], 1.0, atol=1e-6)
    assert found.share[0] < 1 - found.of_other_prompts < 1


def test_simulated_prompts_have_softmax_weights(float64):
    taus, key = [0.5, 3.0], jr.key(4)
    log_others, log_squares = simulated_prompts.draw_prompts(taus, 12, 5, key=key)
    for index in range(5):
        scores = np.asarray(fast_normal(jr.fold_in(key, index), (12,)))
        for row, tau in enumerate(taus):
            squares = np.sum(softmax(tau * scores) ** 2)
            np.testing.assert_allclose(log_squares[row, index], np.log(squares), rtol=1e-6)
            np.testing.assert_allclose(log_others[row, index], logsumexp(tau * scores[1:]), rtol=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [{"ratio": 0.9}, {"lengths": [100]}, {"tokens": 10**6, "lengths": [100, 10**6]}, {"height": 3.0}],
)
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)
