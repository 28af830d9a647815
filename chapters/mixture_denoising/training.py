"""Train one and two heads to denoise, with the published settings of [GBB26, Figure 2]."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.mixture_denoising.settings import DIMENSION, PUBLISHED_NOISE_STD, published_mixture
from lib.attention import Attention, attend
from lib.flow import sgd
from lib.mixtures import add_noise, bayes_denoiser, denoising_excess

# Published: the step size, and the norm to which gradients are clipped.
STEP_SIZE, CLIP = 2e-3, 10.0
# Not published: the batch and the standard deviation of the initial entries.
BATCH, INITIAL_STD = 64, 0.5
# Rows that are recorded, and quadrature nodes of their excess.
ROWS, NODES = 50, 48


def _denoised(weights: Float[Array, "heads 2 d d"], query: Float[Array, " d"]) -> Float[Array, " d"]:
    noisy = add_noise(published_mixture(), PUBLISHED_NOISE_STD)
    return sum(attend(Attention(bilinear, value), noisy, query) for bilinear, value in weights)


def _loss(weights: Float[Array, "heads 2 d d"], key: PRNGKeyArray) -> Float[Array, ""]:
    """Return the mean square distance to the Bayes denoiser on a fresh batch, as published."""
    law = published_mixture()
    queries = add_noise(law, PUBLISHED_NOISE_STD).sample(BATCH, key=key)
    target = partial(bayes_denoiser, law, PUBLISHED_NOISE_STD)
    return jnp.mean(jnp.sum((jax.vmap(partial(_denoised, weights))(queries) - jax.vmap(target)(queries)) ** 2, axis=1))


@partial(jax.jit, static_argnames=("heads", "steps"))
def _run(key: PRNGKeyArray, heads: int, steps: int) -> Float[Array, " rows"]:
    start = INITIAL_STD * jr.normal(key, (heads, 2, DIMENSION, DIMENSION))
    optimiser = optax.chain(optax.clip_by_global_norm(CLIP), optax.sgd(STEP_SIZE))
    path = sgd(_loss, start, optimiser=optimiser, steps=steps, every=steps // ROWS, key=jr.fold_in(key, 1))
    law = published_mixture()

    def excess(weights):
        return denoising_excess(partial(_denoised, weights), law, PUBLISHED_NOISE_STD, nodes=NODES)

    return jax.lax.map(excess, path.params)


def train_heads(steps: int, runs: int, *, key: PRNGKeyArray) -> pd.DataFrame:
    """Return the excess over the Bayes risk while one and two heads are trained, from the same random starts.

    Args:
      steps: number of steps of SGD, a multiple of `ROWS`.
      runs: number of runs for each number of heads.
      key: JAX random key.

    Returns:
      One row per number of heads, run and recorded step: `heads`, `run`, `steps`, `excess`.
    """
    recorded = np.arange(1, ROWS + 1) * (steps // ROWS)
    rows = []
    for heads in (1, 2):
        of_runs = [_run(key, heads, steps) for key in jr.split(key, runs)]
        rows += [
            {"heads": heads, "run": run, "steps": step, "excess": value}
            for run, path in enumerate(of_runs)
            for step, value in zip(recorded.tolist(), path.tolist(), strict=True)
        ]
    return pd.DataFrame(rows)
