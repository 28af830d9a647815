"""Attention against other people's softmax, the lemma, and Monte Carlo."""

import json
import subprocess
import sys
from functools import partial, singledispatch

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.attention import (
    Attention,
    _mean_square_weight,
    attend,
    dependent_fluctuation,
    fluctuation,
    linear_attend,
    stream_attend,
)
from lib.measures import (
    Empirical,
    Gaussian,
    GaussianMixture,
    Laplace,
    Measure,
    Pushforward,
    Rademacher,
    Uniform,
    empirical,
    tilted_cov,
)
from lib.statistics import comparison_quantile, standard_error

pytestmark = pytest.mark.usefixtures("float64", "quick_compilation")

# As the issue asks, for weights of any size.
SOFTMAX = 1e-12

attend_once = eqx.filter_jit(attend)
linear_once = eqx.filter_jit(linear_attend)
fluctuation_once = eqx.filter_jit(fluctuation)
jax_attention = jax.jit(partial(jax.nn.dot_product_attention, scale=1.0))


def head(d, e=2, seed=0, scale=0.5):
    rng = np.random.default_rng(seed)
    return Attention(scale * rng.normal(size=(d, d)) / np.sqrt(d), rng.normal(size=(e, d)))


def query_for(measure):
    return jnp.asarray(np.random.default_rng(1).uniform(-1, 1, measure.dimension))


def small_head_and_query(measure):
    """A tilt with every entry at most a half, so that twice the tilt is in the domain of the registry's Laplace."""
    d = measure.dimension
    tilt = np.random.default_rng(2).uniform(-0.5, 0.5, d)
    value = np.random.default_rng(3).normal(size=(2, d))
    return Attention(np.outer(tilt, np.eye(d)[0]) + np.outer(tilt, np.eye(d)[-1]), value), jnp.full(d, 0.5)


def softmax_by_hand(bilinear, value, points, query):
    """The textbook, in NumPy: weights, then the weighted mean of the values."""
    scores = points @ (bilinear @ query)
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    return weights, value @ (weights @ points)


# --------------------------------------------------------------------------------------- textbook softmax

prompts = {
    "seed": st.integers(0, 2**32 - 1),
    "n": st.sampled_from([1, 2, 17, 200]),  # few shapes, because each is compiled
    "d": st.sampled_from([1, 4]),
    "scale": st.floats(0.0, 4.0),
}


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(**prompts)
def test_attend_on_a_prompt_is_softmax(seed, n, d, scale):
    rng = np.random.default_rng(seed)
    bilinear, value = scale * rng.normal(size=(d, d)) / np.sqrt(d), rng.normal(size=(3, d))
    points, query = rng.normal(size=(n, d)), rng.normal(size=d)
    _, expected = softmax_by_hand(bilinear, value, points, query)
    actual = attend_once(Attention(bilinear, value), Empirical(points), jnp.asarray(query))
    largest = np.abs(points @ value.T).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=SOFTMAX * largest)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(**prompts)
def test_attend_is_the_attention_of_jax(seed, n, d, scale):
    """`jax.nn.dot_product_attention` forms its weights in float32 whatever it is given: compare to that."""
    rng = np.random.default_rng(seed)
    key, ask, value = rng.normal(size=(3, d, d)) / np.sqrt(d)
    points, query = rng.normal(size=(n, d)), rng.normal(size=d)
    params = Attention.from_kqv(*map(jnp.asarray, (scale * key, ask, value)))
    keys, values = (points @ matrix.T for matrix in (scale * key, value))
    expected = jax_attention((ask @ query)[None, None], keys[:, None], values[:, None])[0, 0]
    actual = attend_once(params, Empirical(points), jnp.asarray(query))
    largest_score = np.abs(keys @ (ask @ query)).max()
    single = 4 * np.finfo(np.float32).eps * (1 + largest_score) * np.abs(values).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=single)


