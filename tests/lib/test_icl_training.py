"""Training on fresh prompts: two samplers of one law, unbiased for the exact theory."""

import math
from functools import cache, partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pytest
import scipy.stats

from lib import Attention
from lib.flow import gradient_flow, sgd
from lib.icl import (
    Blocks,
    LinearRegression,
    QueryAverage,
    ScoreTable,
    block_risk,
    prompt_loss,
)
from lib.icl.training import _collapsed_output, _softmax_pool, _with_gradient
from lib.random import fast_normal, normal
from lib.statistics import standard_error

pytestmark = pytest.mark.usefixtures("float64", "unchecked")

DRAWS = 10_000


def a_task():
    rng = np.random.default_rng(7)
    square, narrow = rng.normal(size=(2, 2)), rng.normal(size=(2, 1))
    return LinearRegression(0.5 * square @ square.T, narrow @ narrow.T, task_scale=0.9, noise_std=0.3)


def a_head(scale=0.4):
    rng = np.random.default_rng(8)
    return Attention(scale * rng.normal(size=(3, 3)), rng.normal(size=(1, 3)))


def linear_pool(scores, values):
    return scores @ values / scores.size


@cache
def gradient_of(every_token, pool, length):
    """Return a compiled function of a head and keys: one gradient per key, in the entries of U and V."""
    loss = prompt_loss(a_task(), length, batch=1, pool=pool, every_token=every_token)

    def one(params, key):
        slope = jax.grad(loss)(params, key)
        return jnp.concatenate([slope.bilinear[:, :2].ravel(), slope.value.ravel()])

    return jax.jit(lambda params, keys: jax.lax.map(partial(one, params), keys, batch_size=2000))


def gradients(every_token, pool, length, params, seed):
    """Return one gradient per row, each of a separate prompt, in the entries of U and V."""
    return gradient_of(every_token, pool, length)(params, jr.split(jr.key(seed), DRAWS))


@pytest.mark.parametrize("length", [1, 20])
@pytest.mark.parametrize("pool", [_softmax_pool, linear_pool])
def test_collapsed_and_plain_gradients_agree_in_law(pool, length, assert_monte_carlo):
    """Mean and covariance of the gradient of one prompt: all nine entries and all their products."""
    params = a_head()
    left = gradients(True, pool, length, params, seed=length)
    right = gradients(False, pool, length, params, seed=100 + length)
    centre = 0.5 * (left.mean(axis=0) + right.mean(axis=0))

    def powers(sample):
        centred = sample - centre
        i, j = np.triu_indices(centred.shape[1])
        return jnp.concatenate([centred, centred[:, i] * centred[:, j]], axis=1)

    difference = powers(left) - powers(right)
    assert_monte_carlo(difference, np.zeros(difference.shape[1]), laws=4)


def outputs(every_token, pool, length, seed):
    """The output of a prompt and its derivatives in both vectors a row, in R⁴, where two coordinates are only drawn."""
    tilt, value = jnp.array([0.5, -0.3, 0.4, 0.0]), jnp.array([0.8, 0.2, 0.3, -0.5])

    def plain(t, v, normals):
        return pool(normals.reshape(-1, 4) @ t, normals.reshape(-1, 4) @ v)

    function = plain if every_token else _with_gradient(partial(_collapsed_output, pool))
    count = 4 * length if every_token else 2 * (length + 4)

    def one(normals):
        output, slopes = jax.value_and_grad(function, (0, 1))(tilt, value, normals)
        return jnp.concatenate([output[None], *slopes])

    return jax.jit(partial(jax.lax.map, one, batch_size=2000))(normal(jr.key(seed), (DRAWS, count)))


@pytest.mark.parametrize("length", [2, 20])
@pytest.mark.parametrize("pool", [_softmax_pool, linear_pool])
def test_collapsed_and_plain_outputs_agree_in_law(pool, length, assert_monte_carlo):
    """With no label to miss, what is drawn in place of the tokens is most of the gradient: means, and all products."""
    left, right = (outputs(every_token, pool, length, length + i) for i, every_token in enumerate((True, False)))

    def powers(sample):
        i, j = np.triu_indices(sample.shape[1])
        return jnp.concatenate([sample, sample[:, i] * sample[:, j]], axis=1)

    difference = powers(left) - powers(right)
    assert_monte_carlo(difference, np.zeros(difference.shape[1]), laws=4)


@pytest.mark.parametrize(("every_token", "weight"), [(True, 0.5), (False, 1.0)])
def test_loss_and_gradient_are_unbiased(every_token, weight, assert_monte_carlo):
    """For the exact finite-prompt risk and its gradient, which know nothing of sampling."""
    task, params, length = a_task(), a_head(), 8
    loss = prompt_loss(task, length, batch=250, every_token=every_token, weight=weight)
    values, slopes = jax.jit(jax.vmap(lambda key: jax.value_and_grad(loss)(params, key)))(jr.split(jr.key(1), 160))
    risk, slope = jax.jit(jax.value_and_grad(lambda params: task.finite_risk(params, math.log(length))))(params)
    assert_monte_carlo(values, 2 * weight * risk, laws=6)
    assert_monte_carlo(slopes.bilinear, 2 * weight * slope.bilinear, laws=6)
    assert_monte_carlo(slopes.value, 2 * weight * slope.value, laws=6)


