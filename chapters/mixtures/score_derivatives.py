"""Derivatives of a head's score on labelled tokens, and of its risk on `published_classes`, in all entries of blocks.

The score `f(x) = ⟨w, x⟩ + b + r σ(s_0 + ⟨s, x⟩)` depends on the entries through (w, b, r, s), and

    ∇ risk = E (σ(f) - η) ∇f,   ∇² risk = E σ'(f) ∇f ∇fᵀ + E (σ(f) - η) ∇²f,   η = σ(log-odds).

In NumPy, because flows and searches call them thousands of times on a few thousand tokens.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from chapters.mixtures.gated_scores import bayes_score
from chapters.mixtures.integrals import normal_grid
from chapters.mixtures.labelled_heads import NODES, Blocks
from chapters.mixtures.settings import published_classes
from lib.measures import GaussianMixture

Vector = Float[np.ndarray, " d"]


class Classes(NamedTuple):
    """Covariance, means and s_0, the logarithm of the ratio of the weights, of two classes."""

    cov: Float[np.ndarray, "d d"]
    first: Vector
    second: Vector
    gate_offset: float

    @classmethod
    def of(cls, law: GaussianMixture) -> "Classes":
        """Return the numbers of a mixture."""
        first, second = np.asarray(law.components.mean)
        odds = law.log_weights[0] - law.log_weights[1]
        return cls(np.asarray(law.components.cov[0]), first, second, float(odds))


class Parameters(NamedTuple):
    """The parameters w, b, r and s of a score."""

    slope: Vector
    intercept: float
    height: float
    gate_slope: Vector


class Grid(NamedTuple):
    """Tokens of `published_classes` with their probabilities, their log-odds and the chances η of the label +1."""

    classes: Classes
    tokens: Float[np.ndarray, "d n"]
    probabilities: Float[np.ndarray, " n"]
    odds: Float[np.ndarray, " n"]
    chances: Float[np.ndarray, " n"]

    def force(self, scores: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Return the derivative of the risk in the scores, `σ(f) - η` times probabilities, without cancellation."""
        return self.probabilities * self.chances * expit(-scores) * np.expm1(scores - self.odds)


@cache
def _grid() -> Grid:
    law = published_classes()
    classes, best = Classes.of(law), bayes_score(law)
    normals, weights = normal_grid(2, NODES)
    # the covariance of `published_classes` is the identity
    tokens = np.concatenate([mean + normals for mean in (classes.first, classes.second)]).T
    probabilities = np.outer(np.exp(np.asarray(law.log_weights)), weights).ravel()
    odds = np.asarray(best.slope) @ tokens + float(best.intercept)
    return Grid(classes, tokens, probabilities, odds, expit(odds))


def flat(blocks: Blocks) -> Float[np.ndarray, " entries"]:
    """Return the entries of all blocks as a vector."""
    return np.concatenate([np.ravel(block) for block in blocks])


def blocks_of(entries: Float[np.ndarray, "*n entries"]) -> Blocks:
    """Return the blocks with these entries."""
    d = int(np.sqrt(entries.shape[-1])) - 1
    upper, column, row, corner = np.split(entries, [d * d, d * d + d, d * d + 2 * d], axis=-1)
    return Blocks(upper.reshape(*upper.shape[:-1], d, d), column, row, corner[..., 0])


def parameters_of(blocks: Blocks, classes: Classes) -> Parameters:
    """Return (w, b, r, s), as `gated_score` does."""
    upper, column, row, corner = map(np.asarray, blocks)
    difference = classes.first - classes.second
    return Parameters(
        slope=upper @ classes.cov @ row,
        intercept=float(row @ classes.second - corner),
        height=float(row @ difference + 2 * corner),
        gate_slope=2 * column + upper @ difference,
    )


