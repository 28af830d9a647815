"""Compare the closed forms of `risk_and_parameters` with searches, quadratures and flows."""

import jax
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import minimize_scalar

from chapters.risk_and_parameters import opposite_heads
from chapters.risk_and_parameters.figures import beyond_one_family
from chapters.risk_and_parameters.figures import price_of_one_head as price_figure
from chapters.risk_and_parameters.isotropic_heads import DIMENSION, LONG, BestHead, best_heads, exact_risk
from chapters.risk_and_parameters.opposite_heads import Outputs, opposite_limit, solve_errors
from chapters.risk_and_parameters.valley_drift import infinite_product, valley_duration
from lib.icl import (
    Blocks,
    LinearRegression,
    QueryAverage,
    ScoreTable,
    best_in_the_valley,
    block_risk,
    valley_limit,
)
from lib.icl.heads import heads_risk

NAME = "risk_and_parameters"


def test_two_heads_are_compared_at_small_keys(run_cells):
    with pytest.raises(ValueError, match=r"must reach 0\.1"):
        run_cells(NAME, tilts=[0.3, 0.4])


@pytest.mark.parametrize("name", ["flow_lengths", "tilts"])
def test_what_would_be_compared_with_itself_is_refused(run_cells, name):
    with pytest.raises(ValueError, match=f"{name}.*at least 2 different"):
        run_cells(NAME, **{name: {"flow_lengths": [100, 100], "tilts": [0.1, 0.1]}[name]})


@pytest.mark.parametrize("dimension", [1, 5, 20])
def test_the_root_minimises_the_law_of_the_valley(dimension):
    squared, least, _ = best_in_the_valley(dimension)
    found = minimize_scalar(
        lambda s: valley_limit(s, dimension), bounds=(1e-4, 0.4999), method="bounded", options={"xatol": 1e-12}
    )
    np.testing.assert_allclose(least, found.fun, rtol=1e-10)
    np.testing.assert_allclose(squared, found.x, rtol=1e-4)


def test_the_price_is_the_known_one():
    np.testing.assert_allclose([best_in_the_valley(d).price for d in (1, 5, 10)], [4.2179, 3.1926, 2.9722], atol=1e-4)


@pytest.mark.parametrize("noise", [0.5, 4.0])
def test_the_root_minimises_the_law_with_noise(noise):
    squared, least, price = best_in_the_valley(DIMENSION, noise)
    found = minimize_scalar(
        lambda s: valley_limit(s, DIMENSION, noise), bounds=(1e-4, 0.4999), method="bounded", options={"xatol": 1e-12}
    )
    np.testing.assert_allclose(least, found.fun, rtol=1e-10)
    np.testing.assert_allclose(squared, found.x, rtol=1e-4)
    assert price > np.e
    np.testing.assert_allclose(price, least / (DIMENSION * (DIMENSION + 1 + noise)))


def test_the_price_is_above_its_bound_and_this_above_e():
    for dimension in (1, 2, 5, 50):
        assert best_in_the_valley(dimension).price > beyond_one_family.least_price(dimension) > np.e


def test_opposite_limit_is_the_average_over_queries():
    s, d = 0.1, 5

    def integrand(r):
        density = r ** (d - 1) * np.exp(-(r**2) / 2) * 2 ** (1 - d / 2) / (0.75 * np.sqrt(np.pi))  # Γ(5/2)
        return density * (d / s * np.sinh(s * r**2) + r**2 * np.cosh(s * r**2))

    np.testing.assert_allclose(opposite_limit(s, d), quad(integrand, 0, 25)[0], rtol=1e-9)
    np.testing.assert_allclose(opposite_limit(1e-5, d), d * (d + 1), rtol=1e-6)


def test_the_product_solves_the_infinite_flow():
    def velocity(time, at):
        miss = 1 - at[0] * at[1] / np.sqrt(DIMENSION)  # of R = ½ d (1 - bu)², ‖A‖ = √d u
        return np.sqrt(DIMENSION) * miss * at[::-1]

    times = np.array([0.3, 1.0, 3.0])
    solved = solve_ivp(velocity, (0, 3), [0.5, 0.5], t_eval=times, rtol=1e-10, atol=1e-12).y
    np.testing.assert_allclose(infinite_product(times, 0.5), solved[0] * solved[1] / np.sqrt(DIMENSION), rtol=1e-7)


def test_the_duration_is_that_of_a_descent_along_the_curve():
    def velocity(time, tilt):
        step = 1e-5
        slope = (valley_limit((tilt + step) ** 2, 5) - valley_limit((tilt - step) ** 2, 5)) / (4 * step)
        return -slope / (5 + tilt**-4)

    time = valley_duration(0.42, 0.37)
    np.testing.assert_allclose(solve_ivp(velocity, (0, time), [0.42], rtol=1e-9, atol=1e-12).y[0, -1], 0.37, rtol=1e-6)


def test_the_exact_risk_approaches_the_law_of_the_valley():
    with jax.enable_x64(True):
        risk, _ = exact_risk(DIMENSION, 10**8)(np.array([0.3 * np.sqrt(DIMENSION), 1 / 0.3]))
    np.testing.assert_allclose(2e8 * risk, valley_limit(0.09, DIMENSION), rtol=1e-5)


