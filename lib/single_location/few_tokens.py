"""Prompts of a few tokens by brute force: all their scores, on a lattice; any hint, any weights.

A hint is a weight `g(ε, χ*)` [D26]: the hidden token ε uniform, the scores χ* standard normal, and their joint law
multiplied by g. Laplace's identity (`moments`) knows only the hints that leave tokens independent of each other; a
lattice knows all, for up to three tokens.
"""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize_scalar

from lib._checks import require_count, require_float64
from lib.single_location.activations import Activation, optimal_risk

# Where scores end, in standard deviations.
EDGE = 8.0
# The chance of a row of scores that a search leaves out, and how many rows it keeps or adds at once.
UNLIKELY, BLOCK = 1e-13, 2**13
# The flattest and the steepest heads that are looked at, and how many between.
FLATTEST, STEEPEST, SLOPES = 1e-5, 30.0, 13


class ScoreLattice(eqx.Module):
    """Scores of L tokens in decreasing order, and the chances that standard normal ones are these, in any order.

    A trapezoid: averages of functions that are analytic in a strip of width a about each axis are wrong by
    `e^{-2πa/step}`. `highest` is where scores end on the right; a hint that shifts them by s needs `EDGE + s`.

    With the default step, averages over the posterior of a hint of strength ν ≤ 10 (spiked) or ν ≤ 4 (max) and over
    weights of slopes up to 4 have an absolute error below 1e-9 if `highest` is at least `EDGE + s`; the step must
    shrink in proportion for larger slopes.
    """

    scores: Float[Array, "n L"]
    chances: Float[Array, " n"]

    def __init__(self, length: int, *, step: float = 0.1, highest: float = EDGE):
        length = require_count("ScoreLattice", "length", length, "an empty prompt defines no probability measure.")
        axis = np.arange(-EDGE, highest + step / 2, step)
        decreasing = np.ones((axis.size,) * length, bool)
        for previous, this in itertools.pairwise(np.ogrid[(slice(axis.size),) * length]):
            decreasing &= this <= previous
        nodes = np.asarray(np.nonzero(decreasing))
        orders, alike = math.factorial(length), 1.0
        for previous, this in itertools.pairwise(nodes):
            alike = np.where(this == previous, alike + 1.0, 1.0)
            orders = orders / alike
        density = np.exp(-0.5 * axis**2) * step / np.sqrt(2.0 * np.pi)
        self.scores = jnp.asarray(axis[nodes.T])
        self.chances = jnp.asarray(orders * np.prod(density[nodes], axis=0))


class Prompts(eqx.Module):
    """Prompts of a few tokens with a hint: their scores, their chances, and the posterior of the hidden token."""

    scores: Float[Array, "n L"]
    chances: Float[Array, " n"]
    posterior: Float[Array, "n L"]

    @classmethod
    def of(cls, lattice: ScoreLattice, log_hint: Float[Array, "n L"]) -> "Prompts":
        """By `log g(l, χ*)` for every token l and every row of scores."""
        return cls(lattice.scores, *_hinted(lattice.chances, log_hint))

    @eqx.filter_jit
    def bayes_risk(self) -> Float[Array, ""]:
        """Return `1 - E Σ p²`, p the posterior; accuracy as `ScoreLattice`, in absolute terms."""
        return 1.0 - self.chances @ jnp.sum(self.posterior**2, axis=1)

    def likely(self) -> "Prompts":
        """Without rows of a chance below `UNLIKELY`, which are most; as many as fill blocks, for few compilations."""
        kept = np.flatnonzero(np.asarray(self.chances) > UNLIKELY)
        # what fills the last block once more has no chance
        rows = np.append(kept, np.zeros(-kept.size % BLOCK, kept.dtype))
        scores, chances, posterior = (np.asarray(leaf)[rows] for leaf in (self.scores, self.chances, self.posterior))
        chances[kept.size :] = 0.0
        return Prompts(*map(jnp.asarray, (scores, chances, posterior)))

    def averages(self, activation: Activation, slope: float | Float[Array, ""]) -> Float[Array, "2"]:
        """`E s_ε` and `E Σ s²` of the weights that `activation` gives the scores `slope · χ*`."""
        return _averages(self, activation, slope)


