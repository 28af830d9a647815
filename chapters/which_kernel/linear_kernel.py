"""The kernel 1 + x: a pair is debiased gradient descent divided by a random number that can be zero.

With keys ±ω, `2μω = η` and r = |x_q|, the output is `η r k₂/(1 - X)`, where k₂ is the covariance of scores and labels
in the prompt, and `X = ω² r² ḡ²` with the mean ḡ ~ N(0, 1/L) of the standardised scores, independent of k₂. So the
error has a closed form up to one integral over X, which diverges at X = 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import gammaln, kve

from lib.icl import LinearRegression
from lib.random import named_keys
from lib.statistics import standard_error

# Distances |1 - X| on a logarithmic grid: the largest that is left out, and the smallest that is computed.
LARGEST_CUT, SMALLEST_CUT = 0.5, 1e-24
NODES, STEPS = 200, 6000
# Points of an exact curve per decade of n.
PER_DECADE = 4
BATCH = 1000
# Of the simulated prompts one in n is left out, for these n; at least `BEYOND` prompts are left out.
FRACTIONS = (10, 30, 100, 300)
BEYOND = 300


@dataclass(frozen=True)
class CutErrors:
    """Mean square error at one length when one in n prompts is left out: exact, and simulated where it can be."""

    length: int
    prompts: Float[np.ndarray, " n"]
    exact: Float[np.ndarray, " n"]
    debiased: float
    simulated_prompts: Float[np.ndarray, " points"]
    simulated: Float[np.ndarray, " points"]
    std_error: Float[np.ndarray, " points"]
    exact_there: Float[np.ndarray, " points"]


@dataclass(frozen=True)
class CutError:
    """The exact error as a function of the number n of prompts of which one is left out."""

    cuts: Float[np.ndarray, " steps"]
    left_out: Float[np.ndarray, " steps"]
    errors: Float[np.ndarray, " steps"]

    def cut(self, prompts: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Return δ: prompts with |1 - X| ≤ δ are left out. It is at most one half."""
        return np.exp(np.interp(-np.log(prompts), np.log(self.left_out), np.log(self.cuts)))

    def at(self, prompts: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Return the error of the remaining prompts."""
        return np.exp(np.interp(np.log(self.cut(prompts)), np.log(self.cuts), np.log(self.errors)))


def _density(x: Float[np.ndarray, "..."], power: int, dimension: int, key: float, length: int):
    """Return the density of √X = ω r |ḡ| at x, weighted by r^power and averaged over queries, by Bessel functions."""
    order = (dimension + power - 1) / 2
    z = x * length**0.5 / key
    log_norm = (dimension / 2 - 1) * np.log(2) + gammaln(dimension / 2)
    # z^order K_order(z) is finite at z = 0
    bessel = np.exp(order * np.log(np.maximum(z, 1e-300)) - z - log_norm) * kve(order, np.maximum(z, 1e-300))
    return np.sqrt(2 * length / np.pi) / key * bessel


def exact_error(task: LinearRegression, key: float, length: int) -> CutError:
    """Return the error of a pair with the kernel 1 + x and the best step of debiased gradient descent.

    Args:
      task: isotropic regression.
      key: ω.
      length: the number L of tokens.
    """
    d, power, noise = task.dimension, float(task.task_scale) ** 2, float(task.noise_std) ** 2
    step = length / (length + d + noise / power)
    slope = 2 * step * power * (length - 1) / length
    square = step**2 * (power * (length**2 - 1) + (power * (d - 1) + noise) * (length - 1)) / length**2

    def parts(x, change):
        """Densities of the mass and of the error at x = √X, `change` = 1 - X."""
        mass, weighted = (_density(x, power, d, key, length) for power in (0, 2))
        return np.stack([mass, noise * mass + weighted * (power - slope / change + square / change**2)])

    unit, weight = np.polynomial.legendre.leggauss(NODES)
    inside, outside = (1 - LARGEST_CUT) ** 0.5, (1 + LARGEST_CUT) ** 0.5
    total = np.zeros(2)
    for low, high in ((0.0, inside), (outside, outside + 60 * key / length**0.5)):
        x = low + (high - low) * (unit + 1) / 2
        total += parts(x, 1 - x**2) @ weight * (high - low) / 2
    cuts = np.geomspace(LARGEST_CUT, SMALLEST_CUT, STEPS)
    rows = np.zeros((2, STEPS))
    for change in (cuts, -cuts):
        x = np.sqrt(1 - change)
        rows += parts(x, change) * cuts / (2 * x)  # dx = dX/(2x), dX = δ d(ln δ)
    width = np.log(cuts[0] / cuts[1])
    beyond = np.concatenate([np.zeros((2, 1)), np.cumsum(0.5 * width * (rows[:, 1:] + rows[:, :-1]), axis=1)], axis=1)
    kept = total[:, None] + beyond
    # the mass that is left out, from the smallest cut upwards, so that no digits are lost
    mass = rows[0]
    left_out = mass[-1] + np.concatenate([np.cumsum(0.5 * width * (mass[1:] + mass[:-1])[::-1])[::-1], [0.0]])
    return CutError(cuts[::-1], left_out[::-1], (kept[1] / kept[0])[::-1])


def _squares(prompts, key: float, value: float) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return the squared errors of the pair on prompts, and the distances |1 - X|."""
    scores = key * np.vecdot(prompts.tokens[..., :-1], prompts.queries[:, None, :-1])
    labels, (length, total) = prompts.tokens[..., -1], (scores.shape[1], scores.sum(axis=1))
    plain, weighed = labels.sum(axis=1), np.vecdot(scores, labels)
    output = value * ((plain + weighed) / (length + total) - (plain - weighed) / (length - total))
    return (output - prompts.targets) ** 2, np.abs((length + total) * (length - total)) / length**2


def simulate_cut_errors(
    task: LinearRegression, lengths: Sequence[int], key: float, prompts: int, decades: int, *, seed: int
) -> list[CutErrors]:
    """Return exact and simulated errors of pairs with the kernel 1 + x, at each length.

    Args:
      task: isotropic regression.
      lengths: prompt lengths L.
      key: ω, shared by all lengths.
      prompts: simulated prompts per length.
      decades: the exact curves end at n = 10^decades, of which one prompt is left out.
      seed: the seed of the prompts; each length has a separate random key.
    """
    keys = named_keys(seed, *(f"cut {length}" for length in lengths))
    return [_cut_errors(task, length, key, (prompts, decades), keys[f"cut {length}"]) for length in lengths]


def _cut_errors(task: LinearRegression, length: int, key: float, counts: tuple[int, int], random_key) -> CutErrors:
    prompts, decades = counts
    exact = exact_error(task, key, length)
    d, ratio = task.dimension, float(task.noise_std / task.task_scale) ** 2
    value = length / (length + d + ratio) / (2 * key)

    batches = (task.draw(length, BATCH, key=one) for one in jax.random.split(random_key, -(-prompts // BATCH)))
    squares, distances = np.concatenate([_squares(drawn, key, value) for drawn in batches], axis=1)
    fractions = np.array([n for n in FRACTIONS if n * BEYOND <= prompts], float)
    kept = [squares[distances > cut] for cut in exact.cut(fractions)]
    n = np.geomspace(10, 10.0**decades, PER_DECADE * (decades - 1) + 1)
    power, noise = float(task.task_scale) ** 2, float(task.noise_std) ** 2
    return CutErrors(
        length,
        n,
        exact.at(n),
        power * d + noise - power * d * (length - 1) / (length + d + ratio),
        fractions,
        np.array([each.mean() for each in kept]),
        np.array([standard_error(each) for each in kept]),
        exact.at(fractions),
    )
