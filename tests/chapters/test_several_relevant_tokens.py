"""Statements of the chapter that no figure shows, and the gradient of its training."""

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.special

from chapters.several_relevant_tokens import several_heads, trained_heads
from lib.single_location import Absent, Independent, Several, best_risk, linear, sigmoid, softmax
from lib.statistics import standard_error

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("head", ["softmax", "sigmoid"])
def test_the_gradient_of_training_is_that_of_the_error(head):
    rng = np.random.default_rng(0)
    tokens, label = trained_heads._draw(2, 20, rng)
    parameters = rng.normal(size=9)

    def error(x):
        return trained_heads._error_and_gradient(x, tokens, label, 2, head)[0]

    gradient = trained_heads._error_and_gradient(parameters, tokens, label, 2, head)[1]
    np.testing.assert_allclose(gradient, scipy.optimize.approx_fprime(parameters, error), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("log_length", "expected"), [(30.0, 0.682), (100.0, 0.714), (300.0, 0.730)])
def test_softmax_keeps_its_risk_on_long_prompts(log_length, expected):
    """r = 4 at 1.5 times 2 ln L; the limit is 0.75."""
    task = Several(np.round(np.exp(log_length)), 4, 3.0 * log_length)
    assert float(best_risk(task, softmax)) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(("factor", "expected"), [(0.25, 0.5695), (1.0, 0.2290), (4.0, 0.0635)])
def test_softmax_needs_more_than_the_squared_logarithm(factor, expected):
    """Four relevant tokens at ν = K (ln L)²: numbers of an independent computation."""
    task = Several(np.exp(300.0), 4, factor * 300.0**2)
    assert float(best_risk(task, softmax)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("snr", [1e4, 1e6])
def test_softmax_falls_slowly_at_a_fixed_length(snr):
    """Like the minimum over t of (r-1)t²/(rν) + ((L-r)/r) e^{-2t}, above linear attention in the end."""
    task = Several(10, 2, snr)
    t = np.linspace(0.0, 20.0, 20001)
    expansion = (0.5 * t**2 / snr + 4.0 * np.exp(-2.0 * t)).min()
    found = float(best_risk(task, softmax))
    assert found == pytest.approx(expansion, rel=0.01)
    assert float(best_risk(task, linear)) < found


def test_a_fixed_fraction_of_relevant_tokens():
    """L → ∞ at q = 1/10 and ν = 10: the limit of softmax, and the sigmoid, which is Bayes-optimal."""
    slopes = np.linspace(0.01, 3.0, 3000)
    limit = (1 - 0.1 * np.exp(-(slopes**2)) / (0.1 + 0.9 * np.exp(-2 * slopes * math.sqrt(10.0)))).min()
    assert limit == pytest.approx(0.41908, abs=1e-5)
    task = Several(1e6, 1e5, 10.0)
    assert float(best_risk(task, softmax)) == pytest.approx(limit, abs=1e-4)
    assert float(best_risk(task, sigmoid)) == pytest.approx(0.21952, abs=1e-5)
    assert float(best_risk(task, linear)) == pytest.approx(0.47368, abs=1e-5)


def test_a_random_number_costs_softmax_more_than_a_fixed_one():
    assert float(best_risk(Independent(100, 0.05, 8.0), softmax)) == pytest.approx(0.5363, abs=1e-4)
    assert float(best_risk(Several(100, 5, 8.0), softmax)) == pytest.approx(0.5174, abs=1e-4)


@pytest.mark.parametrize(("log_length", "flat", "steep"), [(20.0, 0.0194, 0.2614), (60.0, 0.0002, 0.2402)])
def test_averaging_replaces_the_sink_at_a_flat_slope_only(log_length, flat, steep):
    """π = ½ and ν = 4 ln L: the slope 0.65 √(2 ln L), and that of the posterior, whose risk tends to 0.2265."""
    task, limit = Absent(np.round(np.exp(log_length)), 4.0 * log_length, 0.5), 1 - 0.5 / (0.5 + 0.5 * (1 - 0.5**0.5))
    risks = []
    for slope in (0.65 * math.sqrt(2 * log_length), math.sqrt(4 * log_length)):
        moments = task.softmax_moments(slope, slope**2)
        risks.append(1.0 - float(moments.hidden) ** 2 / float(moments.power))
    assert risks == pytest.approx([flat, steep], abs=6e-5)
    assert limit == pytest.approx(0.2265, abs=1e-4)
    assert risks[1] > limit


def test_two_softmax_heads_on_one_key_against_drawn_prompts():
    """Values are fitted to half of the prompts, and errors are measured on the others, at slopes near the best."""
    risks = several_heads.solve_heads_on_one_key()
    # slopes and fitted values that are not the best add less than 1e-5 to the risk
    scores = np.random.default_rng(0).normal([10.0, 10.0, 0.0], size=(2, 200_000, 3))
    relevant = np.tile([1.0, 1.0, 0.0], 200_000)
    for slopes, expected in (((0.2013,), risks.one), ((0.500, 0.520), risks.two)):
        fitted, fresh = (
            np.stack([scipy.special.softmax(slope * half, axis=1).ravel() for slope in slopes], axis=1)
            for half in scores
        )
        values = np.linalg.lstsq(fitted, relevant)[0]
        errors = ((fresh @ values - relevant) ** 2).reshape(-1, 3).sum(axis=1) / 2
        assert abs(errors.mean() - expected) < 4.5 * standard_error(errors) + 1e-5
