"""The chapter on the worth of several heads: closed forms, exact errors and the training against other computations."""

import math

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from chapters.opposite_heads.prices import long_prompt_coefficient
from chapters.worth_of_heads import allocation, disjoint_tasks, long_prompts, separation
from chapters.worth_of_heads.long_prompts import long_prompt_covariance
from lib.icl import LinearRegression
from lib.icl.heads import best_values
from lib.random import normal
from lib.statistics import standard_error

DIMENSION, NOISE = 3, 0.7


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@pytest.fixture
def task():
    return LinearRegression(jnp.eye(DIMENSION), noise_std=NOISE**0.5)


# --- one task, long prompts


def test_the_series_is_that_of_the_covariance(task):
    series = long_prompts.covariance_series(DIMENSION, NOISE)
    for product in (-0.2, 0.07, 0.2):
        expected = float(long_prompt_covariance(task, product))
        assert np.polynomial.polynomial.polyval(product, series) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("keys", [(0.3,), (0.3, -0.2), (0.35, 0.1, -0.3)])
def test_the_best_values_solve_the_normal_equations(task, keys):
    """Lagrange's condition for the least error without bias, in the closed form of the covariance."""
    keys = np.array(keys)
    values, excess = long_prompts.best_excess(keys, long_prompts.covariance_series(DIMENSION, NOISE))
    inverse = np.linalg.solve(np.asarray(long_prompt_covariance(task, np.outer(keys, keys))), keys)
    np.testing.assert_allclose(values, inverse / (keys @ inverse), rtol=1e-7)
    linear = DIMENSION * (DIMENSION + 1 + NOISE)
    assert excess == pytest.approx(2 * float(long_prompt_coefficient(task, keys, values)) / linear - 1, abs=1e-10)


def test_the_keys_of_each_number_satisfy_the_condition_of_the_proposition():
    for heads, relative in long_prompts.RELATIVE_KEYS.items():
        assert len(set(relative)) == heads
        products = [math.prod(relative[:place] + relative[place + 1 :]) for place in range(heads)]
        assert sum(products) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("heads", [2, 3, 4])
def test_best_values_of_these_keys_cancel_the_low_orders(heads):
    """For small keys the excess is that of interpolation, in which all orders up to H but the first vanish."""
    series, scale = long_prompts.covariance_series(DIMENSION, NOISE), 0.02
    relative = np.array(long_prompts.RELATIVE_KEYS[heads])
    powers = np.vander(relative, heads, increasing=True).T
    weights = np.linalg.solve(powers, np.eye(heads)[1])
    remainder = weights @ relative ** (heads + 1)
    expected = series[heads + 1] / series[1] * scale ** (2 * heads) * remainder**2
    assert long_prompts.best_excess(scale * relative, series)[1] == pytest.approx(expected, rel=0.01)


def test_a_single_head_stops_at_its_price(task):
    single = long_prompts.solve_single_head(DIMENSION, NOISE)
    keys = np.linspace(0.1, 0.7, 4001)
    linear = DIMENSION * (DIMENSION + 1 + NOISE)
    coefficient = jax.vmap(lambda key: long_prompt_coefficient(task, key[None], 1 / key[None]))
    errors = 2 * np.asarray(coefficient(jnp.asarray(keys))) / linear - 1
    assert single.excess[-1] == pytest.approx(errors.min(), rel=1e-5)
    bounded = errors[1 / keys <= single.largest_values[0]].min()
    assert single.excess[0] == pytest.approx(bounded, rel=0.02)


def hermite_orders(gamma, keys, values, orders):
    """Return the orders of step 3 of the theorem, from products of inner products of the heads."""
    inner = keys @ gamma @ keys.T, values @ gamma @ values.T, values @ gamma @ keys.T
    terms = []
    for order in range(1, orders + 1):
        mixed = inner[0] ** (order - 1) * inner[1]
        if order > 1:
            mixed = mixed + (order - 1) * inner[0] ** (order - 2) * inner[2] * inner[2].T
        terms.append(mixed.sum() / math.factorial(order - 1))
    return np.array(terms)


