"""Error curves, fitted exponents, the exact error of isotropic prompts: against SciPy, simulations, finer nodes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from lib.attention import Attention
from lib.concentration import (
    ErrorCurve,
    RadialTable,
    _log_chi_density,
)
from lib.finite_prompt import output_error
from lib.measures import Gaussian


def test_the_curve_is_the_mean_and_its_covariance_that_of_numpy(assert_exact):
    samples = np.random.default_rng(7).lognormal(size=(40, 3)).cumsum(axis=1)
    curve = ErrorCurve.of([2, 4, 8], samples)
    assert_exact(curve.mean, samples.mean(axis=0))
    assert_exact(curve.cov, np.cov(samples.T) / 40)
    assert_exact(curve.std_error, stats.sem(samples, axis=0))
    assert_exact(curve.deviations(np.ones(3)), np.abs(stats.ttest_1samp(samples, 1.0).statistic))


pytestmark = pytest.mark.usefixtures("float64")


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
    rates = [ErrorCurve.of(SIZES, one).fit_rate(*bends) for one in samples]
    return np.asarray([[rate.exponent, rate.std_error, rate.p_value] for rate in rates]).T


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


def test_a_rate_is_that_of_scipy_and_its_interval_symmetric(assert_exact):
    """`scipy.optimize.curve_fit` with the full covariance, on the logarithms."""
    from scipy.optimize import curve_fit

    samples = noisy_samples(BENDS["log log"][1])[0]
    curve = ErrorCurve.of(SIZES, samples)
    mean, cov = curve.mean, curve.cov / np.outer(curve.mean, curve.mean)

    def model(x, exponent, constant, bend):
        return constant - exponent * x + bend * np.log(x)

    logs = np.log(mean) + np.diag(cov) / 2
    best, spread = curve_fit(model, np.log(LENGTHS), logs, sigma=cov, absolute_sigma=True)
    rate = curve.fit_rate(log_log)
    np.testing.assert_allclose([rate.exponent, rate.std_error], [best[0], spread[0, 0] ** 0.5], rtol=1e-5)
    assert_exact(rate.interval(2.0), [rate.exponent - 2 * rate.std_error, rate.exponent + 2 * rate.std_error])


@pytest.fixture(scope="module")
def table(float64):
    return RadialTable.at(np.log([1.0, 64.0, 1e8]))


@pytest.fixture(scope="module")
def finer_table(float64):
    return RadialTable.at(np.log([1.0, 64.0, 1e8]), largest_tau=28.0, nodes=160)


@pytest.mark.parametrize("dimension", [1, 2, 16])
def test_the_chi_density_is_that_of_scipy(dimension, assert_exact):
    radius = np.asarray([1e-3, 0.7, 4.0, 30.0])
    assert_exact(_log_chi_density(radius, dimension), stats.chi.logpdf(radius, dimension))


def test_the_isotropic_error_is_a_mean_of_output_errors(table):
    """Two dimensions by a tensor rule in polar coordinates, from `output_error` itself, and the error of one token."""
    norm = 0.7
    radius, weight = np.polynomial.legendre.leggauss(40)
    radius, weight = 6 * (radius + 1), 6 * weight
    law, head = Gaussian(np.zeros(2), np.eye(2)), Attention(norm * np.eye(2), np.eye(2))
    queries = jnp.asarray(np.stack([0.6 * radius, 0.8 * radius], axis=1))
    errors = jax.vmap(lambda query: output_error(head, law, query, np.log(64.0)))(queries)
    exact = table.error(norm, 2)
    np.testing.assert_allclose(np.sum(weight * radius * np.exp(-(radius**2) / 2) * errors), exact[1], rtol=1e-7)
    np.testing.assert_allclose(exact[0], 2 + 2 * norm**2, rtol=1e-9)


@pytest.mark.parametrize(("norm", "dimension"), [(0.4, 1), (0.5, 16), (1.0, 4), (2.0, 1), (2.0, 16)])
def test_the_default_table_is_as_fine_and_as_far_as_it_says(table, finer_table, norm, dimension):
    exact = finer_table.error(norm, dimension)
    np.testing.assert_allclose(table.error(norm, dimension), exact, rtol=1e-6)


def test_fewer_prompts_than_lengths_have_no_covariance():
    with pytest.raises(ValueError, match="more rows than columns"):
        ErrorCurve.of([1, 2, 3], np.ones((3, 3)))


def test_as_many_lengths_as_coefficients_leave_nothing_to_judge_by():
    with pytest.raises(ValueError, match="needs more lengths"):
        ErrorCurve(np.asarray([2, 4, 8]), np.ones(3), np.eye(3)).fit_rate(np.reciprocal)
