"""The chapter on opposite heads: exact risks, prices and limits against independent computations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from chapters.opposite_heads import exact_risks, prices
from lib.icl.many_heads import best_values, heads_risk, long_prompt_covariance

LENGTH, DIMENSION, NOISE = 6, 2, 0.5


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def task():
    return exact_risks.regression(DIMENSION, NOISE)


def cumulants(scores):
    """Return the second and the fourth cumulant of the empirical distribution of each row."""
    centred = scores - scores.mean(axis=1, keepdims=True)
    second = (centred**2).mean(axis=1)
    return second, (centred**4).mean(axis=1) - 3 * second**2


def test_the_curvature_is_that_of_sampled_cumulants(task):
    """Before Basu's theorem the coefficient is a mean over samples of normals, which is simulated here."""
    limit = exact_risks.limit_curve(task)
    power, ratio = float(task.task_scale) ** 2, float(task.noise_std / task.task_scale) ** 2
    step = LENGTH / (LENGTH + DIMENSION + ratio)
    second, fourth = cumulants(np.random.default_rng(1).normal(size=(400_000, LENGTH)))
    label = power * (DIMENSION - 1) + NOISE
    terms = power * (step * fourth * second - fourth) + step * label / LENGTH * fourth
    terms = step / 3 * DIMENSION * (DIMENSION + 2) * terms
    formula = -limit.quadratic * (LENGTH - 1) / (LENGTH * (LENGTH + DIMENSION + ratio) ** 2)
    error = terms.std() / terms.size**0.5
    assert abs(terms.mean() - formula) < 4 * error
    assert abs(formula) > 20 * error  # so that the comparison could fail


def test_the_limit_curve_has_its_minimum_at_the_limit_of_the_best_key(task):
    ratio = float(task.noise_std / task.task_scale) ** 2
    grid = np.linspace(0.01, 2, 200_001)
    lowest = grid[np.argmin(exact_risks.limit_curve(task).at(grid))]
    assert lowest == pytest.approx((12 / ((DIMENSION + 4) * (DIMENSION + 3 + ratio))) ** 0.5, abs=2e-5)


def test_the_quartic_coefficient_is_that_of_the_long_prompt_covariance(task):
    """It is the third-order coefficient of the odd part of K, divided by its argument."""

    def noise(product):
        return float(long_prompt_covariance(task, product) - long_prompt_covariance(task, -product)) / (2 * product)

    small, large = 0.004, 0.008
    assert (noise(large) - noise(small)) / (large**2 - small**2) == pytest.approx(
        exact_risks.limit_curve(task).quartic, rel=2e-3
    )


def test_the_even_part_is_half_the_sum_of_the_outputs_at_both_queries():
    tokens = jax.random.normal(jax.random.key(0), (7, 4))
    query = jax.random.normal(jax.random.key(1), (4,))

    def output(at):
        return 1.3 * jax.nn.softmax(0.4 * tokens[:, :3] @ at[:3]) @ tokens[:, 3]

    expected = (output(query) + output(-query)) / 2
    assert prices._even_part(tokens, query, 0.4, 1.3) == pytest.approx(float(expected), rel=1e-12)


def test_the_task_has_labels_of_variance_one_without_noise(task):
    drawn = task.draw(3, 40_000, key=jax.random.key(2))
    labels = np.asarray(drawn.tokens[..., -1])
    assert labels.var() == pytest.approx(1 + NOISE, rel=0.03)


def test_the_price_of_one_head_is_that_of_two_simulated_risks(task):
    """The exact price against the difference of two mean square errors on the same prompts."""
    [price] = prices.simulate_prices(task, [LENGTH], 1000, seed=3)
    drawn = task.draw(LENGTH, 200_000, key=jax.random.key(4))
    tokens, queries = np.asarray(drawn.tokens), np.asarray(drawn.queries)
    key = price.keys[-1]
    value = prices.exact_price(task, key, LENGTH)[0]
    scores = key * np.einsum("plc,pc->pl", tokens[..., :-1], queries[:, :DIMENSION])

    def output(sign):
        weights = np.exp(sign * scores)
        return value * np.sum(weights * tokens[..., -1], axis=1) / weights.sum(axis=1)

    target = np.asarray(drawn.targets)
    one, two = output(1), (output(1) - output(-1)) / 2
    differences = (one - target) ** 2 - (two - target) ** 2
    error = differences.std() / differences.size**0.5
    assert abs(differences.mean() - price.exact[-1]) < 4 * error
    assert price.exact[-1] > 20 * error


def test_the_price_is_the_difference_of_the_risks_of_the_head_and_of_its_halves(task):
    """The library's risk of the pair at half the value, without the parabola in the value."""
    log_length = jnp.log(float(LENGTH))
    value, price = prices.exact_price(task, 0.4, LENGTH)
    [best], risk = best_values(task, np.array([0.4]), log_length)
    halves = heads_risk(task, np.array([0.4, -0.4]), np.array([value, -value]) / 2, log_length)
    assert value == pytest.approx(float(best), rel=1e-10)
    assert price == pytest.approx(2 * float(risk - halves), rel=1e-7)


def test_prompts_of_one_length_do_not_depend_on_the_other_lengths(task):
    both = prices.simulate_prices(task, [3, LENGTH], 1000, seed=3)
    [alone] = prices.simulate_prices(task, [LENGTH], 1000, seed=3)
    np.testing.assert_array_equal(both[1].squares, alone.squares)