def test_attend_ignores_order_and_duplication(assert_exact):
    points = np.random.default_rng(0).normal(size=(6, 3))
    params, query = head(3), jnp.array([0.3, -2.0, 1.0])
    expected = attend_once(params, Empirical(points), query)
    for other in (points[[3, 1, 5, 0, 2, 4]], np.repeat(points, 3, axis=0)):
        assert_exact(attend_once(params, Empirical(other), query), expected, rtol=SOFTMAX)


def test_attend_without_jit_is_the_same(assert_exact):
    """A notebook calls it this way first."""
    points = np.random.default_rng(0).normal(size=(6, 3))
    params, query = head(3), np.array([0.3, -2.0, 1.0])
    _, expected = softmax_by_hand(np.asarray(params.bilinear), np.asarray(params.value), points, query)
    assert_exact(attend(params, Empirical(points), jnp.asarray(query)), expected)


# ------------------------------------------------------------------------------------------- closed forms


@pytest.mark.parametrize("rank", [0, 1, 2, 4])
def test_lemma_2_1_gaussian_prompts_are_affine(rank, assert_exact):
    """`T[N(m, Γ)](z) = V (m + Γ U z)`, whatever the rank of Γ [BB26, Lemma 2.1]."""
    rng = np.random.default_rng(rank)
    mean, root, query = rng.normal(size=4), rng.normal(size=(4, rank)), rng.normal(size=4)
    cov, params = root @ root.T, head(4)
    expected = params.value @ (mean + cov @ params.bilinear @ query)
    assert_exact(attend_once(params, Gaussian(mean, cov), jnp.asarray(query)), expected)


def test_mixtures_are_gated_affine_experts(assert_exact):
    """`V Σ α_k (m_k + Γ_k ξ)`, `α = softmax(log π_k + ⟨m_k, ξ⟩ + ½⟨ξ, Γ_k ξ⟩)`."""
    rng = np.random.default_rng(4)
    mean, root, query = rng.normal(size=(3, 2)), rng.normal(size=(3, 2, 2)), rng.normal(size=2)
    cov, weights, params = root @ root.swapaxes(-1, -2), np.array([0.2, 0.5, 0.3]), head(2)
    tilt = np.asarray(params.bilinear) @ query
    gates = weights * np.exp(mean @ tilt + 0.5 * np.einsum("i,kij,j->k", tilt, cov, tilt))
    expected = params.value @ ((gates / gates.sum()) @ (mean + cov @ tilt))
    mixture = GaussianMixture(np.log(weights), Gaussian(mean, cov))
    assert_exact(attend_once(params, mixture, jnp.asarray(query)), expected)


def test_product_measures_have_their_response_curves(assert_exact):
    """tanh, Langevin's function, and the double exponential's pole."""
    scale, query = np.array([0.3, 0.5, 0.7]), jnp.array([1.0, -1.2, 0.6])
    params = Attention(np.eye(3), np.eye(3))
    x = scale * np.asarray(query)
    assert_exact(attend_once(params, Rademacher(scale), query), scale * np.tanh(x))
    assert_exact(attend_once(params, Uniform(scale), query), scale * (1 / np.tanh(x) - 1 / x))
    assert_exact(attend_once(params, Laplace(scale), query), scale * 2 * x / (1 - x**2))


# ---------------------------------------------------------------------------- structure in the parameters


@pytest.mark.parametrize("make_measure", ["mixture", "empirical", "laplace"], indirect=True)
def test_attend_is_linear_in_the_value(measure, assert_exact):
    one, two = head(measure.dimension, seed=1), head(measure.dimension, seed=2)
    mixed = Attention(one.bilinear, 2.0 * one.value - 3.0 * two.value)
    query = query_for(measure)
    parts = [attend_once(Attention(one.bilinear, value), measure, query) for value in (one.value, two.value)]
    assert_exact(attend_once(mixed, measure, query), 2.0 * parts[0] - 3.0 * parts[1])


def test_from_kqv_pairs_keys_with_queries(assert_exact):
    rng = np.random.default_rng(0)
    key, query, value = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(2, 3))
    params = Attention.from_kqv(*map(jnp.asarray, (key, query, value)))
    token, asked = rng.normal(size=3), rng.normal(size=3)
    assert_exact(token @ params.bilinear @ asked, (key @ token) @ (query @ asked))
    assert_exact(params.value, value)


