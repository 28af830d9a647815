"""State evolution of the Bayes-optimal estimator: its exactly known ends, and what makes it rise and fall."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit, softmax

from lib.single_location.bayes_optimal import bayes_optimal_risk
from lib.single_location.tasks import Max, Spiked
from lib.statistics import comparison_quantile

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("alpha", [0.5, 3.0])
def test_one_token_is_bayesian_linear_regression(alpha):
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


def test_max_is_refused():
    with pytest.raises(ValueError, match="spiked task only"):
        bayes_optimal_risk(Max(3, 2.0), noise_std=0.3, alpha=2.0)


@pytest.mark.parametrize("change", [{"alpha": 0.0}, {"noise_std": -0.1}])
def test_wrong_settings_are_refused(change):
    with pytest.raises(ValueError, match="bayes_optimal_risk"):
        bayes_optimal_risk(Spiked(3, 4.0), **{"noise_std": 0.3, "alpha": 1.0, **change})
