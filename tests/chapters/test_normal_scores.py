"""Exact averages of prompts of normal scores: the mean logarithm of the sum of exponentials, typical participation."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from chapters.temperature_and_length.normal_scores import mean_log_sum, typical_participation
from lib.finite_prompt import participation

pytestmark = pytest.mark.usefixtures("float64")


def test_the_logarithm_of_one_exponential_has_mean_zero():
    np.testing.assert_allclose([mean_log_sum(tau, 0.0) for tau in (0.01, 1.0, 17.0, 60.0)], 0.0, atol=2e-11)


@pytest.mark.parametrize("tau", [0.03, 0.9, 4.0, 23.0, 60.0])
def test_the_logarithm_of_two_exponentials_is_a_softplus(tau):
    """`ln(e^a + e^b) = b + softplus(a - b)`, and a - b is normal."""
    spread = tau * np.sqrt(2.0)

    def integrand(x):
        return np.logaddexp(0.0, spread * x) * stats.norm.pdf(x)

    theirs = sum(
        integrate.quad(integrand, *ends, epsabs=1e-13, epsrel=1e-13, limit=400)[0] for ends in ((-12, 0), (0, 12))
    )
    np.testing.assert_allclose(mean_log_sum(tau, np.log(2.0)), theirs, rtol=1e-10)


@pytest.mark.parametrize(("tau", "log_length"), [(1.7, 2.2), (8.0, 31.0), (24.0, 140.0), (29.0, 330.0)])
def test_the_mean_logarithm_grows_by_the_mean_score(tau, log_length):
    """Its derivative in τ is the mean of the weighted score, τ(1 - P), by other integrals; at τ = 0 it is ln L."""
    nodes, weights = np.polynomial.legendre.leggauss(120)
    scores = tau * (1 + nodes) / 2
    slopes = scores * (1 - np.asarray(participation(scores, log_length)))
    theirs = log_length + tau / 2 * weights @ slopes
    np.testing.assert_allclose(mean_log_sum(tau, log_length), theirs, rtol=1e-10)


def test_a_frozen_sum_is_its_largest_term():
    """Far beyond freezing `E ln S` is τ times the mean of the largest of L normals, up to a fraction 1/τ² of it."""
    for length in (3, 40, 10**6):
        largest = integrate.quad(
            lambda x, n=length: x * n * stats.norm.pdf(x) * stats.norm.cdf(x) ** (n - 1), -8, 12, limit=300
        )[0]
        np.testing.assert_allclose(mean_log_sum(60.0, np.log(length)), 60.0 * largest, rtol=2e-3)


def test_the_mean_logarithm_agrees_with_monte_carlo(assert_monte_carlo):
    scores = np.random.default_rng(6).standard_normal((40000, 23))
    for tau in (0.6, 2.4, 9.0):
        assert_monte_carlo(special.logsumexp(tau * scores, axis=1), mean_log_sum(tau, np.log(23.0)))


def test_typical_participation_agrees_with_monte_carlo(assert_monte_carlo):
    generator = np.random.default_rng(31)
    for tau, length in ((0.4, 3), (1.9, 17), (3.6, 240), (7.0, 9)):
        log_weights = tau * generator.standard_normal((20000, length))
        log_squares = special.logsumexp(2 * log_weights, axis=1) - 2 * special.logsumexp(log_weights, axis=1)
        assert_monte_carlo(log_squares, np.log(typical_participation(tau, np.log(length))))


def test_two_scores_are_typically_shared_as_a_normal_integral_says():
    """The weights of two tokens are sigmoids of a normal difference."""
    for tau in (0.2, 1.5, 11.0):
        g, step = np.linspace(-10.0, 10.0, 40001, retstep=True)
        weight = special.expit(np.sqrt(2.0) * tau * g)
        log_squares = np.log(weight**2 + (1 - weight) ** 2)
        theirs = np.exp(step * stats.norm.pdf(g) @ log_squares)
        np.testing.assert_allclose(typical_participation(tau, np.log(2.0)), theirs, rtol=1e-8)


def test_a_typical_prompt_shares_more_evenly_than_the_mean_says():
    """Jensen's inequality, strict where prompts differ; equal where they cannot."""
    taus, log_lengths = np.meshgrid([0.3, 2.0, 9.0, 30.0], [0.7, 5.0, 60.0, 330.0])
    typical, mean = np.vectorize(typical_participation)(taus, log_lengths), participation(taus, log_lengths)
    assert (typical <= mean * (1 + 1e-9)).all()
    assert (typical >= np.exp(-log_lengths) * (1 - 1e-9)).all()
    assert typical[1, 1] < 0.99 * float(mean[1, 1])
    np.testing.assert_allclose(typical_participation(5.0, 0.0), 1.0, rtol=1e-10)


# (τ, ln L): E ln S, by `python tests/lib/references/long_prompts.py`.
CORNERS = {
    (30.0, 330.0): 768.064100393977,
    (30.0, np.log(2.0)): 16.9411452067619,
    (60.0, 330.0): 1533.4858181051,
    (60.0, np.log(2.0)): 33.859107565473,
}


@pytest.mark.parametrize("corner", CORNERS)
def test_the_mean_logarithm_at_the_corners_of_its_domain(corner):
    assert abs(mean_log_sum(*corner) - CORNERS[corner]) < max(1e-10, 1e-12 * CORNERS[corner])


@pytest.mark.parametrize("log_length", [330.0, np.log(2.0)])
def test_typical_participation_at_the_largest_spread(log_length):
    desired = np.exp(CORNERS[60.0, log_length] - 2 * CORNERS[30.0, log_length])
    np.testing.assert_allclose(typical_participation(30.0, log_length), desired, rtol=1e-9)