@eqx.filter_jit
def derivatives_of_attention(params, measure, query, direction):
    by_query = jax.jacfwd(lambda query: attend(params, measure, query))(query)
    by_bilinear = jax.jvp(
        lambda bilinear: attend(Attention(bilinear, params.value), measure, query), (params.bilinear,), (direction,)
    )[1]
    return by_query, by_bilinear, tilted_cov(measure, params.bilinear @ query)


@pytest.mark.parametrize("make_measure", ["singular_gaussian", "mixture", "uniform", "pushforward"], indirect=True)
def test_derivatives_of_attention_are_tilted_covariances(measure, assert_exact):
    """`∂T/∂z = V ∇²Λ(ξ) U`, and in direction dU of U it is `V ∇²Λ(ξ) dU z`."""
    params, query = head(measure.dimension), query_for(measure)
    direction = jnp.asarray(np.random.default_rng(5).normal(size=params.bilinear.shape))
    by_query, by_bilinear, cov = derivatives_of_attention(params, measure, query, direction)
    assert_exact(by_query, params.value @ cov @ params.bilinear)
    assert_exact(by_bilinear, params.value @ cov @ direction @ query)


def test_derivative_of_softmax_is_the_weighted_covariance(assert_exact):
    rng = np.random.default_rng(6)
    points, query, params = rng.normal(size=(7, 3)), rng.normal(size=3), head(3)
    bilinear, value = np.asarray(params.bilinear), np.asarray(params.value)
    weights, _ = softmax_by_hand(bilinear, value, points, query)
    expected = value @ np.cov(points.T, aweights=weights, ddof=0) @ bilinear
    slope = eqx.filter_jit(jax.jacrev(lambda query: attend(params, Empirical(points), query)))
    assert_exact(slope(jnp.asarray(query)), expected)


def test_attend_batches_over_queries_and_prompts(assert_exact):
    rng = np.random.default_rng(7)
    points, queries, params = rng.normal(size=(4, 6, 3)), rng.normal(size=(4, 3)), head(3)
    batched = eqx.filter_jit(jax.vmap(attend, (None, 0, 0)))(params, Empirical(points), jnp.asarray(queries))
    matrices = np.asarray(params.bilinear), np.asarray(params.value)
    expected = [softmax_by_hand(*matrices, *pair)[1] for pair in zip(points, queries, strict=True)]
    assert_exact(batched, expected)


# -------------------------------------------------------------------------------------- linear attention


@singledispatch
def mean_and_cov(measure: Measure):
    raise TypeError(f"no mean and covariance are known here for {type(measure).__name__}")


mean_and_cov.register(Gaussian, lambda law: (np.asarray(law.mean), np.asarray(law.cov)))
mean_and_cov.register(Empirical, lambda law: (np.mean(law.points, 0), np.cov(np.asarray(law.points).T, ddof=0)))
mean_and_cov.register(Rademacher, lambda law: (0 * np.asarray(law.scale), np.diag(law.scale**2)))
mean_and_cov.register(Uniform, lambda law: (0 * np.asarray(law.halfwidth), np.diag(law.halfwidth**2 / 3)))
mean_and_cov.register(Laplace, lambda law: (0 * np.asarray(law.scale), np.diag(2 * law.scale**2)))


@mean_and_cov.register
def _(law: GaussianMixture):
    weights = np.exp(law.log_weights) / np.exp(law.log_weights).sum()
    centres, covs = np.asarray(law.components.mean), np.asarray(law.components.cov)
    mean = weights @ centres
    second = np.einsum("k,kij->ij", weights, covs + centres[:, :, None] * centres[:, None, :])
    return mean, second - np.outer(mean, mean)


@mean_and_cov.register
def _(law: Pushforward):
    mean, cov = mean_and_cov(law.measure)
    matrix = np.asarray(law.matrix)
    return matrix @ mean + np.asarray(law.offset), matrix @ cov @ matrix.T


