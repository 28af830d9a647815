"""Batches by their sums: the law of plain prompts, unbiased for the exact theory, and what they are drawn from."""

import math
from functools import cache, partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
import scipy.stats

from chapters.published_experiment.batches import LINEAR, Plane, _chi_square, batch_loss
from chapters.published_experiment.protocol import POOLS
from lib import Attention
from lib.icl import LinearRegression, prompt_loss

pytestmark = pytest.mark.usefixtures("float64")

DRAWS = 20_000
LENGTH = 8  # of the prompts of `test_batches_are_unbiased`
SINGULAR = {
    "no scores": (np.zeros((3, 3)), [0.3, -1.0, 0.7]),
    "no values": (np.ones((3, 3)), [0.0, 0.0, 0.0]),
    "scores along values": (np.outer([0.0, 0.0, 1.0], [1.0, 0.5, 0.0]), [0.0, 0.0, 1.0]),
}


def a_task():
    rng = np.random.default_rng(17)
    square, narrow = rng.normal(size=(2, 2)), rng.normal(size=(2, 1))
    return LinearRegression(0.5 * square @ square.T, narrow @ narrow.T, task_scale=0.8, noise_std=0.4)


def a_head(scale=0.4):
    rng = np.random.default_rng(18)
    return Attention(scale * rng.normal(size=(3, 3)), rng.normal(size=(1, 3)))


def drawn(loss):
    """Return a compiled function of a head and a seed: loss and gradient by U and V, of a separate prompt per row."""

    def one(params, key):
        value, slope = jax.value_and_grad(loss)(params, key)
        return jnp.concatenate([value[None], slope.bilinear[:, :2].ravel(), slope.value.ravel()])

    compiled = jax.jit(lambda params, keys: jax.lax.map(partial(one, params), keys, batch_size=2000))
    return lambda params, seed: compiled(params, jr.split(jr.key(seed), DRAWS))


@cache
def both(head, length):
    """Return the functions `drawn` for batches and for plain prompts."""
    options = {"batch": 1, "pool": POOLS[head]}
    plain = prompt_loss(a_task(), length, every_token=True, **options)
    return drawn(batch_loss(a_task(), length, **options)), drawn(plain)


@pytest.mark.parametrize("length", [1, 2, 20])
@pytest.mark.parametrize("head", POOLS)
def test_batches_have_the_law_of_plain_prompts(head, length, assert_monte_carlo):
    """Mean and covariance of loss and gradient of one prompt: all ten numbers and all their products."""
    left, right = (draw(a_head(), 200 + 2 * length + place) for place, draw in enumerate(both(head, length)))
    centre = 0.5 * (left.mean(axis=0) + right.mean(axis=0))

    def powers(sample):
        centred = sample - centre
        i, j = np.triu_indices(centred.shape[1])
        return jnp.concatenate([centred, centred[:, i] * centred[:, j]], axis=1)

    difference = powers(left) - powers(right)
    assert_monte_carlo(difference, np.zeros(difference.shape[1]), laws=6)
    # for a single token, the gradient of softmax attention by scores is zero except for rounding
    rounded = (np.round(each, 6).T for each in (left, right))
    p_values = [scipy.stats.ks_2samp(*columns).pvalue for columns in zip(*rounded, strict=True)]
    assert min(p_values) > 1e-3 / 100


@pytest.mark.parametrize("head", POOLS)
def test_batches_in_more_dimensions_have_the_law_of_plain_prompts(head, assert_monte_carlo):
    """Tokens of R⁵, short prompts: what of a gradient is outside the plane of scores and values is most of it."""
    pool = POOLS[head]
    task, length, rng = LinearRegression(np.eye(4), noise_std=0.3), 4, np.random.default_rng(19)
    params = Attention(0.2 * rng.normal(size=(5, 5)), rng.normal(size=(1, 5)))
    left = drawn(batch_loss(task, length, batch=1, pool=pool))(params, seed=400)
    right = drawn(prompt_loss(task, length, batch=1, pool=pool, every_token=True))(params, seed=401)

    def powers(sample):
        i, j = np.triu_indices(sample.shape[1])
        return jnp.concatenate([sample, sample[:, i] * sample[:, j]], axis=1)

    difference = powers(left) - powers(right)
    assert_monte_carlo(difference, np.zeros(difference.shape[1]), laws=2)


