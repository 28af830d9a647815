"""The blocks of a head that matter for labelled tokens, and two heads that reach the Bayes risk."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import expit

from chapters.mixtures.gated_scores import GatedScore, bayes_score, discriminant_excess, gated_score
from chapters.mixtures.settings import published_classes
from lib.attention import Attention
from lib.measures import GaussianMixture

# Quadrature nodes per dimension: they resolve gates with ‖Γ^{1/2} s‖ ≤ 2 to 1e-11.
NODES = 48


class Blocks(NamedTuple):
    """The parts of a head that its output at a query (x, 0) depends on: blocks of Uᵀ and of the last row of V.

    Args:
      upper: U_11, shape (d, d).
      column: u_12, shape (d,).
      row: v_21, shape (d,).
      corner: v_22, shape ().
    """

    upper: Float[Array | np.ndarray, "d d"]
    column: Float[Array | np.ndarray, " d"]
    row: Float[Array | np.ndarray, " d"]
    corner: Float[Array | np.ndarray, ""]


def attention(blocks: Blocks) -> Attention:
    """Return the head with these blocks; the others are zero."""
    upper, column, row, corner = blocks
    bilinear = jnp.pad(upper.T, ((0, 1), (0, 1))).at[-1, :-1].set(column)
    return Attention(bilinear, jnp.append(row, corner)[None])


def score_of(blocks: Blocks, law: GaussianMixture) -> GatedScore:
    """Return the score of the head with these blocks on the infinite prompt."""
    return gated_score(attention(blocks), law)


@partial(jax.jit, static_argnames="nodes")
def excess(blocks: Blocks, law: GaussianMixture, nodes: int = NODES) -> Float[Array, ""]:
    """Return the logistic risk of the head above the Bayes risk."""
    return discriminant_excess(law, score_of(blocks, law), nodes=nodes)


def head_without_gate() -> Blocks:
    """Return a head with r = 0 and s ≠ 0 that has the Bayes risk of `published_classes`.

    U_11, v_21 and v_22 are those of [GBB26, Table 3] as far as they are legible; the second column of U_11 is taken as
    zero. The paper's u_12 is not legible; with (1/2, 1/2) the gate is not steep.
    """
    intercept = np.asarray(bayes_score(published_classes()).intercept)
    upper = np.array([[1.0, 0.0], [-1.0, 0.0]]) / (2 * intercept)
    return Blocks(upper, np.array([0.5, 0.5]), np.array([2 * intercept, 0.0]), -intercept)


def head_with_constant_gate() -> Blocks:
    """Return a head with s = 0 and r ≠ 0 that has the Bayes risk of `published_classes`, of [GBB26, Table 3]."""
    law = published_classes()
    best = jax.tree.map(np.asarray, bayes_score(law))
    chance = expit(best.gate_offset)
    (first, second), row = np.asarray(law.components.mean), np.array([1.0, -1.0])
    corner = (row @ second - best.intercept + chance * row @ (first - second)) / (1 - 2 * chance)
    return Blocks(np.eye(2), -0.5 * (first - second), row, corner)