def test_linear_attention_is_the_second_moment(measure, assert_exact):
    """`V E[z zᵀ] U z`, the moments taken by hand in NumPy."""
    mean, cov = mean_and_cov(measure)
    params, query = head(measure.dimension), query_for(measure)
    expected = params.value @ (cov + np.outer(mean, mean)) @ params.bilinear @ query
    for output in (linear_once, linear_attend):
        assert_exact(output(params, measure, query), expected)


def test_linear_attention_in_many_dimensions_does_not_form_the_second_moment(assert_exact, monkeypatch):
    points = np.random.default_rng(0).normal(size=(9, 100))
    params, query = head(100), jnp.cos(jnp.arange(100.0))
    monkeypatch.setattr(Empirical, "_derivatives_in_numpy", None)
    expected = params.value @ points.T @ (points @ params.bilinear @ query) / 9
    assert_exact(linear_attend(params, Empirical(points), query), expected)


def test_linear_and_softmax_attention_agree_on_centred_gaussians(assert_exact):
    """The paper's title, in one line."""
    root = np.random.default_rng(0).normal(size=(4, 4))
    law, params, query = Gaussian(np.zeros(4), root @ root.T), head(4), jnp.arange(4.0)
    assert_exact(attend_once(params, law, query), linear_once(params, law, query))


# ------------------------------------------------------------------------------------- many finite prompts


@eqx.filter_jit
def outputs(params, measure, query, *, length, repeats, key):
    """The outputs of `repeats` independent prompts of `length` tokens, one a row."""

    def one(index):
        return attend(params, empirical(measure, length, key=jr.fold_in(key, index)), query)

    return jax.lax.map(one, jnp.arange(repeats), batch_size=50)


SETTLING = ["gaussian", "singular_gaussian", "mixture", "rademacher", "uniform", "laplace"]


@pytest.mark.parametrize("make_measure", SETTLING, indirect=True)
def test_fluctuation_is_the_covariance_of_many_prompts(measure, assert_monte_carlo):
    """`L Cov T[μ̂_L]` at L = 1000, where what is missing to the limit, O(1/L), is a fraction of the error."""
    length, repeats = 1000, 500
    params, query = small_head_and_query(measure)
    drawn = np.asarray(outputs(params, measure, query, length=length, repeats=repeats, key=jr.key(0)))
    centred = (drawn - drawn.mean(axis=0)) * np.sqrt(length * repeats / (repeats - 1))
    rows, columns = np.triu_indices(2)
    expected = np.asarray(fluctuation_once(params, measure, query))
    assert_monte_carlo(centred[:, rows] * centred[:, columns], expected[rows, columns], len(SETTLING))


def fluctuation_by_hand(params, points, query):
    """The delta method for a law on equally likely points: `n Σ p_i² V(z_i - T)(z_i - T)ᵀVᵀ`."""
    weights, output = softmax_by_hand(np.asarray(params.bilinear), np.asarray(params.value), points, query)
    residual = points @ np.asarray(params.value).T - output
    return len(points) * (weights[:, None] * residual).T @ (weights[:, None] * residual)


def test_fluctuation_of_a_finite_law_is_a_finite_sum(assert_exact):
    points = np.random.default_rng(0).normal(size=(7, 3))
    signs = np.array([[a, b, c] for a in (-0.5, 0.5) for b in (-1, 1) for c in (-1.5, 1.5)])
    params, query = head(3, scale=1.5), np.array([0.5, -0.2, 0.8])
    for law, support in ((Empirical(points), points), (Rademacher(np.array([0.5, 1.0, 1.5])), signs)):
        expected = fluctuation_by_hand(params, support, query)
        assert_exact(fluctuation_once(params, law, jnp.asarray(query)), expected)


