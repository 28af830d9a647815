"""The chapter on sinks and dependent tokens: its claims, its limits against exact values, its processes by NumPy."""

import jax.random as jr
import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from chapters.sinks_and_dependent_tokens import sequences, text
from chapters.sinks_and_dependent_tokens.sinks import boundary
from lib.finite_prompt import participation, sink_statistics
from lib.statistics import comparison_quantile, standard_error

NAME = "sinks_and_dependent_tokens"


def test_claims_hold_and_would_not_under_their_alternatives(run):
    assert len(run.claims) == 9
    assert run.broken == []


@pytest.mark.parametrize("wrong", [{"taus": [0.0, 1.0]}, {"sinks": [6.0]}, {"sequences": 10}, {"seed": True}])
def test_parameters_out_of_range_are_refused(wrong, run_cells):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        run_cells(NAME, **wrong)


@pytest.mark.parametrize("process", [*sequences.PROCESSES, sequences.autoregressive(0.0)], ids=lambda p: p.name)
def test_sequences_have_their_correlations(float64, process):
    """The sequence is stationary, so that this includes its ends."""
    drawn = sequences.draw(process, (20_000, 6), key=jr.key(4))
    products = np.stack([drawn[:, i] * drawn[:, j] for i in range(6) for j in range(i, 6)], axis=1)
    own = np.concatenate([[1.0], process.correlations, np.zeros(6)])
    expected = np.asarray([own[j - i] for i in range(6) for j in range(i, 6)])
    deviations = (products.mean(axis=0) - expected) / standard_error(products)
    assert np.abs(deviations).max() < comparison_quantile(deviations.size)


@pytest.mark.parametrize("process", sequences.PROCESSES, ids=lambda p: p.name)
def test_weighed_correlations_are_a_quadratic_form(process):
    weights = np.random.default_rng(0).dirichlet(np.ones(30), 4)
    own = np.concatenate([[1.0], process.correlations, np.zeros(30)])
    matrix = own[np.abs(np.subtract.outer(np.arange(30), np.arange(30)))]
    expected = np.einsum("ni,ij,nj->n", weights, matrix, weights)
    np.testing.assert_allclose(sequences.weighed_correlation(weights, process.correlations), expected, rtol=1e-12)


def test_effective_length_of_a_plain_average_and_of_a_sharp_query(float64):
    """`Σ r_k` at τ = 0, 1 for τ → ∞; in one dimension 19, 9.54, 3.90, 2.08 for r_k = 0.9^k at τ = 0, 1, 2, 3."""
    for process in sequences.PROCESSES:
        factor = sequences.dependence_factor(process.correlations, [0.0, 20.0])
        np.testing.assert_allclose(factor[0], 1 + 2 * process.correlations.sum(), rtol=1e-9)
        np.testing.assert_allclose(factor[1], 1, atol=1e-2)
    taus = [0.0, 1.0, 2.0, 3.0]
    along = sequences.solve_fluctuation(sequences.autoregressive(0.9).correlations, taus, 1)
    np.testing.assert_allclose((along / sequences.solve_independent(taus, 1))[:, 0], [19, 9.54, 3.90, 2.08], atol=0.005)


def test_a_sink_of_fixed_excess_passes_a_sigmoid_of_the_query(float64):
    """`b = ln L + β`: E p_0 → 1/(1 + e^{τ²/2 - β}); at fixed b the tokens lose a part of order 1/L."""
    for tau, beta in ((0.5, 0.0), (1.5, 2.0), (2.0, -1.0)):
        weight = float(sink_statistics(tau, 60.0, 60.0 + beta).sink_weight)
        np.testing.assert_allclose(weight, special.expit(beta - tau**2 / 2), rtol=1e-9)
        at, length = sink_statistics(tau, np.log(1e7), beta), 1e7
        lost = np.exp(beta - tau**2 / 2) + np.exp(tau**2)
        np.testing.assert_allclose(1e7 * (at.sink_weight + at.participation), lost, rtol=1e4 / length)


def test_on_the_boundary_the_sink_and_the_largest_tokens_share_the_weight(float64):
    """At b = τ b_L + x the two limits of the theory of Poisson points, approached as L grows."""
    alpha = 1 / 1.5
    density = lambda u: np.exp(-u - special.gamma(1 - alpha) * u**alpha)  # noqa: E731
    limit_weight = integrate.quad(density, 0, np.inf)[0]
    limit = alpha * special.gamma(2 - alpha) * integrate.quad(lambda u: u ** (alpha - 1) * density(u), 0, np.inf)[0]
    np.testing.assert_allclose([limit, limit_weight], [0.26445, 0.20664], atol=1e-5)
    distances = []
    for log_length in (20.0, 100.0, 200.0):
        level = optimize.brentq(lambda b, at=log_length: at + stats.norm.logsf(b), 0, 60)
        at = sink_statistics(1.5 * level, log_length, 1.5 * level**2)
        distances.append([abs(float(at.participation) - limit), abs(float(at.sink_weight) - limit_weight)])
    assert (np.diff(distances, axis=0) < 0).all()
    assert np.max(distances[-1]) < 2e-3


def test_below_the_boundary_participation_is_unchanged(float64):
    """At ln L = 200, a = 1/2, κ = 1.1, which exceeds the largest score: to 12 digits."""
    tau, log_length = 0.5 * np.sqrt(400), 200.0
    assert 2 * 0.5 < 1.1 < boundary(np.asarray(0.5))
    with_sink = sink_statistics(tau, log_length, 1.1 * log_length)
    np.testing.assert_allclose(with_sink.participation, participation(tau, log_length), rtol=1e-12)


def test_words_in_random_order_are_independent():
    """The control of the tracked table: the largest of 255 correlations, with standard errors from 35 prompts."""
    table = text.read_correlations()
    assert set(table) == {"words", "shuffled", *(f"keys {layer}" for layer in range(6))}
    shuffled = table["shuffled"]
    bound = comparison_quantile(len(shuffled), samples=35)
    assert np.abs(shuffled["correlation"] / shuffled["std_error"]).max() < bound