def test_orders_of_the_noise_sum_to_its_variance_and_the_second_is_linear_attention():
    """Steps 2 to 4 for three random heads with scores on labels, and the influence function on sampled tokens."""
    rng = np.random.default_rng(5)
    root = rng.normal(size=(4, 4)) / 3
    gamma = root @ root.T
    keys, values = 0.6 * rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    orders = hermite_orders(gamma, keys, values, 40)
    tilted = np.exp(keys @ gamma @ keys.T)
    shifts = values @ gamma @ keys.T
    law = np.sum(tilted * (values @ gamma @ values.T + shifts * shifts.T))
    assert orders.sum() == pytest.approx(law, rel=1e-10)
    symmetric = values.T @ keys
    symmetric = (symmetric + symmetric.T) / 2
    second = 2 * np.trace(symmetric @ gamma @ symmetric @ gamma)
    assert orders[1] == pytest.approx(second, rel=1e-12)
    tokens = rng.normal(size=(400_000, 4)) @ root.T
    scores = np.exp(tokens @ keys.T - np.diag(keys @ gamma @ keys.T) / 2)
    influence = np.einsum("th,thc,hc->t", scores, tokens[:, None] - keys @ gamma, values)
    squares = influence**2
    assert abs(squares.mean() - law) < 5 * standard_error(squares)


def test_the_second_order_of_exact_heads_is_at_least_that_of_linear_attention():
    """Step 5: an added covariate block of trace zero adds to the mean over ±w; without it the mean is the bound."""
    rng = np.random.default_rng(6)
    root, query = rng.normal(size=(3, 3)), rng.normal(size=3)
    sigma = root @ root.T
    column = np.linalg.solve(sigma, query) / 2
    block = rng.normal(size=(3, 3))
    block = block + block.T
    block -= np.trace(block @ sigma) / np.trace(sigma) * np.eye(3)
    weights = rng.normal(size=3)

    def second(block, weights):
        symmetric = np.block([[block, column[:, None]], [column[None], np.zeros((1, 1))]])
        labels = np.concatenate([np.eye(3), weights[None]])
        gamma = labels @ sigma @ labels.T + NOISE * np.diag([0, 0, 0, 1])
        assert np.trace(symmetric @ gamma) == pytest.approx(weights @ query, abs=1e-9)
        return 2 * np.trace(symmetric @ gamma @ symmetric @ gamma)

    bound = (weights @ sigma @ weights + NOISE) * query @ np.linalg.solve(sigma, query) + (weights @ query) ** 2
    assert second(np.zeros((3, 3)), weights) == pytest.approx(bound, rel=1e-10)
    assert (second(block, weights) + second(block, -weights)) / 2 > 1.01 * bound
    assert second(block, weights) != pytest.approx(second(block, -weights), rel=1e-3)


# --- several tasks


def test_the_best_error_of_one_task_is_that_of_one_regression():
    keys = np.array([0.3, -0.2])
    series = long_prompts.covariance_series(DIMENSION, 0.0)
    excess = long_prompts.best_excess(keys, series)[1]
    error = disjoint_tasks.best_error(DIMENSION, jnp.asarray(keys[:, None]), np.ones(2))
    assert float(error) == pytest.approx((1 + excess) * DIMENSION * (DIMENSION + 1), rel=1e-9)


def test_unused_heads_do_not_change_the_best_error():
    keys = jnp.asarray([[0.3, -0.1], [-0.2, 0.2], [0.4, 0.1]])
    two = disjoint_tasks.best_error(2, keys[:2], np.ones(2))
    assert float(disjoint_tasks.best_error(2, keys, np.array([1.0, 1.0, 0.0]))) == pytest.approx(float(two), rel=1e-12)
    assert float(disjoint_tasks.best_error(2, keys, np.ones(3))) < 0.99 * float(two)


