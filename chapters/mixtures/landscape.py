"""The landscape of the logistic risk: two families of minimisers, a saddle, and flat directions."""

from functools import partial
from typing import NamedTuple

import jax
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.optimize import minimize
from scipy.special import expit

from chapters import UNOPTIMISED
from chapters.mixtures.gated_scores import GatedScore, bayes_score, discriminant_excess
from chapters.mixtures.labelled_heads import (
    NODES,
    Blocks,
    excess,
    head_with_constant_gate,
    head_without_gate,
    score_of,
)
from chapters.mixtures.score_derivatives import (
    Classes,
    Parameters,
    flat,
    forces,
    hessian,
    parameters_of,
    risk,
    scores_and_slopes,
    slope,
)
from chapters.mixtures.settings import classes, published_classes
from chapters.mixtures.style import PUBLISHED_MEANS
from lib.measures import GaussianMixture
from lib.random import normal

# The square of heights r and gate slopes s that is shown, and an odd number of points per side.
HALF_SIDE, POINTS = 4.0, 33
# Nodes of the one-dimensional integrals, and the steps of Newton's method.
LINE_NODES, NEWTON_STEPS = 160, 30
# Dimensions in which flat directions are counted, and tokens in which scores are compared.
DIMENSIONS, TOKENS = (2, 3), 200
# Singular values and eigenvalues below this part of the largest are zero up to rounding.
ROUNDING = 1e-9
# Lengths R of the sequence of Prop. 3.4.
LENGTHS = (1e2, 1e3)


# --- the least risk at a given gate -----------------------------------------------------------------------------------


def solve_cross() -> pd.DataFrame:
    """Return the least excess risk over w and b at given height and slope of the gate, for `published_classes`.

    The gate's slope is a multiple of w*, and so is the best w: integrals over one coordinate are exact.

    Returns:
      One row per point of a square: `height`, `gate_slope`, `excess`.
    """
    side = np.linspace(-HALF_SIDE, HALF_SIDE, POINTS)
    rows = [
        {"height": height, "gate_slope": slope, "excess": float(value)}
        for slope in side.tolist()
        for height, value in zip(side.tolist(), _least_excess(side, slope), strict=True)
    ]
    return pd.DataFrame(rows)


def _line() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return coordinates of tokens along w*, their probabilities, and their log-odds."""
    law = published_classes()
    best = bayes_score(law)
    steepest = np.asarray(best.slope)
    direction = steepest / np.linalg.norm(steepest)
    nodes = np.linspace(-9.0, 9.0, LINE_NODES)
    weights = np.exp(-(nodes**2) / 2) * (nodes[1] - nodes[0]) / np.sqrt(2 * np.pi)
    chances = np.exp(np.asarray(law.log_weights))
    places = np.concatenate([mean @ direction + nodes for mean in np.asarray(law.components.mean)])
    return places, np.outer(chances, weights).ravel(), float(best.intercept) + np.linalg.norm(steepest) * places


def _least_excess(heights: np.ndarray, gate_slope: float) -> np.ndarray:
    """Minimise the risk over the coefficients of an affine function, by Newton's method."""
    places, weights, odds = _line()
    offset = float(bayes_score(published_classes()).gate_offset)
    gates = heights[:, None] * (expit(offset + gate_slope * places) - expit(offset))
    features = np.stack([np.ones_like(places), places])
    change = np.zeros((len(heights), 2))
    for _ in range(NEWTON_STEPS):
        chance = expit(odds + gates + change @ features)
        gradient = (weights * (chance - expit(odds))) @ features.T
        curvature = np.einsum("hn,in,jn->hij", weights * chance * (1 - chance), features, features)
        step = np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        # the damped step, which converges from every start
        decrement = np.sqrt(np.sum(gradient * step, axis=1))
        change -= step / (1 + decrement)[:, None]
    miss = gates + change @ features
    divergence = np.logaddexp(0, odds + miss) - np.logaddexp(0, odds) - expit(odds) * miss
    return np.maximum(divergence, 0) @ weights


# --- critical points --------------------------------------------------------------------------------------------------


class CriticalPoint(NamedTuple):
    """The excess risk of a head, the norm of the gradient of the risk, and the eigenvalues of its Hessian."""

    name: str
    excess: float
    gradient: float
    eigenvalues: np.ndarray


