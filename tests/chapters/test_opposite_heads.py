"""The chapter on opposite heads: exact risks, prices and limits against independent computations."""

import dataclasses

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
import pytest

from chapters.opposite_heads import exact_risks, prices, trained_pairs, training
from chapters.opposite_heads.data import published
from chapters.opposite_heads.figures import key_in_training
from chapters.opposite_heads.figures import published_losses as losses_figure
from chapters.opposite_heads.published_losses import (
    DATA,
    PAIR,
    PUBLISHED_DIMENSION,
    PUBLISHED_NOISE,
    PublishedLosses,
    approximate_error,
    descent_error,
    published_head,
)
from chapters.opposite_heads.style import RUN
from chapters.worth_of_heads.long_prompts import long_prompt_covariance
from lib.icl import LinearRegression
from lib.icl.heads import best_values, heads_risk

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
    limit = exact_risks.solve_limit_curve(task)
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
    lowest = grid[np.argmin(exact_risks.solve_limit_curve(task).at(grid))]
    assert lowest == pytest.approx((12 / ((DIMENSION + 4) * (DIMENSION + 3 + ratio))) ** 0.5, abs=2e-5)


def test_the_quartic_coefficient_is_that_of_the_long_prompt_covariance(task):
    """It is the third-order coefficient of the odd part of K, divided by its argument."""

    def noise(product):
        return float(long_prompt_covariance(task, product) - long_prompt_covariance(task, -product)) / (2 * product)

    small, large = 0.004, 0.008
    assert (noise(large) - noise(small)) / (large**2 - small**2) == pytest.approx(
        exact_risks.solve_limit_curve(task).quartic, rel=2e-3
    )


def test_the_even_part_is_half_the_sum_of_the_outputs_at_both_queries():
    prompts = LinearRegression(np.eye(3)).draw(7, 2, key=jax.random.key(0))

    def output(tokens, at):
        return 1.3 * jax.nn.softmax(0.4 * tokens[:, :3] @ at[:3]) @ tokens[:, 3]

    places = zip(prompts.tokens, prompts.queries, strict=True)
    expected = [float(output(tokens, at) + output(tokens, -at)) / 2 for tokens, at in places]
    np.testing.assert_allclose(prices._even_parts(prompts, [0.4], np.array([1.3]))[:, 0], expected, rtol=1e-12)


def test_the_task_has_labels_of_variance_one_without_noise(task):
    drawn = task.draw(3, 40_000, key=jax.random.key(2))
    labels = np.asarray(drawn.tokens[..., -1])
    assert labels.var() == pytest.approx(1 + NOISE, rel=0.03)


@pytest.fixture
def few_keys(monkeypatch):
    """Two keys of nine."""
    monkeypatch.setattr(prices, "KEYS", (prices.KEYS[0], prices.KEYS[-1]))


def test_the_price_of_one_head_is_that_of_two_simulated_risks(task, few_keys):
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


def test_prompts_of_one_length_do_not_depend_on_the_other_lengths(task, few_keys):
    both = prices.simulate_prices(task, [3, LENGTH], 1000, seed=3)
    [alone] = prices.simulate_prices(task, [LENGTH], 1000, seed=3)
    np.testing.assert_array_equal(both[1].squares, alone.squares)


# --- printed losses


@pytest.mark.parametrize("debiased", [True, False])
def test_the_error_of_a_descent_step_is_that_of_simulated_prompts(task, debiased):
    step, count = 1.5, 300_000
    drawn = task.draw(LENGTH, count, key=jr.key(4))
    x, y = drawn.tokens[..., :-1], drawn.tokens[..., -1]
    if debiased:
        x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    outputs = step / LENGTH * jnp.einsum("bl,bli,bi->b", y, x, drawn.queries[:, :-1])
    squares = np.asarray((outputs - drawn.targets) ** 2)
    error = squares.std() / count**0.5
    exact, other = (descent_error(task, step, LENGTH, debiased=each) for each in (debiased, not debiased))
    assert abs(squares.mean() - exact) < 4 * error
    assert abs(exact - other) > 20 * error  # so that the comparison could fail


