"""Train one and two heads to denoise, with the published settings of [GBB26, Figure 2]."""

from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.mixtures.denoisers import add_noise, denoised, head_outputs
from chapters.mixtures.integrals import normal_grid
from chapters.mixtures.settings import DIMENSION, published_tokens
from chapters.mixtures.style import PUBLISHED_NOISE_STD, TOKEN_STD
from lib.attention import Attention
from lib.flow import sgd

# Published: the step size, and the norm to which gradients are clipped.
STEP_SIZE, CLIP = 2e-3, 10.0
# Not published: the batch and the standard deviation of the initial entries.
BATCH, INITIAL_STD = 64, 0.5
# Weights are rounded to multiples of this, the spacing of single-precision numbers between 1/2 and 1. In one run with
# the published step size a difference of 1e-16 grew to four per cent of the excess: without this rounding the curves
# would depend on the processor.
GRID = 2.0**-24
# Rows that are recorded, and quadrature nodes of their excess.
ROWS, NODES = 50, 48


def _outputs(weights: Float[Array, "heads 2 d d"], queries: Float[Array, "n d"]) -> Float[Array, "n d"]:
    noisy = add_noise(published_tokens(), PUBLISHED_NOISE_STD)
    return sum(head_outputs(Attention(bilinear, value), noisy, queries) for bilinear, value in weights)


def _loss(weights: Float[Array, "heads 2 d d"], key: PRNGKeyArray) -> Float[Array, ""]:
    """Return the mean square distance to the Bayes denoiser on a fresh batch, as published."""
    law = published_tokens()
    component_key, noise_key = jr.split(key)
    means = law.components.mean[jr.bernoulli(component_key, 0.5, (BATCH,)).astype(int)]
    queries = means + np.hypot(TOKEN_STD, PUBLISHED_NOISE_STD) * jr.normal(noise_key, (BATCH, DIMENSION))
    miss = _outputs(weights, queries) - denoised(law, PUBLISHED_NOISE_STD, queries)
    return jnp.mean(jnp.sum(miss**2, axis=1))


def _to_grid(weights: Float[Array, "..."]) -> Float[Array, "..."]:
    return GRID * jnp.round(weights / GRID)


def _onto_grid() -> optax.GradientTransformation:
    """Return the last part of an optimiser, which moves the new weights to the grid."""
    return optax.stateless(lambda step, weights: _to_grid(weights + step) - weights)


def _grid() -> tuple[Float[Array, "n d"], Float[np.ndarray, " n"]]:
    """Return noisy tokens of both components and their probabilities, at which the excess is averaged."""
    normals, weights = normal_grid(DIMENSION, NODES)
    deviations = np.hypot(TOKEN_STD, PUBLISHED_NOISE_STD) * normals
    tokens = (published_tokens().components.mean[:, None] + deviations).reshape(-1, DIMENSION)
    return tokens, np.tile(0.5 * weights, 2)


@partial(jax.jit, static_argnames=("heads", "steps"))
@partial(jax.vmap, in_axes=(0, None, None))
def _runs(key: PRNGKeyArray, heads: int, steps: int) -> Float[Array, " rows"]:
    start = _to_grid(INITIAL_STD * jr.normal(key, (heads, 2, DIMENSION, DIMENSION)))
    optimiser = optax.chain(optax.clip_by_global_norm(CLIP), optax.sgd(STEP_SIZE), _onto_grid())
    path = sgd(_loss, start, optimiser=optimiser, steps=steps, every=steps // ROWS, key=jr.fold_in(key, 1))
    tokens, probabilities = _grid()
    targets = denoised(published_tokens(), PUBLISHED_NOISE_STD, tokens)
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
    rows = []
    for heads in (1, 2):
        of_runs = np.asarray(_runs(jr.split(key, runs), heads, steps))
        rows += [
            {"heads": heads, "run": run, "steps": step, "excess": value}
            for run, path in enumerate(of_runs)
            for step, value in zip(recorded.tolist(), path.tolist(), strict=True)
        ]
    return pd.DataFrame(rows)
