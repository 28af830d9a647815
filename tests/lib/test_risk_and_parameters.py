"""Risk and parameters: its claims hold and can fail, its laws are right, its pictures can be drawn."""

from dataclasses import replace
from pathlib import Path

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import minimize_scalar

from companion.house import House
from companion.notebooks import Notebook
from companion.parameters import check, resolve
from companion.publishing import caption_and_alt
from lib import plotting
from lib.experiments.risk_and_parameters import (
    DIMENSION,
    best_in_the_valley,
    exact_risk,
    infinite_product,
    opposite_law,
    risk_and_parameters,
    valley_duration,
    valley_law,
)
from lib.plotting.style import style

CLAIMS = tuple(
    f"risk-and-parameters-{name}"
    for name in (
        "follows",
        "end",
        "duration",
        "risk",
        "price",
        "best-head",
        "price-e",
        "one-head",
        "two-heads",
        "opposite-law",
    )
)
FIGURES = ("drift_along_the_valley", "price_of_one_head", "two_opposite_heads")


@pytest.fixture(scope="module")
def smoke():
    house = House(Path(__file__).resolve().parents[2])
    notebook = Notebook.named(house, "risk_and_parameters")
    return check(notebook, resolve(house, notebook, "smoke"))


@pytest.fixture(scope="module")
def result(smoke):
    return risk_and_parameters(**smoke)


def test_the_chapter_makes_these_claims_and_figures(result):
    assert tuple(claim.id for claim in result.claims) == CLAIMS
    assert tuple(result.tables) == FIGURES


def test_claims_hold_and_fail_under_their_alternatives(result):
    for claim in result.claims:
        assert claim.holds, claim
        assert not replace(claim, measured=claim.alternative.measured).holds, claim


def test_two_heads_are_compared_at_small_keys(smoke):
    with pytest.raises(ValueError, match=r"must reach 0\.1"):
        risk_and_parameters(**{**smoke, "tilts": [0.3, 0.4]})


@pytest.mark.parametrize("dimension", [1, 5, 20])
def test_the_root_minimises_the_law_of_the_valley(dimension):
    squared, least = best_in_the_valley(dimension)
    found = minimize_scalar(
        lambda s: valley_law(s, dimension), bounds=(1e-4, 0.4999), method="bounded", options={"xatol": 1e-12}
    )
    np.testing.assert_allclose(least, found.fun, rtol=1e-10)
    np.testing.assert_allclose(squared, found.x, rtol=1e-4)


def test_the_price_is_the_known_one():
    prices = [best_in_the_valley(d)[1] / (d * (d + 1)) for d in (1, 5, 10)]
    np.testing.assert_allclose(prices, [4.2179, 3.1926, 2.9722], atol=1e-4)


def test_opposite_law_is_the_average_over_queries():
    s, d = 0.1, 5

    def integrand(r):
        density = r ** (d - 1) * np.exp(-(r**2) / 2) * 2 ** (1 - d / 2) / (0.75 * np.sqrt(np.pi))  # Γ(5/2)
        return density * (d / s * np.sinh(s * r**2) + r**2 * np.cosh(s * r**2))

    np.testing.assert_allclose(opposite_law(s, d), quad(integrand, 0, 25)[0], rtol=1e-9)
    np.testing.assert_allclose(opposite_law(1e-5, d), d * (d + 1), rtol=1e-6)


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
        slope = (valley_law((tilt + step) ** 2, 5) - valley_law((tilt - step) ** 2, 5)) / (4 * step)
        return -slope / (5 + tilt**-4)

    time = valley_duration(0.42, 0.37)
    np.testing.assert_allclose(solve_ivp(velocity, (0, time), [0.42], rtol=1e-9, atol=1e-12).y[0, -1], 0.37, rtol=1e-6)


def test_the_exact_risk_approaches_the_law_of_the_valley():
    with jax.enable_x64(True):
        risk, _ = exact_risk(DIMENSION, 10**8)(np.array([0.3 * np.sqrt(DIMENSION), 1 / 0.3]))
    np.testing.assert_allclose(2e8 * risk, valley_law(0.09, DIMENSION), rtol=1e-5)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", FIGURES)
def test_figure_is_drawn_from_its_own_table(result, name, theme):
    caption, alt = caption_and_alt(getattr(plotting, name))
    assert min(len(caption), len(alt)) > 80
    with style(theme):
        figure = getattr(plotting, name)(result.of(name))
        figure.canvas.draw()
        plt.close(figure)
    assert all(axes.has_data() for axes in figure.axes)
