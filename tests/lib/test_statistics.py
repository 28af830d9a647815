"""Error bars: of a mean, and of the worst among many comparisons."""

import numpy as np
import pytest
from scipy import stats

from lib.statistics import (
    comparison_quantile,
    standard_error,
    tells_apart,
    worst_deviation,
)


@pytest.mark.parametrize("comparisons", [1, 7, 100])
def test_comparison_quantile_is_exceeded_as_often_as_it_says(comparisons):
    """At 90 % confidence the worst of N normal errors exceeds it in a tenth of 20,000 trials."""
    worst = np.abs(np.random.default_rng(0).normal(size=(20_000, comparisons))).max(axis=1)
    exceeded = worst[:, None] > comparison_quantile(comparisons, confidence=0.9)
    assert abs(exceeded.mean() - 0.1) < comparison_quantile(3) * standard_error(exceeded)


def test_comparison_quantile_is_textbook_for_one_comparison():
    assert comparison_quantile(1) == pytest.approx(3.290526731, abs=1e-8)
    assert comparison_quantile(1, confidence=0.95) == pytest.approx(1.959963985, abs=1e-8)


def test_few_samples_ask_for_a_wider_interval():
    normal = comparison_quantile(40)
    assert comparison_quantile(40, samples=8) > comparison_quantile(40, samples=100) > normal
    assert comparison_quantile(40, samples=10**6) == pytest.approx(normal, rel=1e-3)
    assert comparison_quantile(1, samples=8) == pytest.approx(stats.t.ppf(0.9995, 7))


def test_a_simulation_that_tells_theories_apart_rejects_one_if_it_agrees_with_the_other():
    """One comparison suffices; within the bound of both theories, the simulation decides nothing."""
    bound, std_errors = 3.0, np.asarray([1.0, 0.5])
    assert tells_apart(np.asarray([0.0, 3.1]), std_errors, bound)
    assert tells_apart(np.asarray([-6.1, 0.0]), std_errors, bound)
    assert not tells_apart(np.asarray([5.9, -2.9]), std_errors, bound)


def test_standard_error_is_the_spread_of_the_mean():
    samples = np.random.default_rng(1).normal(scale=3.0, size=(4000, 25))
    np.testing.assert_allclose(standard_error(samples, axis=1), 3.0 / 5, rtol=0.8)
    np.testing.assert_allclose(standard_error(samples), 3.0 / np.sqrt(4000), rtol=0.1)
    assert samples.mean(axis=1).std() == pytest.approx(standard_error(samples, axis=1).mean(), rel=0.05)


def test_the_worst_deviation_is_that_of_the_column_furthest_from_zero():
    samples = np.random.default_rng(2).normal([0.0, 0.0, -1.0, 0.5], size=(500, 4))
    assert worst_deviation(samples) == pytest.approx(-stats.ttest_1samp(samples[:, 2], 0).statistic)
