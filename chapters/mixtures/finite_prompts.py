"""Denoise with finite prompts of random tasks: a head that is exact on infinite prompts, and it with U divided by 4."""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.mixtures.denoisers import add_noise, residual_denoising_head
from chapters.mixtures.settings import RADIUS, mixture, published_tokens
from chapters.mixtures.style import PUBLISHED_NOISE_STD, TOKEN_STD
from lib.attention import Attention, attend, fluctuation
from lib.measures import Empirical, GaussianMixture

# Tasks that are simulated at once.
BATCH = 50
# Factors of U: the denoiser has H = 1, the other head H = 1/4, so that its error is of order 1/L (H² < 1/2).
SIZES = {"denoiser": 1.0, "quarter": 0.25}
# Factors of U at which the limit of L times the square error is computed.
LIMITS = {"limit": SIZES["quarter"], "untilted": 0.0}


def draw_task(key: PRNGKeyArray) -> GaussianMixture:
    """Return two components with independent directions of the means, of one norm, and uniform weights."""
    angles, weight = jr.uniform(key, (2,)) * 2 * jnp.pi, jr.uniform(jr.fold_in(key, 1), minval=0.1, maxval=0.9)
    means = RADIUS * jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
    return mixture(means, TOKEN_STD**2, jnp.log(jnp.stack([weight, 1 - weight])))


def head_of_size(size: Float[Array, ""]) -> Attention:
    """Return the head `U = size · S⁻¹, V = ξ² S⁻¹`, which serves all tasks."""
    head = residual_denoising_head(published_tokens(), PUBLISHED_NOISE_STD)
    return Attention(size * head.bilinear, head.value)


@partial(jax.jit, static_argnames="lengths")
def _square_errors(keys: PRNGKeyArray, lengths: tuple[int, ...]):
    heads = jax.vmap(head_of_size)(jnp.array(list(SIZES.values())))
    limits = jax.vmap(head_of_size)(jnp.array(list(LIMITS.values())))

    def of_task(key) -> dict[str, Float[Array, " lengths"]]:
        task_key, query_key, prompt_key = jr.split(key, 3)
        noisy = add_noise(draw_task(task_key), PUBLISHED_NOISE_STD)
        query = noisy.sample(1, key=query_key)[0]
        tokens = noisy.sample(max(lengths), key=prompt_key)

        def square_errors(head):
            exact = attend(head, noisy, query)
            return jnp.stack([jnp.sum((attend(head, Empirical(tokens[:n]), query) - exact) ** 2) for n in lengths])

        def limit(head):
            return jnp.trace(fluctuation(head, noisy, query))[None]

        return dict(zip([*SIZES, *LIMITS], [*jax.vmap(square_errors)(heads), *jax.vmap(limit)(limits)], strict=True))

    return jax.lax.map(of_task, keys, batch_size=BATCH)


def simulate_prompts(lengths: Sequence[int], tasks: int, *, key: PRNGKeyArray) -> dict[str, pd.DataFrame]:
    """Return the square error of the output of a finite prompt for random tasks, one row per task.

    Args:
      lengths: prompt lengths L. A shorter prompt is the beginning of the longest one of its task.
      tasks: number of tasks; each has one prompt and one query.
      key: JAX random key.

    Returns:
      For each name of `SIZES` a table with one column per length. For `limit` a table with one column 0: the limit of L
      times the square error of the head `quarter`; for `untilted` that of the head with U = 0.
    """
    lengths = tuple(sorted(lengths))
    errors = _square_errors(jr.split(key, tasks), lengths)
    return {
        name: pd.DataFrame(np.asarray(values), columns=list(lengths) if name in SIZES else [0])
        for name, values in errors.items()
    }


def exponent(errors: pd.DataFrame) -> tuple[float, float]:
    """Return the slope of the logarithm of the mean error over the logarithm of the length, and its standard error.

    The standard error is that of the delta method; errors of one task at several lengths may be correlated.
    """
    logs = np.log(np.asarray(errors.columns, float))
    weights = (logs - logs.mean()) / ((logs - logs.mean()) ** 2).sum()
    means = errors.mean().to_numpy()
    influence = (errors.to_numpy() / means) @ weights
    return float(weights @ np.log(means)), float(influence.std(ddof=1) / np.sqrt(len(influence)))
