"""State evolution of the Bayes-optimal estimator: its exactly known ends, and what makes it rise and fall."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit, softmax
from scipy.stats import multivariate_normal, norm

from lib.single_location._argmax import log_argmax_probability
from lib.single_location.bayes_optimal import bayes_optimal_risk
from lib.single_location.tasks import Max, Spiked
from lib.statistics import comparison_quantile

pytestmark = pytest.mark.usefixtures("float64", "unchecked")


@pytest.mark.parametrize("alpha", [0.5, 3.0])
def test_one_token_is_bayesian_linear_regression(checked, alpha):
    """With L = 1 there is nothing to find, and `q_v = α/(Δ² + 1 - q_v + α)`, here by Brent's method."""
    noise = 0.4
    q = np.float64(brentq(lambda q: q - alpha / (noise**2 + 1 - q + alpha), 0.0, 1.0))  # pyright: ignore
    np.testing.assert_allclose(bayes_optimal_risk(Spiked(1, 3.0), noise_std=noise, alpha=alpha), 1 - q, atol=2e-3)


def test_many_prompts_reach_the_population_bayes_risk():
    """For two tokens that is one integral: 1 - E sigmoid(ν + √(2ν) g), here by SciPy."""
    snr = 5.0

    def integrand(g):
        return expit(snr + np.sqrt(2 * snr) * g) * np.exp(-(g**2) / 2) / np.sqrt(2 * np.pi)

    floor = 1 - quad(integrand, -12, 12)[0]
    risks = [float(bayes_optimal_risk(Spiked(2, snr), noise_std=0.3, alpha=alpha)) for alpha in (1e2, 1e4, 1e6)]
    assert risks[0] > risks[1] > risks[2]
    np.testing.assert_allclose(risks[2], floor, atol=1e-3)


def evolved(length, snr, noise, alpha, seed):
    """The same evolution by plain Monte Carlo, with the overlap of two guesses of the hidden token in place of what is
    found: under the posterior they are the same."""
    rng = np.random.default_rng(seed)
    (hints, values), noises = rng.normal(size=(2, 20_000, length)), rng.normal(size=20_000)
    q_k = q_v = 0.01

    def known(q_k):
        at = np.sqrt(snr * q_k) * hints
        at[:, 0] += snr * q_k
        return at

    for _ in range(100):
        variance = noise**2 + 1 - q_v
        errors = np.sqrt(q_v) * (values[:, :1] - values) + np.sqrt(variance) * noises[:, None]
        posterior = softmax(known(q_k) - errors**2 / (2 * variance), axis=1)
        agreed = np.mean(np.sum(posterior**2, axis=1))
        learned = np.mean(np.sum((posterior * errors) ** 2, axis=1)) / variance**2
        q_k, q_v = (alpha * gain / (1 + alpha * gain) for gain in (snr * agreed, learned))
    return 1 - q_v * np.mean(np.sum(softmax(known(q_k), axis=1) ** 2, axis=1))


@pytest.mark.parametrize(("length", "snr", "noise", "alpha"), [(5, 6.0, 0.3, 1.0), (8, 8.0, 0.2, 0.5)])
def test_few_prompts_by_an_evolution_of_other_averages(length, snr, noise, alpha):
    """Where neither the key nor the value is known well."""
    risks = np.array([evolved(length, snr, noise, alpha, seed) for seed in range(6)])
    error = risks.std(ddof=1) / np.sqrt(len(risks))
    found = bayes_optimal_risk(Spiked(length, snr), noise_std=noise, alpha=alpha)
    assert abs(found - risks.mean()) < comparison_quantile(2) * error + 1e-3  # which the fixed points are good to


def test_no_prompts_leave_the_risk_of_answering_zero():
    np.testing.assert_allclose(bayes_optimal_risk(Spiked(3, 4.0), noise_std=0.3, alpha=1e-3), 1.0, atol=1e-2)


