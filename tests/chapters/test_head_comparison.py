"""Heads on one prompt: the prediction is that of a Gaussian with the prompt's moments; shares are regressions."""

import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy.special import softmax

from chapters.real_heads.head_comparison import (
    Comparison,
    compare,
    explained_share,
    linear_prediction,
    regression_slope,
)
from lib.attention import Attention, attend
from lib.finite_prompt import participation
from lib.measures import Empirical, Gaussian
from lib.random import normal

pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture(scope="module")
def head():
    """A head, a prompt that is not Gaussian, queries, and the scores and values that they make of one another."""
    rng = np.random.default_rng(5)
    params = Attention(rng.normal(size=(3, 4)), rng.normal(size=(2, 3)))
    tokens, queries = rng.exponential(size=(40, 3)), rng.normal(size=(7, 4))
    return (
        params,
        tokens,
        queries,
        queries @ np.asarray(params.bilinear).T @ tokens.T,
        tokens @ np.asarray(params.value).T,
    )


def test_the_prediction_is_attention_to_a_gaussian_of_the_same_moments(head, assert_exact):
    params, tokens, queries, scores, values = head
    gaussian = Gaussian(tokens.mean(axis=0), np.cov(tokens.T, bias=True))
    expected = [attend(params, gaussian, jnp.asarray(query)) for query in queries]
    assert_exact(linear_prediction(scores, values), np.asarray(expected))


def test_outputs_are_softmax_attention_to_the_prompt(head, assert_exact):
    params, tokens, queries, scores, values = head
    outputs = np.asarray([attend(params, Empirical(tokens), jnp.asarray(query)) for query in queries])
    centred, predicted = (
        outputs - values.mean(axis=0),
        linear_prediction(scores, values) - values.mean(axis=0),
    )
    found = compare(scores, values)
    assert_exact(found.output, np.sum(centred**2, axis=1))
    assert_exact(found.linear, np.sum(predicted**2, axis=1))
    assert_exact(found.product, np.sum(centred * predicted, axis=1))
    assert_exact(found.tau, scores.std(axis=1))
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert_exact(found.participation, np.sum(weights**2, axis=1))


def test_share_and_slope_are_those_of_a_regression_through_the_origin(head, assert_exact):
    _, _, _, scores, values = head
    mean = values.mean(axis=0)
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    y, x = (weights @ values - mean).ravel(), (linear_prediction(scores, values) - mean).ravel()
    (slope,), (rest,), *_ = np.linalg.lstsq(x[:, None], y, rcond=None)
    found = compare(scores, values)
    assert_exact(regression_slope(found), slope)
    assert_exact(explained_share(found), 1 - rest / np.sum(y**2))


def test_sums_run_along_the_axes_that_are_named(assert_exact):
    parts = np.random.default_rng(3).uniform(0.1, 1.0, size=(5, 6, 2, 3))
    found = Comparison(*parts)
    assert_exact(explained_share(found, axis=0), parts[4].sum(0) ** 2 / (parts[2].sum(0) * parts[3].sum(0)))
    assert_exact(regression_slope(found, axis=(0, 1)), parts[4].sum((0, 1)) / parts[3].sum((0, 1)))


def test_order_of_tokens_and_a_shift_of_scores_change_nothing(head, assert_exact):
    _, _, _, scores, values = head
    order = np.random.default_rng(1).permutation(len(values))
    for one, other in zip(compare(scores, values), compare(scores[:, order] + 3.0, values[order]), strict=True):
        assert_exact(one, other)


def test_equal_scores_give_the_mean_value(head, assert_exact):
    _, _, _, scores, values = head
    flat = np.full_like(scores, 2.0)
    assert_exact(linear_prediction(flat, values), np.tile(values.mean(axis=0), (len(scores), 1)))
    found = compare(flat, values)
    assert_exact(found.tau, np.zeros(len(scores)))
    assert_exact(found.participation, np.full(len(scores), 1 / len(values)))


def test_one_token_answers_with_itself(assert_exact):
    assert_exact(linear_prediction(np.asarray([[1.7]]), np.asarray([[3.0, -2.0]])), np.asarray([[3.0, -2.0]]))


@pytest.mark.parametrize("tau", [0.4, 1.3, 3.0])
def test_gaussian_prompts_have_the_slope_of_a_shrunken_mean(tau, assert_monte_carlo):
    """With the moments of the law: E⟨o - Vm, o_lin - Vm⟩ = (1 - P)|o_lin - Vm|², at any length."""
    length, loading = 24, np.asarray([0.8, -0.5])
    score_key, rest_key = jr.split(jr.key(7))
    scores = normal(score_key, (4000, length))
    values = scores[..., None] * loading + 0.7 * normal(rest_key, (4000, length, 2))
    outputs = np.einsum("nl,nle->ne", softmax(tau * scores, axis=1), values)
    slopes = outputs @ loading * tau / (tau**2 * loading @ loading)
    assert_monte_carlo(slopes[:, None], np.asarray([1 - participation(tau, np.log(length))]), laws=3)


@pytest.mark.parametrize(("scores", "values"), [((3, 5), (4, 2)), ((3, 0), (0, 2)), ((5,), (5, 2))])
def test_shapes_that_do_not_fit_are_refused(scores, values):
    from jaxtyping import TypeCheckError

    with pytest.raises((ValueError, TypeCheckError)):
        compare(np.zeros(scores), np.zeros(values))