def saddle() -> tuple[Blocks, Blocks]:
    """Return a saddle of the risk with v_21 = 0, and the same head with U_11 = 0.

    The score is `v_22 (2 σ(s_0 + ⟨s, x⟩) - 1)` with the best v_22 and s. The derivatives in w, b and r do not vanish;
    U_11 is chosen so that the derivative in v_21 does.
    """
    law = published_classes()
    mean, other = np.asarray(law.components.mean)

    def score_at(point):
        return Parameters(np.zeros(2), -point[2], 2 * point[2], point[:2])

    def value_and_slope(point):
        force = forces(score_at(point))
        return risk(score_at(point)), np.append(force.gate_slope, 2 * force.height - force.intercept)

    end = minimize(value_and_slope, np.array([0.5, -0.5, 1.0]), jac=True, method="BFGS", options={"gtol": 1e-12}).x
    gate_slope, corner, force = end[:2], end[2], forces(score_at(end))
    pull = force.slope / np.sum(force.slope**2)
    upper = -force.height * np.outer(pull, np.linalg.solve(law.components.cov[0], mean + other))

    def head(upper) -> Blocks:
        return Blocks(upper, 0.5 * (gate_slope - upper @ (mean - other)), np.zeros(2), corner)

    return head(upper), head(np.zeros((2, 2)))


def solve_critical_points() -> list[CriticalPoint]:
    """Return one head of each family of minimisers, a saddle, and the saddle with U_11 = 0, which is not critical."""
    law = published_classes()
    point, changed = saddle()
    heads = {
        "without gate": head_without_gate(),
        "constant gate": head_with_constant_gate(),
        "saddle": point,
        "no critical point": changed,
    }
    points = []
    for name, blocks in heads.items():
        gradient = float(np.linalg.norm(slope(flat(blocks))))
        eigenvalues = np.linalg.eigvalsh(hessian(flat(blocks)))
        points.append(CriticalPoint(name, float(excess(blocks, law)), gradient, eigenvalues))
    return points


# --- flat directions --------------------------------------------------------------------------------------------------


def _random_law(dimension: int, key: PRNGKeyArray) -> GaussianMixture:
    means_key, root_key = jr.split(key)
    root = np.asarray(normal(root_key, (dimension, dimension))) / np.sqrt(dimension)
    return classes(normal(means_key, (2, dimension)), np.eye(dimension) + root @ root.T)


def _random_minimiser(family: str, law: GaussianMixture, key: PRNGKeyArray) -> Blocks:
    """Return a head with the Bayes risk: r = 0 and s arbitrary, or s = 0 and r arbitrary."""
    best, (cov, first, second, gate_offset) = jax.tree.map(np.asarray, bayes_score(law)), Classes.of(law)
    d, difference, middle = len(first), first - second, (first + second) / 2
    row = np.asarray(normal(key, (d,)))
    if family == "without gate":
        # b = ⟨v_21, m_1⟩ - v_22 = b* and r = ⟨v_21, m_0 - m_1⟩ + 2 v_22 = 0: the middle of the means has b*
        row = row + (best.intercept - row @ middle) * middle / np.sum(middle**2)
        corner = -0.5 * row @ difference
    else:
        chance = expit(gate_offset)
        corner = (row @ second - best.intercept + chance * row @ difference) / (1 - 2 * chance)
    # U_11 Γ v_21 = w*: a random U_11, corrected along Γ v_21
    upper, pulled = np.asarray(normal(jr.fold_in(key, 1), (d, d))), cov @ row
    upper = upper + np.outer(best.slope - upper @ pulled, pulled) / np.sum(pulled**2)
    free = np.asarray(normal(jr.fold_in(key, 2), (d,))) if family == "without gate" else np.zeros(d)
    return Blocks(upper, 0.5 * (free - upper @ difference), row, corner)