def test_risk_falls_with_prompts_and_hint_and_grows_with_noise():
    def risk(snr=4.0, noise_std=0.3, alpha=2.0):
        return float(bayes_optimal_risk(Spiked(3, snr), noise_std=noise_std, alpha=alpha))

    assert risk(alpha=4.0) < risk() < risk(alpha=1.0)
    assert risk(snr=8.0) < risk() < risk(snr=2.0)
    assert risk(noise_std=0.1) < risk() < risk(noise_std=1.0)


def drawn_from_the_larger(noise, alpha, seed):
    """The evolution for the larger of two scores by plain Monte Carlo: scores and hidden tokens are drawn, and what is
    known of them is one normal distribution function of a difference, differentiated by hand."""
    rng = np.random.default_rng(seed)
    known, missing, values = rng.normal(size=(3, 25_000, 2))
    noises = rng.normal(size=25_000)
    q_k = q_v = 0.01
    for _ in range(60):
        means, width = np.sqrt(q_k) * known, np.sqrt(2 * (1 - q_k))
        hidden = (means + np.sqrt(1 - q_k) * missing).argmax(axis=1)
        variance = noise**2 + 1 - q_v
        guesses = np.sqrt(q_v) * values
        answers = np.take_along_axis(guesses, hidden[:, None], axis=1)[:, 0] + np.sqrt(variance) * noises
        errors = answers[:, None] - guesses
        lead = (means[:, 0] - means[:, 1]) / width
        chance, slope = norm.cdf(lead), norm.pdf(lead) / width
        first, second = np.exp(-(errors**2) / (2 * variance)).T
        evidence = chance * first + (1 - chance) * second
        pulls = np.stack([chance * first * errors[:, 0], (1 - chance) * second * errors[:, 1]]) / (evidence * variance)
        gains = 2 * np.mean((slope * (first - second) / evidence) ** 2), np.mean(np.sum(pulls**2, axis=0))
        q_k, q_v = (alpha * gain / (1 + alpha * gain) for gain in gains)
    return 1 - q_v * np.mean(chance**2 + (1 - chance) ** 2)


def test_the_larger_of_two_scores_by_an_evolution_that_is_drawn():
    risks = np.array([drawn_from_the_larger(0.5, 4.0, seed) for seed in range(6)])
    error = risks.std(ddof=1) / np.sqrt(len(risks))
    found = bayes_optimal_risk(Max(2, np.inf), noise_std=0.5, alpha=4.0)
    assert abs(found - risks.mean()) < comparison_quantile(1) * error + 2e-3  # which the fixed points are good to


@pytest.mark.parametrize("means", [[0.3, -0.2, 1.1], [0.0, 0.0, -4.0, 2.0]])
def test_the_largest_of_several_scores_by_normal_distributions_of_differences(means):
    """Against SciPy's multivariate normal distribution of the differences to one score, whose covariance is 1 + δ."""
    means, variance = np.asarray(means), 0.4
    chances = np.exp(log_argmax_probability(jnp.asarray(means), jnp.asarray(variance)))
    for token, chance in enumerate(chances):
        leads = means[token] - np.delete(means, token)
        covariance = variance * (1 + np.eye(leads.size))
        wanted = multivariate_normal(cov=covariance).cdf(leads)  # pyright: ignore[reportArgumentType]
        np.testing.assert_allclose(chance, wanted, atol=2e-5)
    np.testing.assert_allclose(chances.sum(), 1.0, rtol=1e-12)


def test_many_prompts_find_the_largest_score(checked):
    """At ν = ∞ the population Bayes risk is 0."""
    assert 0 < bayes_optimal_risk(Max(3, np.inf), noise_std=0.3, alpha=1000.0) < 2e-3


def test_max_of_finite_strength_is_refused():
    with pytest.raises(ValueError, match="snr = inf only"):
        bayes_optimal_risk(Max(3, 2.0), noise_std=0.3, alpha=2.0)


@pytest.mark.parametrize("change", [{"alpha": 0.0}, {"noise_std": -0.1}])
def test_wrong_settings_are_refused(change):
    with pytest.raises(ValueError, match="bayes_optimal_risk"):
        bayes_optimal_risk(Spiked(3, 4.0), **{"noise_std": 0.3, "alpha": 1.0, **change})
