"""Denoise with finite prompts of random tasks: a head that is exact on infinite prompts, and it with U divided by 4."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray, UInt

from chapters import UNOPTIMISED
from chapters.mixtures.denoisers import add_noise, residual_denoising_head
from chapters.mixtures.settings import RADIUS, mixture, published_tokens
from chapters.mixtures.style import PUBLISHED_NOISE_STD, TOKEN_STD
from lib.attention import Attention, attend, fluctuation
from lib.batching import in_batches
from lib.measures import GaussianMixture

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


def head_of_size(size: float | Float[Array, ""]) -> Attention:
    """Return the head `U = size · S⁻¹, V = ξ² S⁻¹`, which serves all tasks."""
    with jax.ensure_compile_time_eval():
        head = residual_denoising_head(published_tokens(), PUBLISHED_NOISE_STD)
    return Attention(size * head.bilinear, head.value)


@partial(jax.jit, static_argnums=1)
@partial(jax.vmap, in_axes=(0, None))
def _draw(words: UInt[Array, " w"], length: int) -> tuple[GaussianMixture, Float[Array, " d"], Float[Array, "n d"]]:
    """Return the noisy tokens of a task: their distribution, a query and the longest prompt."""
    task_key, query_key, prompt_key = jr.split(jr.wrap_key_data(words), 3)
    noisy = add_noise(draw_task(task_key), PUBLISHED_NOISE_STD)
    return noisy, noisy.sample(1, key=query_key)[0], noisy.sample(length, key=prompt_key)


@partial(jax.jit, compiler_options=UNOPTIMISED)
@jax.vmap
def _exact(
    noisy: GaussianMixture, query: Float[Array, " d"]
) -> tuple[Float[Array, "sizes d"], Float[Array, " limits"]]:
    """Return the outputs of the infinite prompt, and the limits of L times the square error."""
    outputs = jax.vmap(lambda size: attend(head_of_size(size), noisy, query))
    limits = jax.vmap(lambda size: jnp.trace(fluctuation(head_of_size(size), noisy, query)))
    return outputs(jnp.array(list(SIZES.values()))), limits(jnp.array(list(LIMITS.values())))


def _outputs(
    head: Attention, tokens: Float[np.ndarray, "n L d"], queries: Float[np.ndarray, "n d"], lengths: Sequence[int]
) -> Float[np.ndarray, "n lengths d"]:
    """Return the outputs of beginnings of the prompts; each token's weight is computed once."""
    scores = (tokens @ (queries @ head.bilinear.T)[..., None])[..., 0]
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    parts = [slice(*ends) for ends in pairwise((0, *lengths))]
    sums = np.stack([(weights[:, None, part] @ tokens[:, part])[:, 0] for part in parts], axis=1)
    totals = np.stack([weights[:, part].sum(axis=1) for part in parts], axis=1)
    return (np.cumsum(sums, axis=1) / np.cumsum(totals, axis=1)[..., None]) @ head.value.T


def _square_errors(lengths: Sequence[int], words: UInt[np.ndarray, "n w"]) -> dict[str, Float[np.ndarray, "n _"]]:
    """Return the columns of `simulate_prompts` for some tasks."""
    noisy, queries, tokens = _draw(words, max(lengths))
    exact, limits = map(np.asarray, _exact(noisy, queries))
    errors = {}
    for index, (name, size) in enumerate(SIZES.items()):
        head = jax.tree.map(np.asarray, head_of_size(size))
        outputs = _outputs(head, np.asarray(tokens), np.asarray(queries), lengths)
        errors[name] = np.sum((outputs - exact[:, index, None]) ** 2, axis=-1)
    return errors | {name: limits[:, [index]] for index, name in enumerate(LIMITS)}


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
    lengths = sorted(lengths)
    words = np.asarray(jr.key_data(jr.split(key, tasks)))
    errors = in_batches(partial(_square_errors, lengths), words, batch=BATCH)
    return {name: pd.DataFrame(values, columns=lengths if name in SIZES else [0]) for name, values in errors.items()}


def exponent(errors: pd.DataFrame) -> tuple[float, float]:
    """Return the slope of the logarithm of the mean error over the logarithm of the length, and its standard error.

    The standard error is that of the delta method; errors of one task at several lengths may be correlated.
    """
    logs = np.log(np.asarray(errors.columns, float))
    weights = (logs - logs.mean()) / ((logs - logs.mean()) ** 2).sum()
    means = errors.mean().to_numpy()
    influence = (errors.to_numpy() / means) @ weights
    return float(weights @ np.log(means)), float(influence.std(ddof=1) / np.sqrt(len(influence)))