def test_fluctuation_of_dependent_tokens_without_correlations_is_that_of_independent_ones(assert_exact):
    """The tokens have a mean, which changes neither fluctuation, and an invertible or a singular covariance."""
    for cov in (0.4 * np.eye(3), np.diag([1.0, 0.5, 0.0])):
        gaussian, query = Gaussian(np.array([0.3, -1.0, 0.2]), cov), jnp.asarray([0.5, -0.2, 0.8])
        params = head(3, scale=1.5)
        expected = fluctuation_once(params, gaussian, query)
        for correlations in (np.zeros(0), np.zeros(4)):
            assert_exact(dependent_fluctuation(params, gaussian, query, jnp.asarray(correlations)), expected)


def test_fluctuation_of_dependent_tokens_is_a_sum_of_tilted_cross_moments(assert_exact):
    """At ten places: lag by lag, derivatives of the joint moment generating function of two correlated tokens."""
    rng = np.random.default_rng(55)

    @jax.jit
    def lag(cov, tilt, correlation):
        drift = cov @ tilt

        def weighed(s, t):  # E exp(⟨s, z_0 - Γξ⟩ + ⟨t, z_k - Γξ⟩), of which the cross derivative is needed at s = t = ξ
            joint = 0.5 * s @ cov @ s + 0.5 * t @ cov @ t + correlation * s @ cov @ t
            return jnp.exp(joint - (s + t) @ drift)

        scale = jnp.exp(tilt @ drift)  # weights e^{⟨ξ,z⟩ - τ²/2}, and e^{2⟨ξ,Γξ⟩} from the shifts above
        return scale * jax.jacfwd(jax.grad(weighed, 0), 1)(tilt, tilt)

    for _ in range(10):
        root, correlations = rng.normal(size=(3, 3)), rng.uniform(-1, 1, 4)
        gaussian, params = Gaussian(rng.normal(size=3), 0.3 * root @ root.T), head(3, scale=rng.uniform(0.2, 1.5))
        query = jnp.asarray(rng.normal(size=3))
        tilt = params.bilinear @ query
        lags = [lag(gaussian.cov, tilt, r) for r in (1.0, *correlations, *correlations)]
        expected = params.value @ sum(lags) @ params.value.T
        assert_exact(dependent_fluctuation(params, gaussian, query, jnp.asarray(correlations)), expected)


@pytest.mark.parametrize("correlations", [0.6 ** np.arange(1, 80), np.array([-0.45])], ids=["AR", "MA"])
def test_fluctuation_of_dependent_tokens_is_the_covariance_of_many_prompts(float64, correlations, assert_monte_carlo):
    """`L Cov` at L = 2000 by NumPy; a convolution makes tokens with the given correlations."""
    length, repeats, cov = 2000, 500, np.array([[0.5, 0.2], [0.2, 0.3]])
    rng = np.random.default_rng(9)
    if len(correlations) > 1:
        kernel = 0.6 ** np.arange(60) * np.sqrt(1 - 0.36)
    else:
        first = np.sqrt((1 + np.sqrt(1 - 4 * 0.45**2)) / 2)  # of an MA(1): a² + b² = 1, ab = r
        kernel = np.array([first, -0.45 / first])
    params, query = head(2), jnp.asarray([0.9, -0.4])
    bilinear, value = np.asarray(params.bilinear), np.asarray(params.value)
    drawn = []
    for _ in range(repeats):
        noise = rng.normal(size=(length + len(kernel) - 1, 2)) @ np.linalg.cholesky(cov).T
        tokens = np.stack([np.convolve(column, kernel, mode="valid") for column in noise.T], axis=1)
        drawn.append(softmax_by_hand(bilinear, value, tokens, np.asarray(query))[1])
    centred = (np.asarray(drawn) - np.mean(drawn, axis=0)) * np.sqrt(length * repeats / (repeats - 1))
    rows, columns = np.triu_indices(value.shape[0])
    gaussian = Gaussian(np.zeros(2), cov)
    expected = np.asarray(dependent_fluctuation(params, gaussian, query, jnp.asarray(correlations)))
    independent = np.asarray(fluctuation_once(params, gaussian, query))
    assert_monte_carlo(centred[:, rows] * centred[:, columns], expected[rows, columns], 2)
    assert np.abs(independent / expected - 1).max() > 0.5


def mean_square_weight(measure, tilt):
    return _mean_square_weight(measure.log_mgf(tilt), measure.log_mgf(2 * tilt))