def test_the_best_error_of_two_tasks_is_the_noise_of_simulated_prompts():
    """L times the variance of the output at long prompts, by the influence function of every head and task."""
    rng = np.random.default_rng(7)
    size, tasks, sets = 2, 2, 4000
    keys = np.array([[0.25, -0.1], [-0.2, 0.15]])
    spread = np.repeat(keys, size, axis=1)
    error, squares = float(disjoint_tasks.best_error(size, jnp.asarray(keys), np.ones(2))), np.zeros(sets)
    for place in range(tasks):
        own = np.zeros(tasks * size)
        own[place * size : (place + 1) * size] = 1
        grid = np.linspace(-30, 30, 601)
        # values without bias are one line; the variance is quadratic along it, so three points give its minimum
        start = keys[:, place] / (keys[:, place] @ keys[:, place])
        along = np.array([-keys[1, place], keys[0, place]])
        candidates = start + grid[:, None] * along
        query, weights = rng.normal(size=(sets, tasks * size)), rng.normal(size=(sets, tasks * size)) * own
        tilts = spread[None] * query[:, None]
        # exact second moments given query and weights
        tilted = np.exp(np.einsum("shc,skc->shk", tilts, tilts))
        shifts = np.einsum("sc,shc->sh", weights, tilts)
        moments = tilted * (np.sum(weights**2, axis=1)[:, None, None] + shifts[:, :, None] * shifts[:, None])
        best = candidates[np.argmin(np.einsum("gh,hk,gk->g", candidates, moments.mean(axis=0), candidates))]
        squares += np.einsum("h,shk,k->s", best, moments, best)
    assert abs(squares.mean() - error) < 4 * standard_error(squares)
    assert standard_error(squares) < 0.05 * error


@pytest.mark.parametrize("heads", [2, 3, 4])
def test_heads_of_the_proof_reach_the_staircase(heads):
    """Keys of rank H - 1 from a projector with equal diagonal, and a head with key zero, in the limit of small keys."""
    tasks, size = 3, 2
    if heads == 4:
        frame = np.eye(3)
    else:
        angles = 2 * np.pi * np.arange(3) / 3
        frame = np.stack([np.cos(angles), np.sin(angles)]) if heads == 3 else np.ones((1, 3))
    keys = np.concatenate([1e-3 * frame, np.zeros((1, tasks))])
    error = float(disjoint_tasks.best_error(size, jnp.asarray(keys), np.ones(heads)))
    assert error == pytest.approx(disjoint_tasks.softmax_heads(tasks, size, heads), rel=1e-4)


def test_one_head_has_the_price_of_all_covariates():
    keys = np.linspace(0.1, 0.6, 101)
    errors = jax.jit(jax.vmap(lambda key: disjoint_tasks.best_error(2, jnp.full((1, 2), key), np.ones(1))))(keys)
    assert np.min(errors) == pytest.approx(disjoint_tasks.softmax_heads(2, 2, 1), rel=1e-3)


def test_searches_do_not_fall_below_the_proved_bound():
    found = disjoint_tasks.solve_staircase(2, 2, 3, key=jr.key(1))
    assert (found.found >= found.bound * (1 - 1e-6)).all()
    assert found.found[-1] == pytest.approx(found.bound[-1], rel=1e-3)


# --- exact separation


@pytest.mark.parametrize(("dimension", "key", "length"), [(2, 0.5, 30), (5, 0.3, 40), (12, 0.2, 300)])
def test_the_error_of_a_head_is_that_of_the_library(dimension, key, length):
    task = LinearRegression(jnp.eye(dimension))
    [value], risk = best_values(task, np.array([key]), math.log(length))
    measured = separation.head_error(dimension, key, length)
    np.testing.assert_allclose(measured, (float(value), 2 * float(risk)), rtol=1e-7)


def test_the_best_head_is_the_least_on_a_grid():
    best = separation.best_head(3, 60)
    errors = [separation.head_error(3, key, 60)[1] for key in np.linspace(0.6, 1.6, 11) * best.key]
    assert min(errors) >= best.error
    assert min(errors) == pytest.approx(best.error, rel=1e-3)


def test_errors_of_the_published_size():
    """Values that another quadrature gave, to the digits that were recorded."""
    shared, single = separation.solve_heads(50, [2, 5, 10], 100)
    assert (shared.key, shared.value) == pytest.approx((0.1496, 2.898), abs=6e-4)
    found = separation.solve_separations(50, [2, 5, 10], (shared, single))
    np.testing.assert_allclose([found.shared, *found.allocated], [28.9657, 20.7469, 11.772, 7.394], rtol=0, atol=5.1e-4)
    assert np.all(found.least_cost < found.largest_cost)