def test_the_best_step_of_debiased_descent_has_the_error_of_the_library(task):
    step, risk = task.debiased_descent(jnp.log(float(LENGTH)))
    assert descent_error(task, float(step), LENGTH, debiased=True) == pytest.approx(2 * float(risk), rel=1e-12)


def test_the_approximate_loss_is_exact_without_softmax():
    """For long prompts it is the error of a linear head, `τ_w² d (1 - ω μ)² + s²`."""
    task = exact_risks.regression(PUBLISHED_DIMENSION, PUBLISHED_NOISE)
    found = approximate_error(task, np.array([0.4]), np.array([2.0]), 1e12)
    assert found == pytest.approx((1 - 0.8) ** 2 + PUBLISHED_NOISE)


def test_the_published_head_has_the_value_that_minimises_the_approximate_loss_at_the_trained_length():
    task = exact_risks.regression(PUBLISHED_DIMENSION, PUBLISHED_NOISE)
    omega, mu = published_head(task)
    at, near, far = (approximate_error(task, omega, mu * factor, 40) for factor in (1.0, 0.99, 1.01))
    assert at < min(near, far)
    assert abs(near - far) < 0.01 * (near - at)


def test_the_tracked_table_holds_the_printed_losses():
    table = pd.read_csv(DATA / "published_losses.csv")
    pd.testing.assert_frame_equal(table, published.published_losses().table.frame)
    lengths = table.groupby(["predictor", "heads"])["length"].apply(tuple)
    assert set(lengths) == {published.LENGTHS}


def printed_losses(*, trend=0.0, noise=PUBLISHED_NOISE, deviation=0.0):
    """Return losses like the printed ones that deviate from the exact ones in a given way."""
    table, rng = pd.read_csv(DATA / "published_losses.csv"), np.random.default_rng(0)
    table["exact"] = table["loss"].where(table["predictor"] != "trained", table["loss"] - PUBLISHED_NOISE)
    table["approximate"] = 0.9 * table["exact"]
    several = (table["predictor"] == "trained") & (table["heads"] > 1)
    shift = deviation + trend * np.log(table["length"] / 40) + rng.normal(0, 0.001, len(table))
    table["loss"] = np.where(several, table["exact"] + noise, table["exact"] * (1 + shift))
    return PublishedLosses(table, pd.DataFrame(columns=["predictor", "length", "exact"]), PUBLISHED_NOISE)


def verdicts(losses):
    return {
        claim.id.removeprefix("opposite-heads-published-"): claim.holds
        for claim in losses_figure.numbers(losses).claims
    }


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({}, set()),
        ({"noise": 0.0}, {"noise"}),
        ({"trend": 0.01}, {"trend"}),
        ({"deviation": 0.02}, {"levels", "pair", "head"}),
    ],
)
def test_claims_on_printed_losses_fail_for_other_losses(change, failing):
    found = verdicts(printed_losses(**change))
    assert {name for name, holds in found.items() if not holds} == failing


# --- trainings


def softmax_loss(weights, task, key, batch, length):
    """Return the loss of the same batch from whole tokens, by automatic differentiation."""
    tokens, query, label = training.draw_batch(task, key, batch=batch, length=length, dtype=jnp.float64)
    tokens = tokens.transpose(1, 3, 2, 0).reshape(batch, length, training.WIDTH)
    query = jnp.concatenate([query, jnp.zeros((1, batch))]).T
    scores = jnp.einsum("hij,hik->hjk", weights.key, weights.query) / 6**0.5
    values = jnp.einsum("hi,hij->hj", weights.output, weights.value)
    attention = jax.nn.softmax(jnp.einsum("bli,hij,bj->hbl", tokens, scores, query), axis=-1)
    return jnp.mean((jnp.einsum("hbl,bli,hi->b", attention, tokens, values) - label) ** 2)


@pytest.fixture
def published_task():
    return exact_risks.regression(PUBLISHED_DIMENSION, PUBLISHED_NOISE)


def test_the_gradient_by_hand_is_that_of_automatic_differentiation(published_task):
    weights, batch, length = training.PairWeights.draw(key=jr.key(3), dtype=jnp.float64), 6, 9
    loss = training.batch_loss(published_task, batch=batch, length=length)
    found = jax.value_and_grad(loss)(weights, jr.key(1))
    expected = jax.value_and_grad(softmax_loss)(weights, published_task, jr.key(1), batch, length)
    for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)