def solve_flat_directions(*, key: PRNGKeyArray) -> pd.DataFrame:
    """Return the number of flat directions at random minimisers of random mixtures.

    A direction is flat if it does not change the score to first order; these directions are the kernel of the Hessian.

    Returns:
      One row per family and dimension: `family`, `dimension`, `flat`, `tangent`, the dimension of the set of minimisers
      there, and `miss`, the largest difference of the score from the log-odds.
    """
    rows = []
    for index, dimension in enumerate(DIMENSIONS):
        law = _random_law(dimension, jr.fold_in(key, index))
        tokens = 2 * np.asarray(normal(jr.fold_in(key, 100 + index), (TOKENS, dimension)))
        best = jax.tree.map(np.asarray, bayes_score(law))
        for number, family in enumerate(("without gate", "constant gate")):
            blocks = _random_minimiser(family, law, jr.fold_in(key, 200 + 10 * index + number))
            size = sum(part.size for part in blocks)
            values, slopes = scores_and_slopes(blocks, law, tokens)
            strengths = np.linalg.svd(slopes, compute_uv=False)
            rows.append(
                {
                    "family": family,
                    "dimension": dimension,
                    "flat": size - int((strengths > ROUNDING * strengths[0]).sum()),
                    # the preimage of d dimensions of (w*, b*, 0, s), or of one of (w*, b* - r σ(s_0), r, 0)
                    "tangent": size - (2 * dimension + 2) + (dimension if family == "without gate" else 1),
                    "miss": np.max(np.abs(values - tokens @ best.slope - best.intercept)),
                }
            )
    return pd.DataFrame(rows)


# --- second variation and the sequence of Prop. 3.4 -------------------------------------------------------------------


def solve_second_variation(*, key: PRNGKeyArray) -> dict[str, float]:
    """Return how far the second derivative of the score along a random direction is from two formulas.

    Returns:
      `two`: the largest relative difference with the factor 2 in the cross term of r and s; `one`: without it.
    """
    law = _random_law(2, key)
    (first, second), cov = np.asarray(law.components.mean), np.asarray(law.components.cov[0])
    difference = first - second
    keys = jr.split(jr.fold_in(key, 1), 8)
    shapes = ((2, 2), (2,), (2,), ())
    blocks = Blocks(*(np.asarray(normal(key, shape)) for key, shape in zip(keys[:4], shapes, strict=True)))
    moved = Blocks(*(np.asarray(normal(key, shape)) for key, shape in zip(keys[4:], shapes, strict=True)))
    tokens = 2 * np.asarray(normal(jr.fold_in(key, 2), (TOKENS, 2)))

    def score(time):
        return jax.vmap(score_of(jax.tree.map(lambda at, by: at + time * by, blocks, moved), law))(tokens)

    measured = np.asarray(jax.jit(jax.jacfwd(jax.jacfwd(score)))(0.0))
    of_law = Classes.of(law)
    at = parameters_of(blocks, of_law)
    gate = expit(of_law.gate_offset + tokens @ at.gate_slope)
    steepness = gate * (1 - gate)
    turned = tokens @ (2 * moved.column + moved.upper @ difference)
    higher = moved.row @ difference + 2 * moved.corner
    plain = 2 * tokens @ (moved.upper @ cov @ moved.row) + at.height * steepness * (1 - 2 * gate) * turned**2
    cross = higher * steepness * turned
    scale = np.max(np.abs(measured))
    return {
        name: float(np.max(np.abs(measured - plain - factor * cross)) / scale)
        for name, factor in (("two", 2.0), ("one", 1.0))
    }


@partial(jax.jit, compiler_options=UNOPTIMISED)
def _along_the_sequence(length: Float[Array, ""], law: GaussianMixture) -> Float[Array, ""]:
    """Return the excess of `(w* - σ'(s_0) c, b* - R σ(s_0), R, c/R)` with c = w*."""
    best = bayes_score(law)
    chance = jax.nn.sigmoid(best.gate_offset)
    score = GatedScore(
        (1 - chance * (1 - chance)) * best.slope,
        best.intercept - length * chance,
        length,
        best.slope / length,
        best.gate_offset,
    )
    return discriminant_excess(law, score, nodes=NODES)


def solve_sequence() -> dict[str, float]:
    """Return the exponents of the excess along the sequence of Prop. 3.4, for the published weights and equal ones."""

    def exponent(weight):
        law = classes(PUBLISHED_MEANS, 1.0, weight)
        first, last = (float(_along_the_sequence(length, law)) for length in LENGTHS)
        return float(np.log(last / first) / np.log(LENGTHS[1] / LENGTHS[0]))

    return {"unequal": exponent(0.6), "equal": exponent(0.5)}
