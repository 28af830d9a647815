"""Fitted exponents: against SciPy, and as often within their error as it says."""

import numpy as np
import pytest
from scipy import stats

from chapters.trajectory_stability.exponents import fit_rate


def log_log(length):
    """A power of ln L."""
    return np.log(np.log(length))


SIZES = [4, 8, 16, 32, 64, 128, 256, 512]

LENGTHS = np.asarray(SIZES)

BENDS = {
    "straight": ((), 0.8 * np.zeros(8)),
    "one over length": ((np.reciprocal,), -2.0 / LENGTHS),
    "log log": ((log_log,), 1.5 * np.log(np.log(LENGTHS))),
    "both": ((np.reciprocal, log_log), 1.5 * np.log(np.log(LENGTHS)) - 2.0 / LENGTHS),
}

EXPONENT = 0.7

REPEATS = 400


def fits(samples, *bends):
    """A fit a repeat: exponents, standard errors, p-values."""
    rates = [fit_rate(SIZES, one, *bends) for one in samples]
    return np.asarray(rates).T


def noisy_samples(bend, prompts=500):
    """Skew, and as correlated between lengths as nested prompts are; their mean is the curve asked for."""
    rng = np.random.default_rng(8)
    steps = rng.gamma(1.0, size=(REPEATS, prompts, 9))
    noise = 0.5 * (steps[..., 1:] + steps[..., :-1])
    return noise * np.exp(bend) * LENGTHS**-EXPONENT


@pytest.mark.parametrize("name", BENDS)
def test_intervals_cover_as_often_as_they_say(name):
    bends, bend = BENDS[name]
    exponent, std_error, _ = fits(noisy_samples(bend), *bends)
    covered = int(np.sum(np.abs(exponent - EXPONENT) <= 1.96 * std_error))
    low, high = stats.binom.ppf([0.0005, 0.9995], REPEATS, 0.95)
    assert low <= covered <= high
    deviation = (exponent - EXPONENT) / std_error
    assert abs(deviation.mean()) < stats.norm.isf(0.0005) / np.sqrt(REPEATS)


@pytest.mark.parametrize("name", BENDS)
def test_p_values_are_uniform_where_the_curve_is_among_those_fitted(name):
    bends, bend = BENDS[name]
    _, _, p_value = fits(noisy_samples(bend), *bends)
    assert stats.kstest(p_value, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", ["one over length", "log log"])
def test_a_straight_line_through_a_bend_misses_the_exponent_and_says_so(name):
    exponent, std_error, p_value = fits(noisy_samples(BENDS[name][1]))
    assert np.mean(np.abs(exponent - EXPONENT) <= 1.96 * std_error) < 0.05
    assert np.mean(p_value < 1e-3) > 0.95


def test_a_rate_is_that_of_scipy():
    """`scipy.optimize.curve_fit` with the full covariance, on the logarithms."""
    from scipy.optimize import curve_fit

    samples = noisy_samples(BENDS["log log"][1])[0]
    mean = samples.mean(axis=0)
    cov = np.cov(samples.T) / len(samples) / np.outer(mean, mean)

    def model(x, exponent, constant, bend):
        return constant - exponent * x + bend * np.log(x)

    logs = np.log(mean) + np.diag(cov) / 2
    best, spread = curve_fit(model, np.log(LENGTHS), logs, sigma=cov, absolute_sigma=True)
    rate = fit_rate(SIZES, samples, log_log)
    np.testing.assert_allclose([rate.exponent, rate.std_error], [best[0], spread[0, 0] ** 0.5], rtol=1e-5)