def test_mean_square_weight_counts_the_tokens_that_matter(assert_exact):
    """`L Σ p²` of a prompt, by NumPy; `e^{τ²}` of a Gaussian; infinite for Laplace tokens past half the pole."""
    points, query = np.random.default_rng(0).normal(size=(7, 3)), jnp.asarray([0.5, -0.2, 0.8])
    params, square = head(3, scale=1.5), np.random.default_rng(1).normal(size=(3, 3))
    weights, _ = softmax_by_hand(np.asarray(params.bilinear), np.asarray(params.value), points, np.asarray(query))
    tilt = params.bilinear @ query
    assert_exact(mean_square_weight(Empirical(points), tilt), 7 * np.sum(weights**2))
    cov = square @ square.T
    assert_exact(mean_square_weight(Gaussian(np.ones(3), cov), tilt), np.exp(tilt @ cov @ tilt))
    assert mean_square_weight(Laplace(0.7 / np.abs(tilt)), tilt) == np.inf


@pytest.mark.parametrize("make_measure", [*SETTLING, "point", "empirical"], indirect=True)
def test_fluctuation_at_zero_query_is_the_covariance(measure, assert_exact):
    params = head(measure.dimension)
    zero = jnp.zeros(measure.dimension)
    assert_exact(fluctuation_once(params, measure, zero), params.value @ mean_and_cov(measure)[1] @ params.value.T)


@pytest.mark.parametrize("size", [3.0, 1e3, 1e155])
def test_no_function_returns_nan_at_extreme_tilts(measure, size):
    """Where a number is too large or not defined, it is infinite or an error."""
    identity = Attention(np.eye(measure.dimension), np.eye(measure.dimension))
    for tilt in (np.eye(measure.dimension)[0], np.cos(np.arange(measure.dimension))):
        query = jnp.asarray(size * tilt)
        for function in (attend, fluctuation, lambda _, measure, query: mean_square_weight(measure, query)):
            try:
                value = function(identity, measure, query)
            except (ValueError, RuntimeError):
                continue
            assert not np.isnan(value).any(), (function.__name__, tilt)


@pytest.mark.parametrize("make_measure", ["uniform"], indirect=True)
def test_finite_prompts_approach_the_limit_at_rate_one_over_length(measure):
    """The mean square distance to `attend` on the law falls like `trace(fluctuation) / L`: slope -1, measured."""
    short, long, repeats = 500, 4000, 1000
    params, query = small_head_and_query(measure)
    limit = np.asarray(attend_once(params, measure, query))
    squares = [
        length
        * (
            (np.asarray(outputs(params, measure, query, length=length, repeats=repeats, key=jr.key(1))) - limit) ** 2
        ).sum(axis=1)
        for length in (short, long)
    ]
    means, errors = np.mean(squares, axis=1), standard_error(np.stack(squares), axis=1)
    quantile = comparison_quantile(2)
    assert abs(means[1] - np.trace(fluctuation_once(params, measure, query))) < quantile * errors[1]
    slope_error = np.hypot(*(errors / means)) / np.log(long / short)
    assert abs(np.log(means[1] / means[0]) / np.log(long / short)) < quantile * slope_error
    assert quantile * slope_error < 0.15


# ------------------------------------------------------------------------------------------------ streams


@eqx.filter_jit
def draw(measure, n, key):
    return measure.sample(n, key=key)


