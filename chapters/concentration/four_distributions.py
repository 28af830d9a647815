"""Four distributions of tokens with the same bound: simulated and exact errors, and limits of L times the errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray
from scipy.special import comb, factorial2
from scipy.stats import norm

from chapters.concentration import exact_by_distribution
from chapters.concentration.error_curve import ErrorCurve
from chapters.concentration.error_curves import simulate_errors
from chapters.concentration.exact_by_distribution import ExactErrors, Rule, RuleOf
from chapters.concentration.exact_error import ExactError
from chapters.concentration.experiment import DIMENSION, clusters, head
from lib.measures import Measure, Uniform

# Fraction of the variance of the mixture that is within its components.
WITHIN = 0.1
# The distribution whose fluctuation at a fixed query has no finite mean over queries.
HEAVIEST = "Gaussian"
# The two lengths between which the exponent of an exact error is computed.
FAR = (1e6, 1e9)
# Relative accuracy of the default radial table, see `RadialTable.error`.
RADIAL_ACCURACY = 1e-6
# Half the order of the highest moment that is compared with the moment of a normal coordinate.
MOMENTS = 40


def token_distributions(scale: float, dimension: int = DIMENSION) -> dict[str, Measure]:
    """Return four distributions with variance σ² and sub-Gaussian constant σ (box `four-constants`)."""
    return {
        HEAVIEST: clusters(scale, within=1.0, dimension=dimension),
        "mixture": clusters(scale, within=WITHIN, dimension=dimension),
        "uniform": Uniform(np.full(dimension, np.sqrt(3.0) * scale)),
        "Rademacher": clusters(scale, within=0.0, dimension=dimension),
    }


def simulate_errors_by_distribution(
    scale: float, gain: float, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> dict[str, ErrorCurve]:
    """Return the error of simulated prompts for each distribution, for standard normal queries."""
    return {
        name: simulate_errors(head(gain), tokens, lengths, prompts, key=jr.fold_in(key, i))
        for i, (name, tokens) in enumerate(token_distributions(scale).items())
    }


def drawn_lengths() -> Float[np.ndarray, " k"]:
    """Return the lengths at which the exact errors are drawn."""
    return np.append(np.geomspace(2, 64, 9), np.geomspace(64, FAR[0], 6)[1:])


def exact_lengths() -> Float[np.ndarray, " k"]:
    """Return the lengths at which the exact errors are needed, without the simulated ones."""
    return np.append(drawn_lengths(), FAR[1])


class Limits(NamedTuple):
    """Limits of L times the error for each distribution: the true one, and the one for equal weights of all tokens."""

    weighted: Mapping[str, float]
    unweighted: Mapping[str, float]


@dataclass(frozen=True)
class ExactTheory:
    """Exact results on the four distributions, by name."""

    exact: Mapping[str, ExactErrors]
    limits: Limits
    moment_ratios: Mapping[str, float]
    """The largest ratio of an even moment of a coordinate to the moment of a normal coordinate of variance σ²."""
    mixture_over_centres: float
    """The largest ratio for the mixture, if the normal coordinate has the variance of the cluster centres."""

    def at(self, name: str, lengths: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """Return the exact error of a distribution at computed lengths."""
        exact = self.exact[name]
        return exact.errors[np.searchsorted(exact.lengths, lengths)]

    def exponent(self, name: str) -> float:
        """Return the exponent of the exact error between the two lengths `FAR`."""
        near, far = self.at(name, np.asarray(FAR))
        return float(np.log(near / far) / np.log(FAR[1] / FAR[0]))


def solve_errors_by_distribution(
    scale: float, gain: float, lengths: Sequence[int], gaussian: ExactError
) -> ExactTheory:
    """Return exact errors at the given, the drawn and very large lengths, their limits, and ratios of moments."""
    moments = even_moments()
    orders = np.arange(1, MOMENTS + 1)
    return ExactTheory(
        exact=exact_errors(scale, gain, lengths, gaussian),
        limits=exact_limits(scale, gain),
        moment_ratios={name: float(np.max(values / moments[HEAVIEST])) for name, values in moments.items()},
        mixture_over_centres=float(np.max(moments["mixture"] / (moments[HEAVIEST] * (1 - WITHIN) ** orders))),
    )


def even_moments() -> dict[str, Float[np.ndarray, " k"]]:
    """Return the moments of orders 2, 4, …, 2·MOMENTS of a coordinate of variance 1, in closed form.

    If each is at most the moment (2k - 1)!! of a normal coordinate, the distribution is sub-Gaussian with the constant
    1: term by term, the series of its moment-generating function is then at most the series of e^{ξ²/2}.
    """
    orders = np.arange(1, MOMENTS + 1)
    normal = factorial2(2 * orders - 1)

    def mixture(order):
        shared = np.arange(order + 1)  # half of the power of the sign
        widths = np.where(shared < order, factorial2(np.maximum(2 * (order - shared) - 1, 1)), 1.0)
        return np.sum(comb(2 * order, 2 * shared) * (1 - WITHIN) ** shared * WITHIN ** (order - shared) * widths)

    return {
        HEAVIEST: normal,
        "mixture": np.asarray([mixture(order) for order in orders]),
        "uniform": 3.0**orders / (2 * orders + 1),
        "Rademacher": np.ones(MOMENTS),
    }


def coordinate_rules(scale: float) -> dict[str, RuleOf]:
    """Return quadrature rules for one coordinate of the token, for each distribution except the Gaussian."""
    return {
        "mixture": exact_by_distribution.clusters(np.sqrt(1 - WITHIN) * scale, np.sqrt(WITHIN) * scale),
        "uniform": exact_by_distribution.uniform(np.sqrt(3.0) * scale),
        "Rademacher": exact_by_distribution.signs(scale),
    }


def exact_errors(scale: float, gain: float, lengths: Sequence[int], gaussian: ExactError) -> dict[str, ExactErrors]:
    """Return the exact errors of each distribution; for Gaussian tokens they come from P and Q."""
    lengths = np.unique(np.concatenate([lengths, exact_lengths()]))
    errors = scale**2 * gaussian(gain * scale, DIMENSION, lengths)
    heaviest = {HEAVIEST: ExactErrors(lengths, errors, RADIAL_ACCURACY)}
    rules = coordinate_rules(scale)
    return heaviest | {name: exact_by_distribution.errors_for(rule, gain, lengths) for name, rule in rules.items()}


def exact_limits(scale: float, gain: float) -> Limits:
    """Return `lim L · E ‖T[μ̂_L] - T[μ]‖²_{L²(ν)}`, the mean of `tr fluctuation` over queries, where it is finite.

    The coordinates of token and query are independent. With `r = e^{Λ(2ξ)-2Λ(ξ)}` for one coordinate, the mean is
    `d · E[fluctuation] · E[r]^{d-1}`, each over one normal variable. For H² ≥ ½ Gaussian tokens have no limit. If all
    tokens had the same weight, r would be 1.
    """
    z = 0.1 * (np.arange(90) + 0.5)  # by symmetry positive queries suffice
    density = norm.pdf(z) / np.sum(norm.pdf(z))

    def limits_of(rule: Rule) -> tuple[float, float]:
        tilted = np.exp(np.outer(gain * z, rule.nodes))
        tilted /= (tilted @ rule.weights)[:, None]
        away = rule.nodes - (tilted @ (rule.weights * rule.nodes))[:, None]
        noise, ratio = (tilted**2 * away**2) @ rule.weights, tilted**2 @ rule.weights
        weighted = DIMENSION * (density @ noise) * (density @ ratio) ** (DIMENSION - 1)
        return float(weighted), float(DIMENSION * (density @ (noise / ratio)))

    pairs = {name: limits_of(rule_of(1.0)) for name, rule_of in coordinate_rules(scale).items()}
    return Limits(*({name: pair[index] for name, pair in pairs.items()} for index in (0, 1)))
