"""Iterate the Bayes denoiser: components are kept apart or merge, depending on their distance."""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray

from chapters import UNOPTIMISED
from chapters.mixtures.denoisers import bayes_denoiser, denoiser_fixed_point, iterate_denoiser
from chapters.mixtures.settings import DIMENSION, mixture
from chapters.mixtures.style import SHOWN_STEPS, STEPS
from lib.measures import GaussianMixture
from lib.random import normal

# Starts of each iteration, and their standard deviation in units of half the distance of the components.
STARTS, SPREAD = 20, 2.0
# Between these distances λ the iteration is too slow for `STEPS` steps.
SLOW = (0.95, 1.05)
# Distances whose convergence is shown step by step; at 1 the iteration is slowest.
RATES = (0.7, 0.998, 1.0, 1.5)
# The midpoint of the components.
MIDDLE = np.array([0.4, -0.3])

# Compiled once for all distances.
fixed_point = jax.jit(denoiser_fixed_point)


def noisy_components(separation: float, token_std: float = 0.0):
    """Return a mixture and a noise level at which the components are `2 · separation` standard deviations apart.

    The standard deviation `√(γ² + ξ²)` of noisy tokens is 1.
    """
    offset = separation * np.array([0.6, 0.8])
    return mixture(MIDDLE + np.array([[1.0], [-1.0]]) * offset, token_std**2), np.sqrt(1 - token_std**2), offset


@partial(jax.jit, static_argnames="steps")
def _positions(separation: float, starts: Float[Array, "n d"], steps: int) -> Float[Array, "n steps_and_one"]:
    """Return the coordinate u of all iterates, `z = c + u δ`, from each start."""
    law, noise_std, offset = noisy_components(separation)
    paths = jax.vmap(lambda start: iterate_denoiser(law, noise_std, start, steps))(starts)
    return (paths - MIDDLE) @ offset / (offset @ offset)


def simulate_ends(separations: Sequence[float], *, key: PRNGKeyArray) -> pd.DataFrame:
    """Return |u| of the iterates from random starts after each of `SHOWN_STEPS` and after `STEPS`.

    Returns:
      One row per distance, start and number of steps: `separation`, `start`, `steps`, `position`, and `root`, the
      largest root of u = tanh(λ² u).
    """
    rows = []
    for index, separation in enumerate(sorted(separations)):
        starts = MIDDLE + SPREAD * separation * normal(jr.fold_in(key, index), (STARTS, DIMENSION))
        positions = np.abs(np.asarray(_positions(separation, starts, STEPS)))
        root = float(fixed_point(separation))
        rows += [
            {"separation": separation, "start": start, "steps": steps, "position": path[steps], "root": root}
            for start, path in enumerate(positions)
            for steps in (*SHOWN_STEPS, STEPS)
        ]
    return pd.DataFrame(rows)


def simulate_convergence() -> pd.DataFrame:
    """Return the distance to the root at each step, from the component mean, for the distances `RATES`."""
    steps = np.unique(np.round(np.geomspace(1, STEPS, 40)).astype(int))
    rows = []
    for separation in RATES:
        starts = np.tile(MIDDLE + separation * np.array([0.6, 0.8]), (STARTS, 1))  # as many as above: one program
        path = np.asarray(_positions(separation, starts, STEPS))[0]
        root = float(fixed_point(separation))
        rows += [
            {"separation": separation, "steps": n, "distance": abs(path[n] - root), "root": root}
            for n in steps.tolist()
        ]
    return pd.DataFrame(rows)


def slope_at_the_middle(separation: float, token_std: float) -> float:
    """Return the derivative of the Bayes denoiser at the midpoint, along the difference of the components."""
    law, noise_std, offset = noisy_components(separation, token_std)
    direction = offset / np.linalg.norm(offset)
    return float(np.asarray(_moved(law, noise_std, direction)) @ direction)


@partial(jax.jit, compiler_options=UNOPTIMISED)
def _moved(law: GaussianMixture, noise_std: float, direction: Float[Array, " d"]) -> Float[Array, " d"]:
    return jax.jvp(partial(bayes_denoiser, law, noise_std), (jnp.asarray(MIDDLE),), (direction,))[1]


def solve_slopes() -> dict[str, float]:
    """Return the slope at the midpoint if the means are `2√(γ² + ξ²)` apart, and if they are 2ξ apart."""
    token_std = 0.6
    return {
        "both": slope_at_the_middle(1.0, token_std),
        "noise only": slope_at_the_middle(float(np.sqrt(1 - token_std**2)), token_std),
    }