def test_batches_are_in_context_regression(published_task):
    """The error of an opposite pair on drawn batches is the exact one."""
    key, value = PAIR
    weights = training.PairWeights.opposite(key, value, key=jr.key(0), dtype=jnp.float64)
    loss = jax.jit(training.batch_loss(published_task, batch=2000))
    found = np.array([float(loss(weights, jr.key(seed))) for seed in range(20)])
    exact = 2 * heads_risk(published_task, np.array([key, -key]), np.array([value, -value]), jnp.log(40.0))
    assert abs(found.mean() - float(exact)) < 4 * found.std(ddof=1) / 20**0.5
    assert found.std(ddof=1) / 20**0.5 < 0.01 * float(exact)


def test_an_opposite_start_is_the_pair_that_is_read_off():
    weights = training.PairWeights.opposite(0.13, 3.4, key=jr.key(2), dtype=jnp.float64)
    key, value, unlike = (float(each) for each in training.pair_of(weights))
    assert (key, value) == pytest.approx((0.13, 3.4))
    assert unlike < 1e-12
    scores, values = weights.circuits
    np.testing.assert_allclose(scores[0], -scores[1], atol=1e-12)
    np.testing.assert_allclose(values[0], -values[1], atol=1e-12)


def test_the_default_start_is_that_of_linear_layers():
    weights = training.PairWeights.draw(key=jr.key(0))
    for leaf, fan_in in ((weights.query, 6), (weights.key, 6), (weights.value, 6), (weights.output, 12)):
        assert 0.7 * fan_in**-0.5 < float(jnp.abs(leaf).max()) <= fan_in**-0.5


def trained(published=0.13, half=0.115, decaying=0.11, optimum=0.128):
    """Return trainings whose keys are constant during their last part."""
    levels = {
        ("own", "published"): published,
        ("optimum", "published"): optimum,
        ("rest", "half"): half,
        ("rest", "decaying"): decaying,
        ("optimum", "half"): half,
    }
    rows = [
        {
            "start": start,
            "step_size": step,
            "seed": seed,
            "step": number,
            "key": level if number > 1 else 0.4,
            "value": 3.0,
        }
        for (start, step), level in levels.items()
        for seed in (0, 1)
        for number in range(1, 11)
    ]
    frame = pd.DataFrame(rows)
    ends = frame[frame["step"] > 8].groupby(RUN)[["key", "value"]].mean()
    return trained_pairs.TrainedPairs(frame, ends, 0.0712)


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({}, set()),
        ({"published": 0.16, "half": 0.14, "decaying": 0.14}, {"rest-high"}),
        ({"optimum": 0.075}, {"rest-low", "leaves-optimum"}),
        ({"half": 0.13}, {"half-step"}),
        ({"decaying": 0.129}, {"decaying-step"}),
    ],
)
def test_claims_on_trained_keys_fail_for_other_trainings(change, failing):
    claims = key_in_training.numbers(trained(**change)).claims
    assert {claim.id.removeprefix("opposite-heads-") for claim in claims if not claim.holds} == failing
    assert all(claim.catches_alternative for claim in claims)


def test_the_runs_are_those_of_the_table():
    rows = pd.read_csv(trained_pairs.DATA / "trainings.csv")
    made = {(start, step, seed): group["step"].max() for (start, step, seed), group in rows.groupby(RUN)}
    assert made == {(run.start, run.step, run.seed): run.steps for run in training.RUNS}


def test_a_decreasing_step_ends_at_zero_and_half_of_the_step_is_half():
    sizes = {run.step: run for run in training.RUNS}
    gradient, size = {"w": jnp.ones(())}, {}
    for step, run in sizes.items():
        state = run.optimiser.init(gradient)
        size[step] = -float(run.optimiser.update(gradient, state)[0]["w"])
    assert size["half"] == pytest.approx(size["published"] / 2)
    assert size["decaying"] == pytest.approx(size["published"])
    late = dataclasses.replace(sizes["decaying"], steps=3).optimiser
    state = late.init(gradient)
    for _ in range(4):
        update, state = late.update(gradient, state)
    assert float(update["w"]) == pytest.approx(0.0, abs=1e-12)
