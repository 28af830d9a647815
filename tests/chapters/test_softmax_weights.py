"""Averages of softmax weights: against two tokens by SciPy, simulated scores, and the book's other quadratures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special, stats

from chapters.threshold_in_temperature import softmax_weights
from chapters.threshold_in_temperature.softmax_weights import softmax_weight_averages
from lib import single_location as sl
from lib.finite_prompt import participation
from lib.single_location.population import _moments

pytestmark = pytest.mark.usefixtures("float64")
averages_of = jax.jit(softmax_weight_averages)


@pytest.mark.parametrize(("shift", "spread", "relevant"), [(0.7, 0.4, 1.3), (-6.0, 3.0, 0.2), (25.0, 12.0, 21.0)])
def test_two_tokens_are_one_integral(shift, spread, relevant):
    """The weight of one of two tokens is a logistic function of the difference of their scores."""
    width = np.hypot(spread, relevant)

    def mean(function):
        def integrand(x):
            return function(special.expit(shift + width * x)) * stats.norm.pdf(x)

        edge = -shift / width
        return integrate.quad(integrand, -12, 12, points=[edge - 5 / width, edge, edge + 5 / width], epsabs=1e-13)[0]

    found = averages_of(np.log(2.0), shift, spread, relevant)
    desired = [mean(lambda p: p), mean(lambda p: p**2), mean(lambda p: (1 - p) ** 2)]
    np.testing.assert_allclose([found.relevant, found.relevant_square, found.others_square], desired, atol=1e-10)


def test_six_tokens_are_those_of_simulated_scores():
    prompts, length, shift, spread, relevant = 400_000, 6, 1.4, 1.1, 0.6
    scores = spread * np.random.default_rng(11).normal(size=(prompts, length))
    scores[:, 0] = shift + relevant / spread * scores[:, 0]
    p = special.softmax(scores, axis=1)
    rows = np.stack([p[:, 0], p[:, 0] ** 2, np.sum(p[:, 1:] ** 2, axis=1)])
    found = averages_of(np.log(length), shift, spread, relevant)
    averages = np.array([found.relevant, found.relevant_square, found.others_square])
    errors = rows.std(axis=1) / prompts**0.5
    assert (np.abs(rows.mean(axis=1) - averages) < 4 * errors).all()
    assert (averages > 100 * errors).all()


@pytest.mark.parametrize(
    ("log_length", "tau"), [(np.log(3.0), 1.0), (9.0, 4.0), (27.0, 7.0), (200.0, 20.0), (330.0, 30.0)]
)
def test_equal_scores_give_the_participation(log_length, tau):
    found = averages_of(log_length, 0.0, tau, tau)
    length, p = np.exp(log_length), float(participation(tau, log_length))
    np.testing.assert_allclose(found.relevant * length, 1.0, rtol=1e-10)
    np.testing.assert_allclose(found.relevant_square * length, p, rtol=1e-10)
    np.testing.assert_allclose(found.others_square, p * (1 - 1 / length), rtol=1e-10)


@pytest.mark.parametrize(
    ("length", "snr", "tau"), [(10.0, 4.0, 2.0), (1e4, 20.0, 3.0), (1e12, 55.0, 7.0), (1e12, 30.0, 12.0)]
)
def test_the_spiked_model_has_the_same_moments_by_a_grid_of_scores(length, snr, tau):
    desired = _moments(sl.Spiked(length, snr), sl.softmax, sl.Overlaps(tau, tau**2, 1.0, 1.0))
    found = averages_of(np.log(length), tau * snr**0.5, tau, tau)
    np.testing.assert_allclose(found.relevant, desired.hidden, atol=1e-10)
    np.testing.assert_allclose(found.relevant_square, desired.hidden_power, atol=1e-10)
    np.testing.assert_allclose(found.relevant_square + found.others_square, desired.power, atol=1e-10)


# (ln L, m, τ, t) near the transition, where coarse nodes miss most: of 200 random points the two worst, and two ends.
TRANSITIONS = [
    (43.7, 122.4, 11.1, 23.5),
    (310.5, 522.7, 14.4, 29.9),
    (330.0, 770.0, 30.0, 30.0),
    (150.0, 343.0, 19.2, 19.2),
]


@pytest.mark.parametrize("arguments", TRANSITIONS)
def test_more_nodes_change_nothing_within_the_stated_error(arguments, monkeypatch):
    found = averages_of(*arguments)
    monkeypatch.setattr(softmax_weights, "NODES", 3 * softmax_weights.NODES)
    monkeypatch.setattr(softmax_weights, "SCAN_NODES", 3 * softmax_weights.SCAN_NODES)
    jax.clear_caches()
    finer = jax.jit(softmax_weight_averages)(*arguments)
    assert 1e-5 < float(found.relevant) < 1 - 1e-5
    np.testing.assert_allclose(jax.tree.leaves(found), jax.tree.leaves(finer), rtol=0, atol=1e-10)


@pytest.mark.parametrize("shift", [-1200.0, -60.0, 3.0, 170.0, 1200.0])
def test_weights_add_up_to_one_over_the_whole_domain(shift):
    """NaN would say that they do not; far below and above all other scores the weight is 0 and 1."""
    found = averages_of(20.0, shift, 30.0, 5.0)
    assert float(found.relevant) == pytest.approx(0.0 if shift < -100 else 1.0 if shift > 400 else found.relevant)
    assert 0 <= float(found.relevant_square) <= float(found.relevant) <= 1 + 1e-12


@pytest.mark.parametrize(
    "outside",
    [(0.5, 1.0, 1.0, 1.0), (331.0, 1.0, 1.0, 1.0), (5.0, 1.0, 30.1, 1.0), (5.0, 1.0, 1.0, 0.0), (5.0, 41.0, 1.0, 1.0)],
)
def test_values_outside_the_domain_are_nan(outside):
    found = averages_of(*outside)
    assert jnp.isnan(found.relevant)
    assert jnp.isnan(found.others_square)