@pytest.mark.parametrize("head", POOLS)
@pytest.mark.parametrize("name", SINGULAR)
def test_batches_at_singular_heads(name, head, assert_monte_carlo):
    """Where scores and values do not span a plane."""
    bilinear, value = SINGULAR[name]
    params = Attention(0.5 * bilinear, np.array([value]))
    left, right = (draw(params, 300 + place) for place, draw in enumerate(both(head, 20)))
    assert np.isfinite(left).all()
    assert_monte_carlo(left - right, np.zeros(10), laws=6)


@cache
def exact(head):
    """The exact risk of either head at LENGTH, and its gradient."""
    task = a_task()
    risks = {
        "softmax": lambda params: 2 * task.finite_risk(params, math.log(LENGTH)),
        "linear": lambda params: 2 * task.linear_head_risk(params, LENGTH),
    }
    return jax.jit(jax.value_and_grad(risks[head]))(a_head())


@pytest.mark.parametrize(("precision", "batch"), [(np.float32, 125), (np.float64, 250)])
@pytest.mark.parametrize("head", POOLS)
def test_batches_are_unbiased(head, precision, batch, assert_monte_carlo):
    """The means are the exact risk of either head and its gradient, for an odd and an even number of prompts."""
    task, params, weight = a_task(), a_head(), 1.0
    risk, slope = exact(head)
    rounded = jax.tree.map(lambda leaf: leaf.astype(precision), params)
    one = jax.value_and_grad(batch_loss(task, LENGTH, batch=batch, pool=POOLS[head], weight=weight))
    values, slopes = jax.jit(jax.vmap(lambda key: one(rounded, key)))(jr.split(jr.key(batch), 160))
    assert values.dtype == precision
    assert_monte_carlo(values, risk, laws=24)
    assert_monte_carlo(slopes.bilinear, slope.bilinear, laws=24)
    assert_monte_carlo(slopes.value, slope.value, laws=24)


@pytest.mark.parametrize("degrees", [0, 1, 2, 9, 10, 99, 1000])
def test_chi_squares_are_quantiles_of_normals(degrees):
    """By SciPy's quantile function in either precision, rising, and zero of no degrees."""
    normals = np.linspace(-6.6, 6.6, 2001)
    tails = np.where(normals < 0, scipy.stats.norm.cdf(normals), scipy.stats.norm.sf(normals))
    quantiles = [scipy.stats.chi2.ppf(tails, degrees), scipy.stats.chi2.isf(tails, degrees)]
    expected = np.where(normals < 0, *quantiles) if degrees else np.zeros_like(normals)
    for dtype, exactness in ((jnp.float32, 1e-6), (jnp.float64, 1e-11)):
        found = np.asarray(_chi_square(jnp.asarray(normals, dtype), degrees), float)
        np.testing.assert_allclose(found, expected, rtol=0, atol=exactness * max(expected.max(), 1))


def test_the_sums_of_linear_attention_are_of_a_wishart_matrix(assert_monte_carlo):
    """Its mean and covariance, known in closed form, on prompts of eleven tokens."""
    length, further = 11, np.random.default_rng(9).normal(size=(3, DRAWS))
    one = jnp.ones(DRAWS)
    plane, tokens = Plane(one, 0 * one, one), jnp.zeros((1, 0, DRAWS), complex)
    seen = LINEAR.summarise(length, plane, tokens, jnp.asarray(further))
    gg, gh, hh = np.asarray(seen.by_value[0]), np.asarray(seen.output), np.asarray(seen.by_score[1])
    sums = length * np.stack([gg, gh, hh], axis=1)
    assert_monte_carlo(sums, np.array([length, 0.0, length]), laws=2)
    centred = sums - np.array([length, 0.0, length])
    i, j = np.triu_indices(3)
    assert_monte_carlo(centred[:, i] * centred[:, j], length * np.array([2.0, 0, 0, 1, 0, 2]), laws=2)
