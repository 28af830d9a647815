"""Four token laws that the bound cannot tell apart: errors, simulated and exact, and the limits of L times these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray
from scipy.special import comb, factorial2

from chapters.output_concentration import exact_by_distribution
from chapters.output_concentration.error_curves import simulate_errors
from chapters.output_concentration.exact_by_distribution import ExactByLaw
from chapters.output_concentration.exact_error import ExactError
from chapters.output_concentration.experiment import DIMENSION, clusters, head
from lib.attention import fluctuation, mean_square_weight
from lib.concentration import ErrorCurve
from lib.measures import Measure, Uniform

# The share of a mixture's variance that lies within its components.
WITHIN = 0.1
# The law whose error at a fixed query has no finite mean over queries.
HEAVIEST = "Gaussian"
# Beyond what is drawn: the two lengths between which an exponent is read off an exact error.
FAR = (1e6, 1e9)
# The relative accuracy of the default radial table, as lib.concentration.isotropic_error tells it.
RADIAL_ACCURACY = 1e-6
# Half the order of the highest moment that is compared with that of a normal coordinate.
MOMENTS = 40


def token_laws(scale: float, dimension: int = DIMENSION) -> dict[str, Measure]:
    """Four products of symmetric laws of variance σ², each with the sub-Gaussian constant σ (box `four-constants`)."""
    return {
        HEAVIEST: clusters(scale, within=1.0, dimension=dimension),
        "mixture": clusters(scale, within=WITHIN, dimension=dimension),
        "uniform": Uniform(np.full(dimension, np.sqrt(3.0) * scale)),
        "Rademacher": clusters(scale, within=0.0, dimension=dimension),
    }


def errors_by_law(
    scale: float, gain: float, lengths: Sequence[int], prompts: int, *, key: PRNGKeyArray
) -> dict[str, ErrorCurve]:
    """By law: the error of simulated prompts, standard normal queries."""
    return {
        name: simulate_errors(head(gain), law, lengths, prompts, key=jr.fold_in(key, i))
        for i, (name, law) in enumerate(token_laws(scale).items())
    }


def drawn_lengths() -> Float[np.ndarray, " k"]:
    """Lengths at which the exact errors of the four laws are drawn."""
    return np.append(np.geomspace(2, 64, 9), np.geomspace(64, FAR[0], 6)[1:])


def law_lengths() -> Float[np.ndarray, " k"]:
    """All lengths at which the exact errors are needed beside those simulated."""
    return np.append(drawn_lengths(), FAR[1])


class Limits(NamedTuple):
    """Of L times the error, by law: as it is, and as it were if all tokens weighed the same."""

    weighted: Mapping[str, float]
    unweighted: Mapping[str, float]


@dataclass(frozen=True)
class LawTheory:
    """What is known of the four laws beside the simulation, by name."""

    exact: Mapping[str, ExactByLaw]
    limits: Limits
    moment_ratios: Mapping[str, float]
    """The largest ratio of an even moment of a coordinate to that of a normal coordinate of variance σ²."""
    mixture_over_centres: float
    """The same of the mixture, over a normal coordinate whose variance is that of the cluster centres."""

    def at(self, name: str, lengths: Float[np.ndarray, " k"]) -> Float[np.ndarray, " k"]:
        """The exact error of a law, at lengths among those computed."""
        exact = self.exact[name]
        return exact.errors[np.searchsorted(exact.lengths, lengths)]

    def exponent(self, name: str) -> float:
        """Of the exact error between the two lengths far out."""
        near, far = self.at(name, np.asarray(FAR))
        return float(np.log(near / far) / np.log(FAR[1] / FAR[0]))


def theory_of_laws(scale: float, gain: float, lengths: Sequence[int], gaussian: ExactError) -> LawTheory:
    """Exact errors at the lengths given, where they are drawn and far beyond; limits, and ratios of moments."""
    moments = even_moments()
    orders = np.arange(1, MOMENTS + 1)
    return LawTheory(
        exact=exact_errors(scale, gain, lengths, gaussian),
        limits=law_limits(scale, gain),
        moment_ratios={name: float(np.max(values / moments[HEAVIEST])) for name, values in moments.items()},
        mixture_over_centres=float(np.max(moments["mixture"] / (moments[HEAVIEST] * (1 - WITHIN) ** orders))),
    )


def even_moments() -> dict[str, Float[np.ndarray, " k"]]:
    """By law: the moments of orders 2, 4, …, 2·MOMENTS of a coordinate of variance 1, in closed form.

    If each is at most that of a normal coordinate, (2k - 1)!!, the law is sub-Gaussian with the constant 1: the series
    of the moment-generating function is then at most that of e^{ξ²/2}, term by term.
    """
    orders = np.arange(1, MOMENTS + 1)
    normal = factorial2(2 * orders - 1)

    def mixture(order):
        shared = np.arange(order + 1)  # half the power of the sign
        widths = np.where(shared < order, factorial2(np.maximum(2 * (order - shared) - 1, 1)), 1.0)
        return np.sum(comb(2 * order, 2 * shared) * (1 - WITHIN) ** shared * WITHIN ** (order - shared) * widths)

    return {
        HEAVIEST: normal,
        "mixture": np.asarray([mixture(order) for order in orders]),
        "uniform": 3.0**orders / (2 * orders + 1),
        "Rademacher": np.ones(MOMENTS),
    }


def exact_errors(scale: float, gain: float, lengths: Sequence[int], gaussian: ExactError) -> dict[str, ExactByLaw]:
    """By law; that of Gaussian tokens from P and Q."""
    everywhere = np.unique(np.concatenate([lengths, law_lengths()]))
    centre, width = np.sqrt(1 - WITHIN) * scale, np.sqrt(WITHIN) * scale
    rules = {
        "mixture": exact_by_distribution.clusters(centre, width),
        "uniform": exact_by_distribution.uniform(np.sqrt(3.0) * scale),
        "Rademacher": exact_by_distribution.signs(scale),
    }
    errors = scale**2 * gaussian(gain * scale, DIMENSION, everywhere)
    heaviest = {HEAVIEST: ExactByLaw(everywhere, errors, RADIAL_ACCURACY)}
    return heaviest | {name: exact_by_distribution.exact_by_law(rule, gain, everywhere) for name, rule in rules.items()}


def law_limits(scale: float, gain: float) -> Limits:
    """`lim L · E ‖T[μ̂_L] - T[μ]‖²_{L²(ν)}`: the mean of `tr fluctuation` over queries, where it is finite.

    The coordinates of token and query are independent, so with `r = e^{Λ(2ξ)-2Λ(ξ)}` of one coordinate the mean is
    `d · E[fluctuation] · E[r]^{d-1}`, each over one normal. At H² ≥ ½ Gaussian tokens have none. If all tokens weighed
    the same, r were 1.
    """
    nodes = np.linspace(-9.0, 9.0, 181)
    params, weights = head(gain, 1), jnp.asarray(np.exp(-(nodes**2) / 2) / np.sum(np.exp(-(nodes**2) / 2)))

    def limits(law):
        def one(z):
            return fluctuation(params, law, z[None])[0, 0], mean_square_weight(params, law, z[None])

        noise, ratio = jax.vmap(one)(jnp.asarray(nodes))
        right = DIMENSION * (weights @ noise) * (weights @ ratio) ** (DIMENSION - 1)
        return right, DIMENSION * (weights @ (noise / ratio))

    limits_of = eqx.filter_jit(limits)
    pairs = {name: limits_of(law) for name, law in token_laws(scale, 1).items() if name != HEAVIEST}
    return Limits(*({name: float(pair[place]) for name, pair in pairs.items()} for place in (0, 1)))