def streamed_tokens(measure, n, block, key):
    """What the docstring promises: block j from `fold_in(key, j)`, the last one cut."""
    blocks = [draw(measure, block, jr.fold_in(key, j)) for j in range(-(-n // block))]
    return np.concatenate(blocks)[:n]


LAPLACE = np.array([0.2, 0.3, 0.4])


@pytest.mark.parametrize(("n", "block"), [(12, 4), (13, 4), (3, 8), (1, 1)])
def test_stream_attends_to_the_very_tokens(n, block, assert_exact):
    law, params, query = Laplace(LAPLACE), head(3, scale=2.0), jnp.array([1.0, -2.0, 0.5])
    prompt = streamed_tokens(law, n, block, jr.key(5))
    _, expected = softmax_by_hand(np.asarray(params.bilinear), np.asarray(params.value), prompt, np.asarray(query))
    assert_exact(stream_attend(params, law, query, n, key=jr.key(5), block=block), expected, rtol=SOFTMAX)


@pytest.mark.parametrize("make_measure", ["mixture", "empirical"], indirect=True)
def test_stream_attends_to_any_measure(measure, assert_exact):
    params, query = head(measure.dimension), query_for(measure)
    prompt = Empirical(streamed_tokens(measure, 13, 4, jr.key(6)))
    actual = stream_attend(params, measure, query, 13, key=jr.key(6), block=4)
    assert_exact(actual, attend_once(params, prompt, query), rtol=SOFTMAX)


def test_stream_defaults_to_blocks_that_need_not_divide_the_prompt(assert_exact):
    law, params, query = Rademacher(np.ones(2)), head(2), jnp.array([1.0, -2.0])
    prompt = Empirical(streamed_tokens(law, 70_000, 65_536, jr.key(7)))
    actual = stream_attend(params, law, query, 70_000, key=jr.key(7))
    assert_exact(actual, attend_once(params, prompt, query), rtol=SOFTMAX)


@pytest.mark.parametrize("size", [1e3, -1e3, 1e5])
def test_stream_survives_huge_scores(size, assert_exact):
    """An exponential of the largest score alone would overflow; of the smallest, vanish."""
    law, params, query = Gaussian(np.array([5.0, 0.0]), np.eye(2)), Attention(np.eye(2), np.eye(2)), np.array([1.0, 0])
    prompt = streamed_tokens(law, 11, 4, jr.key(8))
    _, expected = softmax_by_hand(size * np.eye(2), np.eye(2), prompt, query)
    assert_exact(stream_attend(params, law, jnp.asarray(size * query), 11, key=jr.key(8), block=4), expected)


def test_memory_of_a_stream_is_that_of_its_blocks():
    """Ten million tokens alone would need a third of a gibibyte in float32."""
    with jax.enable_x64(False):
        law, params = Gaussian(np.zeros(8), 0.5 * np.eye(8)), head(8)
        program = jax.jit(lambda query: stream_attend(params, law, query, 10**7, key=jr.key(0)))
        memory = program.lower(jnp.ones(8)).compile().memory_analysis()
    assert 2**20 < memory.temp_size_in_bytes < 2**26


TEN_MILLION = """
import json, pathlib, re, resource, sys
import jax, jax.numpy as jnp
from lib import Attention, Gaussian, fluctuation, stream_attend
root = jnp.eye(8) + 0.1 * jnp.arange(64.0).reshape(8, 8) / 64
law, params = Gaussian(jnp.zeros(8), 0.5 * root @ root.T), Attention(0.5 * jnp.eye(8), jnp.eye(8))
query = jnp.linspace(-1, 1, 8)
output = stream_attend(params, law, query, 10**7, key=jax.random.key(0))
if sys.platform == "linux":  # where ru_maxrss begins at what the parent process held when it forked
    peak = 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({
    "output": output.tolist(),
    "limit": (law.cov @ params.bilinear @ query).tolist(),
    "variance": (jnp.diag(fluctuation(params, law, query)) / 1e7).tolist(),
    "peak": peak,
}))
"""


@pytest.mark.daily
def test_stream_of_ten_million_tokens_fits_in_a_gibibyte(tmp_path):
    """The stream runs in a separate process, so that the peak is its memory only; tokens are in float32."""
    run = subprocess.run(
        [sys.executable, "-c", TEN_MILLION], capture_output=True, text=True, check=True, cwd=tmp_path, timeout=300
    )
    said = json.loads(run.stdout)
    assert 2**25 < said["peak"] < 2**30
    errors = np.abs(np.subtract(said["output"], said["limit"])) / np.sqrt(said["variance"])
    assert (errors < comparison_quantile(8)).all()
    assert (errors > 0).any()