@pytest.mark.parametrize(("dimension", "noise"), [(1, 0.0), (5, 0.0), (5, 0.7)])
def test_the_exact_risk_is_that_of_block_heads(float64, dimension, noise):
    point = np.array([0.6, 1.3])
    scores, queries = ScoreTable.at(np.log(50.0)), QueryAverage.radial(dimension)

    def of_blocks(point):
        task = LinearRegression(np.eye(dimension), noise_std=noise**0.5)
        return block_risk(task, Blocks.isotropic(dimension, *point), scores, queries) - 0.5 * noise

    value, slope = exact_risk(dimension, 50, noise)(point)
    np.testing.assert_allclose(value, of_blocks(point), rtol=1e-12)
    np.testing.assert_allclose(slope, jax.grad(of_blocks)(point), rtol=1e-11)


def test_the_price_is_that_of_the_returned_head():
    """The ratio agrees with the formula for the risk of any head, at a length where b is not 1/u."""
    length = 10
    with jax.enable_x64(True):
        task = LinearRegression(np.eye(DIMENSION))
        head, *_ = best_heads(DIMENSION, length)
        assert abs(head.gain * head.tilt - 1) > 0.1
        risk = task.finite_risk(
            Blocks.head(Blocks(head.tilt * np.eye(DIMENSION), np.float64(head.gain))), np.log(length)
        )
        np.testing.assert_allclose(risk, head.ratio * task.linear_attention_risk(length), rtol=1e-5)


@pytest.fixture
def few_keys(monkeypatch):
    """A grid of three keys besides those of the test."""
    monkeypatch.setattr(opposite_heads, "GRID", 3)


def test_one_head_is_compared_at_its_best_gain(few_keys):
    """The exact risk agrees with a search over gains where the best is not 1/u, the simulation with least squares."""
    length, tilts = 30, [0.2, 0.5]
    with jax.enable_x64(True):
        theory, risk = solve_errors(length, tilts), exact_risk(DIMENSION, length)
        for tilt in tilts:
            norm = tilt * np.sqrt(DIMENSION)
            found = minimize_scalar(
                lambda gain, norm=norm: risk(np.array([norm, gain]))[0], bracket=(0.1, 1 / tilt), options={"xtol": 1e-9}
            )
            assert abs(found.x * tilt - 1) > 0.1
            np.testing.assert_allclose(theory.one_exact[theory.tilts == tilt], 2 * length * found.fun, rtol=1e-9)
    rng = np.random.default_rng(5)
    outputs, targets = rng.normal(size=(2, 40)), rng.normal(size=40)
    errors = Outputs(length, np.array(tilts), outputs, outputs, targets).best_gain_errors(outputs)
    least = [np.linalg.lstsq(one[:, None], targets)[1].item() / 40 for one in outputs]
    np.testing.assert_allclose(errors.mean(axis=1), least, rtol=1e-12)


def test_two_heads_are_compared_at_their_best_gain(few_keys):
    """The parabola of the risk in the gain has the same least value; small keys, that of debiased gradient descent."""
    length, tilts = 30, [0.03, 0.4]
    with jax.enable_x64(True):
        theory, task = solve_errors(length, tilts), LinearRegression(np.eye(DIMENSION))

        opposite, gains = np.array([1.0, -1.0]), np.array([0.5, 1.5, 2.5])
        risks = [float(heads_risk(task, 0.4 * opposite, gain / 2 * opposite, np.log(length))) for gain in gains]
    parabola = np.polynomial.Polynomial.fit(gains, risks, 2)  # outputs are proportional to the gain
    [best] = parabola.deriv().roots()
    assert abs(best * 0.4 - 1) > 0.05
    np.testing.assert_allclose(theory.two_exact[theory.tilts == 0.4], 2 * length * parabola(best), rtol=1e-7)
    # the error of debiased gradient descent is quadratic in small keys, with the coefficient of opposite_heads
    descent = DIMENSION * (1 - (length - 1) / (length + DIMENSION))
    quadratic = 4 * DIMENSION * (DIMENSION + 2) * (length - 1) / (length * (length + DIMENSION) ** 2) * 0.03**2
    assert theory.two_exact[0] == pytest.approx(length * (descent - quadratic), rel=2e-5)
    assert abs(quadratic / descent) > 1e-4


def test_the_lowest_head_is_drawn():
    """The order of the starts does not matter; a search may end at huge scores, where the risk is flat."""
    lost, found = BestHead(5, 2, 16119.3, 0.24, 1.2566), BestHead(5, 2, 2.97, 0.255, 1.2534)
    longest = BestHead(5, LONG, 0.5, 2.0, 3.0)
    for heads in ([lost, found, longest], [found, lost, longest]):
        drawn = price_figure.numbers(heads).table.frame
        assert drawn.loc[drawn["length"] == found.length, "ratio"].tolist() == [found.ratio]


@pytest.mark.daily
def test_limits_for_long_prompts_are_claimed_on_long_prompts(run_cells):
    run = run_cells("risk_and_parameters", only="drift_along_the_valley", flow_lengths=[50, 3098, 29516])
    assert run.broken == []
    assert set(run.withheld) == {"risk-and-parameters-duration", "risk-and-parameters-risk"}
