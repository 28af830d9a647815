"""Train one and two heads to denoise, with the published settings of [GBB26, Figure 2]."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pandas as pd
from jaxtyping import Array, Float, Int, PRNGKeyArray

from chapters.mixtures.denoisers import add_noise, denoised, head_outputs
from chapters.mixtures.integrals import normal_grid
from chapters.mixtures.settings import DIMENSION, published_tokens
from chapters.mixtures.style import PUBLISHED_NOISE_STD, TOKEN_STD
from lib.attention import Attention
from lib.flow import sgd
from lib.measures import GaussianMixture

# Published: the step size, and the norm to which gradients are clipped.
STEP_SIZE, CLIP = 2e-3, 10.0
# Not published: the batch and the standard deviation of the initial entries.
BATCH, INITIAL_STD = 64, 0.5
# Weights are rounded to multiples of this, the spacing of single-precision numbers between 1/2 and 1. In one run with
# the published step size a difference of 1e-16 grew to four per cent of the excess: without this rounding the curves
# would depend on the processor.
GRID = 2.0**-24
# One head and two are trained.
MOST_HEADS = 2
# Rows that are recorded, and quadrature nodes of their excess.
ROWS, NODES = 50, 48


@cache
def _laws() -> tuple[GaussianMixture, GaussianMixture]:
    """Return the distributions of tokens and of noisy tokens with NumPy arrays, which are constants of a program."""
    with jax.ensure_compile_time_eval():
        law = published_tokens()
        return jax.tree.map(np.asarray, (law, add_noise(law, PUBLISHED_NOISE_STD)))


def _outputs(weights: Float[Array, "heads 2 d d"], queries: Float[Array, "n d"]) -> Float[Array, "n d"]:
    noisy = _laws()[1]
    return sum(head_outputs(Attention(bilinear, value), noisy, queries) for bilinear, value in weights)


def _loss(
    present: Float[Array, "heads 1 1 1"], weights: Float[Array, "heads 2 d d"], key: PRNGKeyArray
) -> Float[Array, ""]:
    """Return the mean square distance to the Bayes denoiser on a fresh batch, as published."""
    law = _laws()[0]
    component_key, noise_key = jr.split(key)
    means = jnp.asarray(law.components.mean)[jr.bernoulli(component_key, 0.5, (BATCH,)).astype(int)]
    queries = means + np.hypot(TOKEN_STD, PUBLISHED_NOISE_STD) * jr.normal(noise_key, (BATCH, DIMENSION))
    miss = _outputs(present * weights, queries) - denoised(law, PUBLISHED_NOISE_STD, queries)
    return jnp.mean(jnp.sum(miss**2, axis=1))


def _to_grid(weights: Float[Array, "..."]) -> Float[Array, "..."]:
    return GRID * jnp.round(weights / GRID)


def _onto_grid() -> optax.GradientTransformation:
    """Return the last part of an optimiser, which moves the new weights to the grid."""
    return optax.stateless(lambda step, weights: _to_grid(weights + step) - weights)


def _grid() -> tuple[Float[np.ndarray, "n d"], Float[np.ndarray, " n"]]:
    """Return noisy tokens of both components and their probabilities, at which the excess is averaged."""
    normals, weights = normal_grid(DIMENSION, NODES)
    deviations = np.hypot(TOKEN_STD, PUBLISHED_NOISE_STD) * normals
    tokens = (_laws()[0].components.mean[:, None] + deviations).reshape(-1, DIMENSION)
    return tokens, np.tile(0.5 * weights, 2)


@partial(jax.jit, static_argnums=2)
@partial(jax.vmap, in_axes=(0, 0, None))
def _runs(key: PRNGKeyArray, heads: Int[Array, ""], steps: int) -> Float[Array, " rows"]:
    """Return the excess along one run; one program trains one head and two, the second of which may be zero."""
    present = (jnp.arange(MOST_HEADS) < heads)[:, None, None, None]
    start = present * _to_grid(INITIAL_STD * jr.normal(key, (MOST_HEADS, 2, DIMENSION, DIMENSION)))
    optimiser = optax.chain(optax.clip_by_global_norm(CLIP), optax.sgd(STEP_SIZE), _onto_grid())
    loss, prompts_key = partial(_loss, present), jr.fold_in(key, 1)
    path = sgd(loss, start, optimiser=optimiser, steps=steps, every=steps // ROWS, key=prompts_key)
    tokens, probabilities = _grid()
    targets = denoised(_laws()[0], PUBLISHED_NOISE_STD, tokens)
    return jax.lax.map(
        lambda weights: probabilities @ jnp.sum((_outputs(weights, tokens) - targets) ** 2, axis=1), path.params
    )


def train_denoisers(steps: int, runs: int, *, key: PRNGKeyArray) -> pd.DataFrame:
    """Return the excess over the Bayes risk while one and two heads are trained, from the same random starts.

    Args:
      steps: number of steps of SGD, a multiple of `ROWS`.
      runs: number of runs for each number of heads.
      key: JAX random key.

    Returns:
      One row per number of heads, run and recorded step: `heads`, `run`, `steps`, `excess`.
    """
    recorded = np.arange(1, ROWS + 1) * (steps // ROWS)
    numbers = np.arange(1, MOST_HEADS + 1)
    keys, heads = jr.split(key, runs)[np.tile(np.arange(runs), MOST_HEADS)], np.repeat(numbers, runs)
    paths = np.asarray(_runs(keys, heads, steps)).reshape(MOST_HEADS, runs, ROWS)
    rows = [
        {"heads": heads, "run": run, "steps": step, "excess": value}
        for heads, of_runs in zip(numbers.tolist(), paths, strict=True)
        for run, path in enumerate(of_runs)
        for step, value in zip(recorded.tolist(), path.tolist(), strict=True)
    ]
    return pd.DataFrame(rows)
