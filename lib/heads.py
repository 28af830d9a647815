"""One attention head on one prompt, held against what a Gaussian law with the prompt's own moments would answer.

Scores s_l (with whatever scale the network has put into them) and values v_l of L tokens. Softmax answers
`o = Σ p_l v_l`, p = softmax(s). Tokens of a Gaussian law with the prompt's own mean and covariance would give, for
L → ∞, the tilted mean [BB26, Lemma 2.1]

    o_lin = v̄ + (1/L) Σ (s_l - s̄)(v_l - v̄),

which is affine in the query when scores are. Of a finite Gaussian prompt the mean output is `v̄ + (1 - P)(o_lin - v̄)`
(lib.finite_prompt.mean_output). What is measured here are squares and products: sums over queries, prompts or both of
them give the share that the prediction explains, and the best slope.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lib._checks import as_float

Scores = Float[Array, "q l"] | Float[np.ndarray, "q l"]
Values = Float[Array, "l e"] | Float[np.ndarray, "l e"]


class Comparison(eqx.Module):
    """Of each query: spread of its scores, concentration of its weights, and the output against the prediction.

    `tau` is the standard deviation of the scores over the prompt's tokens, `participation` is Σ p². With the output o
    and the prediction o_lin, both less the mean value v̄: `output` is |o|², `linear` is |o_lin|², `product` ⟨o, o_lin⟩.
    """

    tau: Float[Array, "..."] = eqx.field(converter=as_float)
    participation: Float[Array, "..."] = eqx.field(converter=as_float)
    output: Float[Array, "..."] = eqx.field(converter=as_float)
    linear: Float[Array, "..."] = eqx.field(converter=as_float)
    product: Float[Array, "..."] = eqx.field(converter=as_float)


def linear_prediction(scores: Scores, values: Values) -> Float[Array, "q e"]:
    """`v̄ + (1/L) Σ (s_l - s̄)(v_l - v̄)`: what a Gaussian law with the prompt's own moments answers."""
    scores, values = _checked(scores, values)
    mean = values.mean(axis=0)
    centred = scores - scores.mean(axis=1, keepdims=True)
    return mean + centred @ (values - mean) / len(values)


def compare(scores: Scores, values: Values) -> Comparison:
    """Softmax attention of one head on one prompt against `linear_prediction`, query by query."""
    scores, values = _checked(scores, values)
    values = values - values.mean(axis=0)
    scores = scores - scores.mean(axis=1, keepdims=True)
    weights = jax.nn.softmax(scores, axis=1)
    output, linear = weights @ values, scores @ values / len(values)
    return Comparison(
        tau=jnp.sqrt(jnp.mean(scores**2, axis=1)),
        participation=jnp.sum(weights**2, axis=1),
        output=jnp.sum(output**2, axis=1),
        linear=jnp.sum(linear**2, axis=1),
        product=jnp.sum(output * linear, axis=1),
    )


def explained_share(found: Comparison, axis: int | tuple[int, ...] | None = None) -> Float[Array, "..."]:
    """R²: the part of Σ|o - v̄|² that the best multiple of o_lin - v̄ explains, sums being taken along `axis`.

    Between 0 and 1; NaN where output or prediction do not vary at all.
    """
    output, linear, product = (jnp.sum(part, axis) for part in (found.output, found.linear, found.product))
    return product**2 / (output * linear)


def best_slope(found: Comparison, axis: int | tuple[int, ...] | None = None) -> Float[Array, "..."]:
    """The multiple of o_lin - v̄ that is closest to o - v̄ in mean square, sums being taken along `axis`.

    Of Gaussian tokens, with the moments of their law, its mean is that of 1 - P, weighted by |o_lin - v̄|².
    """
    return jnp.sum(found.product, axis) / jnp.sum(found.linear, axis)


def _checked(scores: Scores, values: Values) -> tuple[Float[Array, "q l"], Float[Array, "l e"]]:
    scores, values = as_float(scores), as_float(values)
    if scores.ndim != 2 or values.ndim != 2 or scores.shape[1] != len(values) or not len(values):
        raise ValueError(
            "A head's `scores` have shape (queries, L) and its `values` shape (L, e) with one L ≥ 1, because every "
            f"score weighs a value. Got shapes {scores.shape} and {values.shape}."
        )
    return scores, values