def _parameter_slopes(blocks: Blocks, classes: Classes) -> Float[np.ndarray, "parameters entries"]:
    """Return the derivatives of (w, b, r, s) in all entries."""
    upper, _, row, _ = map(np.asarray, blocks)
    eye, difference = np.eye(len(row)), classes.first - classes.second
    empty, none = np.zeros((1, eye.size + len(row))), np.zeros((len(row), 1))
    return np.block(
        [
            [np.kron(eye, classes.cov @ row), 0 * eye, upper @ classes.cov, none],
            [empty, classes.second[None], -np.ones((1, 1))],
            [empty, difference[None], 2 * np.ones((1, 1))],
            [np.kron(eye, difference), 2 * eye, 0 * eye, none],
        ]
    )


def _gates(score: Parameters, classes: Classes, tokens: Float[np.ndarray, "d n"]) -> tuple[np.ndarray, np.ndarray]:
    """Return the gates of the tokens, and their scores."""
    gates = expit(classes.gate_offset + score.gate_slope @ tokens)
    return gates, score.slope @ tokens + score.intercept + score.height * gates


def _features(score: Parameters, tokens: Float[np.ndarray, "d n"], gates: Float[np.ndarray, " n"]) -> np.ndarray:
    """Return the derivatives of the scores in (w, b, r, s)."""
    steepness = score.height * gates * (1 - gates)
    return np.vstack([tokens, np.ones_like(gates), gates, steepness * tokens])


def scores_and_slopes(
    blocks: Blocks, law: GaussianMixture, tokens: Float[np.ndarray, "n d"]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n entries"]]:
    """Return the scores of the tokens, and their derivatives in all entries of the blocks."""
    classes, tokens = Classes.of(law), np.asarray(tokens).T
    score = parameters_of(blocks, classes)
    gates, scores = _gates(score, classes, tokens)
    return scores, _features(score, tokens, gates).T @ _parameter_slopes(blocks, classes)


def risk(score: Parameters) -> float:
    """Return the risk of `published_classes` above the Bayes risk."""
    grid = _grid()
    scores = _gates(score, grid.classes, grid.tokens)[1]
    divergence = np.logaddexp(0, scores) - np.logaddexp(0, grid.odds) - grid.chances * (scores - grid.odds)
    return float(grid.probabilities @ divergence)


def forces(score: Parameters) -> Parameters:
    """Return the derivatives of this risk in (w, b, r, s)."""
    grid = _grid()
    gates, scores = _gates(score, grid.classes, grid.tokens)
    force = grid.force(scores)
    bent = score.height * (grid.tokens @ (force * gates * (1 - gates)))
    return Parameters(grid.tokens @ force, float(np.sum(force)), float(gates @ force), bent)


def slope(entries: Float[np.ndarray, " entries"]) -> Float[np.ndarray, " entries"]:
    """Return the gradient of the risk of `published_classes` in all entries."""
    blocks, classes = blocks_of(np.asarray(entries)), _grid().classes
    return np.hstack(forces(parameters_of(blocks, classes))) @ _parameter_slopes(blocks, classes)


def hessian(entries: Float[np.ndarray, " entries"]) -> Float[np.ndarray, "entries entries"]:
    """Return the Hessian of the same risk."""
    grid, blocks = _grid(), blocks_of(np.asarray(entries))
    classes, tokens = grid.classes, grid.tokens
    score, slopes = parameters_of(blocks, classes), _parameter_slopes(blocks, classes)
    gates, scores = _gates(score, classes, tokens)
    features, force = _features(score, tokens, gates), grid.force(scores)
    in_parameters = features * (grid.probabilities * expit(scores) * expit(-scores)) @ features.T
    d = len(tokens)
    bend = force * gates * (1 - gates)
    in_parameters[-d:, -d:] += tokens * (score.height * bend * (1 - 2 * gates)) @ tokens.T
    in_parameters[d + 1, -d:] += tokens @ bend
    in_parameters[-d:, d + 1] += tokens @ bend
    in_entries = slopes.T @ in_parameters @ slopes
    # w is a product of U_11 and v_21
    upper, row = slice(d * d), slice(d * d + d, d * d + 2 * d)
    cross = np.kron((tokens @ force)[:, None], classes.cov)
    in_entries[upper, row] += cross
    in_entries[row, upper] += cross.T
    return in_entries
