"""Compiled programs: drawing of episodes and prompts, and loss and gradient on infinite or finite prompts.

All tasks use the same programs. The program for finite prompts does not depend on the task and is compiled once per
loss.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from chapters.trajectory_stability.prediction_tasks import Episode, Task, episode_loss, predict
from chapters.trajectory_stability.problems import DIMENSION
from lib.attention import Attention
from lib.batching import in_batches
from lib.measures import Empirical, empirical, tilted_cov

# Number of heads in one call of the program for infinite prompts, fixed so that it is compiled once per task.
TOGETHER = 8
# XLA's optimiser takes longer than all runs of these programs: most are not optimised, drawing prompts a little.
UNOPTIMISED, HARDLY_OPTIMISED = ({"xla_backend_optimization_level": level} for level in (0, 1))


def as_head(flat: Float[Array, " p"] | Float[np.ndarray, " p"]) -> Attention:
    """Return the head with these entries: gaps and gradients are vectors of R^p."""
    size = DIMENSION + 1
    bilinear, value = jnp.split(jnp.asarray(flat), [size**2])
    return Attention(bilinear.reshape(size, size), value.reshape(1, size))


def as_flat(params: Attention) -> Float[np.ndarray, " p"]:
    """Return the entries of a head, the inverse of `as_head`."""
    return np.concatenate([np.ravel(params.bilinear), np.ravel(params.value)])


@partial(jax.jit, static_argnums=(0, 1))
def read_prompts(
    loss: Callable,
    lengths: tuple[int, ...],
    heads: Float[Array, "k p"],
    tokens: Float[Array, "n L e"],
    asked: tuple[Float[Array, "n e"], Float[Array, " n"]],
) -> tuple[Float[Array, "n k"], Float[Array, "n k p"]]:
    """Return loss and gradient of head j on the first `lengths[j]` tokens of each prompt."""

    def one(points, query, target):
        def cost(flat, length):
            return loss(predict(as_head(flat), Empirical(points[:length]), query), target)

        pairs = [jax.value_and_grad(cost)(flat, length) for flat, length in zip(heads, lengths, strict=True)]
        values, slopes = zip(*pairs, strict=True)
        return jnp.stack(values), jnp.stack(slopes)

    return jax.vmap(one)(tokens, *asked)


class Programs:
    """Compiled programs of one task: episodes, their prompts and covariances, and gradients on infinite prompts."""

    def __init__(self, task: Task, longest: int):
        def prompt(episode, key):
            return empirical(episode.measure, longest, key=key).points

        def cost(flat, episode):
            return episode_loss(as_head(flat), episode.measure, task, episode)

        def covariance(episode):
            return tilted_cov(episode.measure, jnp.zeros(DIMENSION + 1))

        all_heads = jax.vmap(jax.value_and_grad(cost), (0, None))
        self.episodes = jax.jit(jax.vmap(lambda key: task.draw(key=key)), compiler_options=UNOPTIMISED)
        self.tokens = jax.jit(jax.vmap(prompt), compiler_options=HARDLY_OPTIMISED)
        self.covariances = jax.jit(jax.vmap(covariance), compiler_options=UNOPTIMISED)
        self._infinite = jax.jit(jax.vmap(all_heads, (None, 0), out_axes=1), compiler_options=UNOPTIMISED)

    def read_laws(
        self, heads: Float[np.ndarray, "m p"], episodes: Episode
    ) -> tuple[Float[np.ndarray, "m n"], Float[np.ndarray, "m n p"]]:
        """Return loss and gradient of each head on the infinite prompt of each episode."""
        return in_batches(lambda some: self._infinite(some, episodes), heads, batch=TOGETHER)


def keys_at(key: PRNGKeyArray, indices: Int[np.ndarray, " n"]) -> Key[Array, " n"]:
    """Return one key per global index, so that no result depends on batches."""
    return jax.vmap(partial(jr.fold_in, key))(indices)
