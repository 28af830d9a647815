"""Four token laws that the bound cannot tell apart: their errors, and what L times the error tends to."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import PRNGKeyArray

from chapters.output_concentration.error_curves import simulate_errors
from chapters.output_concentration.scene import DIMENSION, clusters, head, isotropic
from lib.attention import fluctuation, mean_square_weight
from lib.concentration import ErrorCurve
from lib.measures import Measure, Uniform

# The share of a mixture's variance that lies within its components.
WITHIN = 0.1
# The law whose error at a fixed query has no finite mean over queries.
HEAVIEST = "Gaussian"


def token_laws(scale: float, dimension: int = DIMENSION) -> dict[str, Measure]:
    """Four products of symmetric laws of variance σ², each σ-sub-Gaussian and with no smaller constant."""
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
        name: simulate_errors(head(gain), law, isotropic(DIMENSION), lengths, prompts, key=jr.fold_in(key, i))
        for i, (name, law) in enumerate(token_laws(scale).items())
    }


def law_limits(scale: float, gain: float) -> dict[str, float]:
    """`lim L · E ‖T[μ̂_L] - T[μ]‖²_{L²(ν)}`: the mean of `tr fluctuation` over queries, where it is finite.

    The coordinates of token and query are independent, so with `r = e^{Λ(2ξ)-2Λ(ξ)}` of one coordinate the mean is
    `d · E[fluctuation] · E[r]^{d-1}`, each over one normal. At H² ≥ ½ Gaussian tokens have none.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(96)
    params, weights = head(gain, 1), jnp.asarray(weights / weights.sum())

    def limit(law):
        def one(z):
            return fluctuation(params, law, z[None])[0, 0], mean_square_weight(params, law, z[None])

        noise, ratio = jax.vmap(one)(jnp.asarray(nodes))
        return DIMENSION * (weights @ noise) * (weights @ ratio) ** (DIMENSION - 1)

    laws = {name: law for name, law in token_laws(scale, 1).items() if name != HEAVIEST}
    limits = jax.jit(lambda: {name: limit(law) for name, law in laws.items()})()
    return {name: float(value) for name, value in limits.items()}
