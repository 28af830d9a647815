"""Training on fresh prompts: a loss of in-context regression with an unbiased gradient of the risk.

A step of stochastic gradient descent needs one unbiased gradient. Plain sampling draws L tokens of $R^{d+1}$. Collapsed
sampling has the same distribution and draws 2L normals and two vectors: with scores `s_i = τ g_i` and values
`r_i = a g_i + ρ h_i` of standard normals (g, h), the output depends on nothing else, and its gradient on two more
vectors. Derived here.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from lib._checks import public, require_count
from lib.attention import Attention
from lib.icl.regression import LinearRegression, _whitened
from lib.measures import _covariance_root
from lib.random import fast_normal

# Maps scores and values of the tokens to the output.
_Pool = Callable[[Float[Array, " L"], Float[Array, " L"]], Float[Array, ""]]


def _softmax_pool(scores: Float[Array, " L"], values: Float[Array, " L"]) -> Float[Array, ""]:
    """Return `Σ p_i r_i` with p = softmax(s)."""
    return jax.nn.softmax(scores) @ values


@public
def prompt_loss(
    task: LinearRegression,
    length: int,
    *,
    batch: int,
    head: Callable[[Any], Attention] = lambda params: params,
    pool: _Pool = _softmax_pool,
    every_token: bool = False,
    weight: float = 0.5,
) -> Callable[[Any, PRNGKeyArray], Float[Array, ""]]:
    """Return the loss of a fresh batch as a function of parameters and a random key.

    It computes in the precision of the parameters. Call it under `jit`: without, it compiles ninety small programs.

    Args:
      task: the distribution of prompts.
      length: the prompt length L, at least 1.
      batch: number of prompts, at least 1.
      head: maps the parameters to a head.
      pool: maps scores s and values r of the tokens, shape (L,) each, to the output: by default `Σ p_i r_i` with p =
        softmax(s); `lambda s, r: s @ r / s.size` is linear attention.
      every_token: draw every token, at a cost of L (d + 1) normals per prompt, in place of collapsed sampling.
      weight: factor of the mean square error: ½ as in [BB26], or 1 as in the published code.

    Returns:
      A function of parameters and a random key, `weight · mean (ŷ - y)²`: an unbiased estimate of the risk, with an
      unbiased gradient. With collapsed sampling the gradient is drawn with the value, and is not its derivative; only
      first derivatives are valid.

    Raises:
      ValueError: if a count is not a whole number ≥ 1.

    Transformations: jit, vmap, grad.
    """
    length = require_count("prompt_loss", "length", length, "an empty prompt defines no probability measure.")
    batch = require_count("prompt_loss", "batch", batch, "a mean needs an element.")
    d = task.cov.shape[-1]
    roots = _covariance_root(task.cov), _covariance_root(task.query_cov)
    drawn = length * (d + 1) if every_token else 2 * (length + d + 1)
    collapsed = _with_gradient(partial(_collapsed_output, pool))

    def square_error(attention, normals):
        dtype = normals.dtype
        root, query_root = (jnp.asarray(matrix, dtype) for matrix in roots)
        noise_std = task.noise_std.astype(dtype)
        task_normals, query_normals, label_normal, prompt_normals = jnp.split(normals, (d, 2 * d, 2 * d + 1))
        w = task.task_scale.astype(dtype) * task_normals
        query = query_root @ query_normals

        whiten = partial(_whitened, root, noise_std, w)
        tilt, value = attention.bilinear[:, :d] @ query, attention.value[-1]
        if every_token:
            tokens = prompt_normals.reshape(length, d + 1)
            output = pool(tokens @ whiten(tilt), tokens @ whiten(value))
        else:
            output = collapsed(whiten(tilt), whiten(value), prompt_normals)
        return (output - query @ w - noise_std * label_normal[0]) ** 2

    def loss(params, key):
        attention = head(params)
        shape = (batch, 2 * d + 1 + drawn)
        normals = fast_normal(key, shape, attention.value.dtype)
        return weight * jnp.mean(jax.vmap(partial(square_error, attention))(normals))

    return loss


def _collapsed_output(
    pool: _Pool, t: Float[Array, " e"], v: Float[Array, " e"], normals: Float[Array, " n"]
) -> tuple[Float[Array, ""], Float[Array, " e"], Float[Array, " e"]]:
    """Return the output at scores $⟨t, n_i⟩$ and values $⟨v, n_i⟩$ of the tokens, and its derivatives in t and v.

    The three have the joint distribution of plain prompts, from two normals per token and two vectors.
    """
    tau = _norm(t)
    f1 = t * _inverse(tau)
    along = _dot(v, f1)
    across = v - along * f1
    rho = _norm(across)
    f2 = across * _inverse(rho)

    rest, g, h = jnp.split(normals, (2 * t.size, t.size + normals.size // 2))
    output, (by_score, by_value) = jax.value_and_grad(pool, (0, 1))(tau * g, along * g + rho * h)
    xi1, xi2 = (xi - f1 * _dot(f1, xi) - f2 * _dot(f2, xi) for xi in jnp.split(rest, 2))
    spread = _norm(by_value)
    shared = _dot(by_score, by_value) * _inverse(spread)
    # the part of ∂ŷ/∂t that is drawn independently: its sign does not matter
    own = jnp.sqrt(jnp.maximum(_dot(by_score, by_score) - shared**2, 0.0))
    by_v = f1 * _dot(by_value, g) + f2 * _dot(by_value, h) + spread * xi1
    by_t = f1 * _dot(by_score, g) + f2 * _dot(by_score, h) + shared * xi1 + own * xi2
    return output, by_t, by_v


def _with_gradient(function: Callable) -> Callable:
    """Return the value of a function (x, y, drawn) -> (value, gradient in x, gradient in y), with these gradients."""

    @jax.custom_vjp
    def value(x, y, drawn):
        return function(x, y, drawn)[0]

    def forward(x, y, drawn):
        result, *gradients = function(x, y, drawn)
        return result, gradients

    def backward(gradients, cotangent):
        return *(cotangent * gradient for gradient in gradients), None

    value.defvjp(forward, backward)
    return value


def _dot(a: Float[Array, " n"], b: Float[Array, " n"]) -> Float[Array, ""]:
    return jnp.sum(a * b)  # under `vmap` XLA fuses this with its neighbours, a batched product of matrices it does not


def _norm(a: Float[Array, " n"]) -> Float[Array, ""]:
    return jnp.sqrt(_dot(a, a))


def _inverse(scale: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Return `1/scale`, or 0 where scale is 0."""
    return jnp.where(scale > 0, 1 / jnp.where(scale > 0, scale, 1.0), 0.0)