def test_simulated_prompts_are_those_of_a_plain_loop():
    """Both arrangements on one batch, written once more with matrices of tokens."""
    covariates, counts, length = 4, [2], 5
    heads = separation.Head(0.4, 1.7, 0.0), [separation.Head(0.6, 1.2, 0.0)]
    simulated = separation.simulate_separations(covariates, counts, length, heads, 3, key=jr.key(8))
    draws = normal(jr.split(jr.key(8), 1)[0], (length + 2, covariates, separation.BATCH))
    for prompt in range(3):
        tokens, query, weights = draws[:length, :, prompt], draws[length, :, prompt], draws[length + 1, :, prompt]
        parts = [slice(0, 2), slice(2, 4)]
        labels = [tokens[:, part] @ weights[part] for part in parts]
        targets = [query[part] @ weights[part] for part in parts]

        def square(key, value, scores, label, target):
            attention = np.exp(key * scores) / np.exp(key * scores).sum()
            return (value * attention @ label - target) ** 2

        shared = sum(square(0.4, 1.7, tokens @ query, *pair) for pair in zip(labels, targets, strict=True))
        own = [tokens[:, part] @ query[part] for part in parts]
        single = sum(square(0.6, 1.2, *triple) for triple in zip(own, labels, targets, strict=True))
        assert simulated.shared[prompt] == pytest.approx(shared, rel=1e-10)
        assert simulated.allocated[prompt, 0] == pytest.approx(single, rel=1e-10)


# --- training


def test_the_error_of_long_prompts_is_that_of_one_regression_also_with_bias():
    task = LinearRegression(jnp.eye(DIMENSION))
    omega, mu = np.array([0.3, -0.2]), np.array([1.5, -0.8])
    infinite = DIMENSION * (1 - mu @ omega) ** 2
    expected = infinite + 2 * float(long_prompt_coefficient(task, omega, mu)) / 50
    measured = allocation.long_prompt_error(DIMENSION, jnp.asarray(omega)[:, None], jnp.asarray(mu)[:, None], 50)
    assert float(measured) == pytest.approx(expected, rel=1e-12)


def test_the_error_of_long_prompts_is_that_of_simulated_prompts():
    """Two tasks and two heads with bias, at a length where the next order is below the noise of the simulation."""
    length, size, sets, tasks = 2000, 2, 1500, 2
    rng = np.random.default_rng(9)
    omega, mu = np.array([[0.3, 0.1], [-0.1, 0.25]]), np.array([[2.0, -0.3], [-0.5, 3.0]])
    squares = np.zeros(sets)
    for place in range(sets):
        tokens, query, weights = rng.normal(size=(length, 4)), rng.normal(size=4), rng.normal(size=4)
        scores = (tokens * query).reshape(length, tasks, size).sum(axis=2) @ omega.T
        attention = np.exp(scores) / np.exp(scores).sum(axis=0)
        labels = (tokens * weights).reshape(length, tasks, size).sum(axis=2)
        outputs = np.sum(mu * (attention.T @ labels), axis=0)
        squares[place] = np.sum((outputs - (query * weights).reshape(tasks, size).sum(axis=1)) ** 2)
    expected = float(allocation.long_prompt_error(size, jnp.asarray(omega), jnp.asarray(mu), length))
    assert abs(squares.mean() - expected) < 4 * standard_error(squares)
    infinite = float(allocation.long_prompt_error(size, jnp.asarray(omega), jnp.asarray(mu), np.inf))
    assert expected - infinite > 0.02 * expected