SINGULAR = {
    "no scores": (np.zeros((3, 3)), [0.3, -1.0, 0.7]),
    "no values": (np.ones((3, 3)), [0.0, 0.0, 0.0]),
    "scores along values": (np.outer([0.0, 0.0, 1.0], [1.0, 0.5, 0.0]), [0.0, 0.0, 1.0]),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_collapsed_gradients_at_singular_heads(name, assert_monte_carlo):
    """Where the two vectors that span what is seen of a token do not span a plane."""
    bilinear, value = SINGULAR[name]
    params = Attention(0.5 * bilinear, np.array([value]))
    difference = gradients(True, _softmax_pool, 20, params, 3) - gradients(False, _softmax_pool, 20, params, 4)
    assert np.isfinite(difference).all()
    assert_monte_carlo(difference, np.zeros(9), laws=3)


TRAINED = (64, 256)
RATE, STEPS, SEEDS = 4e-3, 1500, 32


@pytest.fixture(scope="module")
def exact_flows(float64):
    """The flow of the exact risk at both lengths, from one start."""
    tables = jax.tree.map(lambda *tables: jnp.stack(tables), *ScoreTable.at_each(map(math.log, TRAINED)))
    times = RATE * STEPS / 10 * np.arange(1.0, 11.0)

    def flow(table):
        task, queries = LinearRegression(np.eye(2)), QueryAverage.radial(2)
        risk = partial(block_risk, task, scores=table, queries=queries)
        return gradient_flow(risk, Blocks.balanced(np.eye(2), 0.3), times).params

    return dict(zip(TRAINED, summary(jax.jit(jax.vmap(flow))(tables)), strict=True))


def summary(blocks):
    """Numbers that tell a head of isotropic data."""
    trace = jnp.trace(blocks.matrix, axis1=-2, axis2=-1)
    return jnp.stack([blocks.gain, trace, blocks.matrix[..., 0, 1]], axis=-1)


@pytest.mark.parametrize("length", TRAINED)
def test_sgd_follows_the_exact_flow(length, exact_flows):
    """Mean parameters over seeds, at every recorded time, within their standard error of the flow of the exact risk.

    Not mean risks: near a minimum the risk is convex in the noise, and its mean lies above by as much as it scatters.
    """
    loss = prompt_loss(LinearRegression(np.eye(2)), length, batch=8, head=Blocks.head)
    start = Blocks.balanced(np.eye(2), 0.3)

    def run(key):
        return sgd(loss, start, optimiser=optax.sgd(RATE), steps=STEPS, every=STEPS // 10, key=key).params

    found = np.asarray(summary(jax.jit(jax.vmap(run))(jr.split(jr.key(length), SEEDS))))
    # Student's quantile in place of the normal one, because standard errors of few seeds vary
    bound = scipy.stats.t.isf(0.001 / (len(TRAINED) * found[0].size) / 2, df=SEEDS - 1)
    for other, flow in exact_flows.items():
        deviation = np.max(np.abs(found.mean(axis=0) - flow) / standard_error(found))
        assert (deviation < bound) == (other == length)


def test_head_turns_parameters_into_a_head():
    """Gradients reach what `head` is made of, and blocks stay blocks."""
    loss = prompt_loss(a_task(), 5, batch=3, head=Blocks.head)
    slope = jax.jit(jax.grad(loss))(Blocks(np.eye(2), 1.0), jr.key(0))
    assert isinstance(slope, Blocks)
    assert all(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(slope))


def test_an_empty_prompt_or_batch_is_refused():
    with pytest.raises(ValueError, match="empty prompt"):
        prompt_loss(a_task(), 0, batch=4)
    with pytest.raises(ValueError, match="mean needs"):
        prompt_loss(a_task(), 5, batch=0)


def test_single_precision_trains_in_single_precision():
    """Even where float64 is on: the parameters say."""
    params = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), a_head())
    loss = jax.jit(prompt_loss(a_task(), 10, batch=4))
    assert loss(params, jr.key(1)).dtype == jnp.float32
    assert loss(a_head(), jr.key(1)).dtype == jnp.float64


# --- normals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_fast_normals_are_normal(dtype, assert_monte_carlo):
    """Moments to the eighth, the distribution function, and the tail."""
    normals = np.asarray(fast_normal(jr.key(1), (400_001,), dtype), np.float64)
    assert fast_normal(jr.key(1), (2,), dtype).dtype == dtype
    powers = np.arange(1, 9)
    moments = np.array([0.0, 1, 0, 3, 0, 15, 0, 105])
    assert_monte_carlo(normals[:, None] ** powers, moments, laws=2)
    assert scipy.stats.kstest(normals, "norm").pvalue > 1e-3
    for level in (3.0, 4.0):
        assert_monte_carlo(np.abs(normals) > level, 2 * scipy.stats.norm.sf(level), laws=4)


def test_fast_normals_of_a_pair_are_independent(assert_monte_carlo):
    """The two that share a radius: mixed moments, and an angle that is uniform and independent of the radius."""
    x, y = np.asarray(fast_normal(jr.key(2), (2, 200_000)))
    mixed = np.stack([x * y, x**2 * y**2, x**3 * y, x * y**3, np.abs(x * y)], axis=1)
    assert_monte_carlo(mixed, np.array([0.0, 1, 0, 0, 2 / np.pi]))
    angle, radius = np.arctan2(y, x), x**2 + y**2
    assert scipy.stats.kstest(angle, scipy.stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-3
    assert_monte_carlo(np.stack([np.cos(k * angle) * radius for k in (1, 2, 4)], axis=1), np.zeros(3))


def test_fast_normals_are_the_cosine_and_sine_of_one_angle(assert_exact):
    """Every pair lies on the circle of the radius its bits give, to rounding."""
    x, y = np.asarray(fast_normal(jr.key(4), (2, 5000)))
    bits = np.asarray(jr.bits(jr.key(4), (2, 5000), jnp.uint32))[0] >> 1
    assert_exact(x**2 + y**2, -2 * np.log((bits + 0.5) / 2**31))


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 0)])
def test_fast_normals_have_the_shape_asked_for(shape):
    assert fast_normal(jr.key(0), shape).shape == shape