@jax.jit
def _hinted(
    chances: Float[Array, " n"], log_hint: Float[Array, "n L"]
) -> tuple[Float[Array, " n"], Float[Array, "n L"]]:
    return chances * jnp.mean(jnp.exp(log_hint), axis=1), jax.nn.softmax(log_hint, axis=1)


@jax.jit
def spiked_hint(scores: Float[Array, "n L"], snr: float | Float[Array, ""]) -> Float[Array, "n L"]:
    """`log g = √ν χ_l - ν/2`: the hidden token's score is shifted by √ν [D26]."""
    return jnp.sqrt(snr) * scores - 0.5 * snr


@jax.jit
def max_hint(scores: Float[Array, "n L"], snr: float | Float[Array, ""]) -> Float[Array, "n L"]:
    """`g = L softmax(νχ*)_l`: tokens are what they were, and the largest score is the likeliest to be meant [D26]."""
    return jax.nn.log_softmax(snr * scores, axis=1) + jnp.log(scores.shape[1])


@jax.jit
def shared_hint(
    scores: Float[Array, "n L"], snr: float | Float[Array, ""], share: float | Float[Array, ""]
) -> Float[Array, "n L"]:
    """Spiked, with scores that have a `share` ρ in common: χ* is N(√ν e_l, (1 - ρ)I + ρ11ᵀ). Ours."""
    length = scores.shape[1]
    log_det = (length - 1) * jnp.log1p(-share) + jnp.log1p((length - 1) * share)

    def square(centred):  # of Σ^{-1/2} centred, by the inverse of a multiple of I plus one of 11ᵀ
        total = jnp.sum(centred, axis=-1)
        return (jnp.sum(centred**2, axis=-1) - share * total**2 / (1.0 + (length - 1) * share)) / (1.0 - share)

    centred = scores[:, None, :] - jnp.sqrt(snr) * jnp.eye(length)
    return -0.5 * (square(centred) + log_det) + 0.5 * jnp.sum(scores**2, axis=1, keepdims=True)


@jax.jit
def narrow_hint(scores: Float[Array, "n L"], width: float | Float[Array, ""]) -> Float[Array, "n L"]:
    """`g = N(χ_l; 0, width²)/N(χ_l; 0, 1)`, width < 1: the hidden token is told by a score near zero. Ours."""
    return -0.5 * scores**2 * (1.0 / width**2 - 1.0) - jnp.log(width)


def best_slope(activation: Activation, coarse: list[Prompts]) -> float:
    """The slope c at which a head `k = c k*`, v along v* and as long as is best, errs least.

    On prompts that are of any of these kinds with equal chances. To about 1e-4 of itself, so that the risk there is the
    least one to about 1e-8; of several valleys the one that a lattice of slopes finds lowest.
    """
    require_float64("best_slope", coarse[0].scores)
    likely = [kind.likely() for kind in coarse]

    def risk(log_slope: float) -> float:
        return float(mixed_risk(activation, np.exp(log_slope), likely))

    slopes = np.linspace(np.log(FLATTEST), np.log(STEEPEST), SLOPES)
    lowest = int(np.argmin([risk(slope) for slope in slopes]))
    around = slopes[max(lowest - 1, 0)], slopes[min(lowest + 1, slopes.size - 1)]
    found = minimize_scalar(risk, bounds=around, method="bounded", options={"xatol": 1e-5})
    return np.exp(found.x)  # pyright: ignore[reportAttributeAccessIssue]


@jax.jit
def mixed_risk(activation: Activation, slope: float | Float[Array, ""], kinds: list[Prompts]) -> Float[Array, ""]:
    """The risk of one head on prompts that are of any of these kinds with equal chances, its v as long as is best."""
    hidden, power = jnp.mean(jnp.stack([kind.averages(activation, slope) for kind in kinds]), axis=0)
    return optimal_risk(hidden, power)


@jax.jit
def _averages(prompts: Prompts, activation: Activation, slope) -> Float[Array, "2"]:
    weights = activation.weights(slope * prompts.scores)
    hidden, power = jnp.sum(prompts.posterior * weights, axis=1), jnp.sum(weights**2, axis=1)
    return jnp.stack([prompts.chances @ hidden, prompts.chances @ power])