def test_the_loss_of_a_batch_is_that_of_softmax_heads_on_each_prompt():
    matrices = jax.tree.map(
        lambda leaf, key: leaf + 0.2 * normal(key, leaf.shape),
        allocation.matrices_at_start(),
        allocation.Matrices(*jr.split(jr.key(2), 4)),
    )
    width = allocation.TASKS * allocation.DIMENSION
    normals = normal(jr.key(3), ((allocation.LENGTH + 2) * width, 2))
    total = 0.0
    for prompt in range(2):
        drawn = np.asarray(normals[:, prompt]).reshape(allocation.LENGTH + 2, width)
        tokens, query, weights = drawn[:-2], drawn[-2], drawn[-1]
        labels = (tokens * weights).reshape(-1, allocation.TASKS, allocation.DIMENSION).sum(axis=2)
        rows = np.concatenate([tokens, labels], axis=1)
        asked = np.concatenate([query, np.zeros(allocation.TASKS)])
        outputs = np.zeros(allocation.TASKS)
        for k, q, v, o in zip(*map(np.asarray, matrices), strict=True):
            scores = (rows @ k.T) @ (q @ asked) / allocation.ROWS**0.5
            outputs += o @ (v @ (rows.T @ np.asarray(jax.nn.softmax(scores))))
        targets = (query * weights).reshape(allocation.TASKS, allocation.DIMENSION).sum(axis=1)
        total += np.mean((outputs - targets) ** 2) / 2
    assert float(allocation.batch_loss(matrices, normals)) == pytest.approx(total, rel=1e-5)


def test_the_flow_is_the_descent_of_the_diagonal_matrices():
    """Small steps on all entries of the matrices, in the error that depends on their averages over blocks."""
    tasks, size, steps, step = allocation.TASKS, allocation.DIMENSION, 4000, 0.02
    width = tasks * size
    start = allocation.matrices_at_start()
    matrices = jax.tree.map(lambda leaf: leaf.astype(float), start)

    def error(matrices):
        bilinear = jnp.einsum("hrc,hrd->hcd", matrices.k, matrices.q) / allocation.ROWS**0.5
        diagonal = jnp.diagonal(bilinear, axis1=1, axis2=2)[:, :width]
        omega = diagonal.reshape(tasks, tasks, size).mean(axis=2)
        mu = jnp.einsum("hir,hri->hi", matrices.o, matrices.v[:, :, width:])
        return allocation.long_prompt_error(size, omega, mu, allocation.LENGTH) / tasks

    @jax.jit
    def descend(matrices):
        def one(_, matrices):
            return jax.tree.map(lambda leaf, slope: leaf - step * slope, matrices, jax.grad(error)(matrices))

        return jax.lax.fori_loop(0, steps, one, matrices)

    flow, _ = allocation.solve_flows(math.ceil(2 * steps * step / allocation.STEP_SIZE))
    expected = np.interp(steps * step, flow.times, flow.error)
    assert flow.error[0] == pytest.approx(float(error(matrices)), rel=1e-6)
    assert float(error(descend(matrices))) == pytest.approx(expected, rel=0.02)
    assert expected < 0.99 * flow.error[0]


def test_a_balanced_start_keeps_the_level_of_one_head_for_each_task():
    """The resting level of the flow is that of the best single head of long prompts on one task, to order 1/L."""
    balanced, unbalanced = allocation.solve_flows(3000)
    grid = np.linspace(0.2, 0.6, 401)
    values = np.linspace(1.0, 4.0, 301)
    error = jax.vmap(
        jax.vmap(
            lambda key, value: allocation.long_prompt_error(
                allocation.DIMENSION, key[None, None], value[None, None], allocation.LENGTH
            ),
            (None, 0),
        ),
        (0, None),
    )
    assert balanced.error[-1] == pytest.approx(float(error(jnp.asarray(grid), jnp.asarray(values)).min()), rel=1e-3)
    assert unbalanced.error[-1] < 0.6 * balanced.error[-1]


def test_times_and_ends_of_a_training_are_those_of_its_losses():
    losses = np.where(np.arange(1000) < 600, 2.0, 0.5)
    training = allocation.Training(losses)
    assert training.time_below(1.25) == pytest.approx(600 * allocation.STEP_SIZE, abs=2 * allocation.STEP_SIZE)
    assert math.isnan(training.time_below(0.1))
    assert training.last() == (0.5, 0.0)
    assert training.windows().shape == (allocation.WINDOWS, 10)
    assert training.window_times()[0] == pytest.approx(5 * allocation.STEP_SIZE)


@pytest.mark.daily
@pytest.mark.parametrize(("dimension", "withheld"), [(3, {"worth-of-heads-bound"}), (5, set())])
def test_the_bound_is_claimed_where_independent_noises_would_pass_it(run_cells, dimension, withheld):
    run = run_cells("worth_of_heads", only="excess_over_linear_attention", dimension=dimension)
    assert run.broken == []
    assert set(run.withheld) == withheld
