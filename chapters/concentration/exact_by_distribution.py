"""Exact error of prompts whose tokens have two independent, symmetric coordinates, by quadrature.

With s_i = ⟨ξ, z_i⟩, g = ∇Λ(ξ) and S = Σ e^{s_i} the squared error is ‖Σ e^{s_i} (z_i - g)‖² / S², and 1/S² = ∫ u
e^{-uS} du makes its mean one integral of products of means over a single token, at any length (derived here):

E ‖T[μ̂_L](z) - T[μ](z)‖² = ∫ u (L φ^{L-1} a + L (L-1) φ^{L-2} ‖b‖²) du, φ = E e^{-u e^s}, a = E[e^{2s} ‖z' - g‖² e^{-u
e^s}], b = E[e^s (z' - g) e^{-u e^s}].

Every term is positive. The same method gives P and Q for Gaussian tokens.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp
from scipy.stats import norm

from chapters.concentration.experiment import DIMENSION

# Grid of ln u, in units of the mean of e^s: from φ^L = 1 for the longest prompt to φ^L = 0 for the shortest.
STEP = 0.4
LOGS = np.arange(-50.0, 60.0, STEP)
# How many products of a node and a token are computed at once: so many fit a processor's cache.
NUMBERS_TOGETHER = 2**15


class Rule(NamedTuple):
    """Nodes and weights for one coordinate of a token, and the trapezoidal step for one coordinate of a query."""

    nodes: Float[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]
    query_step: float


# Function from a fineness to the rule of a coordinate.
RuleOf = Callable[[float], Rule]


@dataclass(frozen=True)
class ExactErrors:
    """The error at each length, and its relative accuracy, estimated with a coarser quadrature."""

    lengths: Float[np.ndarray, " k"]
    errors: Float[np.ndarray, " k"]
    accuracy: float


def signs(scale: float) -> RuleOf:
    """Return the exact rule of a fair sign of size `scale`."""
    return lambda fineness: Rule(scale * np.asarray([-1.0, 1.0]), np.asarray([0.5, 0.5]), 0.25 / fineness)


def uniform(halfwidth: float) -> RuleOf:
    """Return Gauss–Legendre rules for a uniform coordinate."""

    def rule(fineness: float) -> Rule:
        nodes, weights = np.polynomial.legendre.leggauss(int(32 * fineness))
        return Rule(halfwidth * nodes, weights / 2, 0.45 / fineness)

    return rule


def clusters(centre: float, spread: float) -> RuleOf:
    """Return trapezoidal rules for normals around ±centre; they cover the range to which tilts by 2ξ move them."""

    def rule(fineness: float) -> Rule:
        nodes = np.arange(-centre - 7 * spread, centre + 13 * spread, 0.5 * spread / fineness)
        density = np.exp(-(((nodes - centre) / spread) ** 2) / 2) + np.exp(-(((nodes + centre) / spread) ** 2) / 2)
        return Rule(nodes, density / density.sum(), 0.45 / fineness)

    return rule


def errors_for(rule_of: RuleOf, gain: float, lengths: Float[np.ndarray, " k"]) -> ExactErrors:
    """Return the errors of the head U = uI, V = I, for standard normal queries."""
    coarse, fine = (_errors(rule_of(fineness), gain, lengths) for fineness in (0.7, 0.9))
    return ExactErrors(lengths, fine, float(np.max(np.abs(coarse / fine - 1))))


def _errors(rule: Rule, gain: float, lengths: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
    """Return the mean over queries, by a trapezoidal sum; by symmetry one eighth of the queries suffices."""
    z = rule.query_step * (np.arange(np.ceil(8.0 / rule.query_step)) + 0.5)
    weight = rule.query_step * norm.pdf(z)
    first, second = np.triu_indices(z.size)
    mass = weight[first] * weight[second] * np.where(first == second, 4, 8)
    tilts = gain * np.stack([z[first], z[second]], axis=1)[mass > 1e-13]
    tokens = np.stack(np.meshgrid(rule.nodes, rule.nodes, indexing="ij"), axis=-1).reshape(-1, DIMENSION)
    chances = np.outer(rule.weights, rule.weights).ravel()
    return mass[mass > 1e-13] @ np.stack([_error_at(tilt, tokens, chances, lengths) for tilt in tilts])


def _error_at(
    tilt: Float[np.ndarray, " d"],
    tokens: Float[np.ndarray, "n d"],
    chances: Float[np.ndarray, " n"],
    lengths: Float[np.ndarray, " k"],
) -> Float[np.ndarray, " k"]:
    """Return the errors at one tilt ξ, by a trapezoidal sum in ln u that all lengths share."""
    scores = tokens @ tilt
    scores -= logsumexp(scores, b=chances)
    growth = np.exp(scores)
    centred = tokens - (growth * chances) @ tokens

    square_centred = np.sum(centred**2, axis=1)

    def moments(u):
        terms = u[:, None] * growth
        lost = -np.expm1(-terms)
        kept = (1 - lost) * terms * chances
        return lost @ chances, (kept * terms) @ square_centred, np.sum((kept @ centred) ** 2, axis=1)

    parts = [moments(u) for u in np.array_split(np.exp(LOGS), 1 + LOGS.size * len(tokens) // NUMBERS_TOGETHER)]
    lost, square, mean_square = map(np.concatenate, zip(*parts, strict=True))
    # Below the rounding unit, the factor per token counts as that unit, so that its logarithm is finite.
    log_kept = np.log1p(-np.minimum(lost, 1 - np.finfo(float).eps))[:, None]
    one = np.exp((lengths - 1) * log_kept) * lengths
    two = np.exp((lengths - 2) * log_kept) * lengths * (lengths - 1)
    return STEP * (square @ one + mean_square @ two)
