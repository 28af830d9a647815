"""Drawing of episodes and prompts, and loss and gradient of heads on infinite or finite prompts.

The gradients are made of a tilted mean and a tilted covariance of tokens: sums for a finite prompt, derivatives of the
logarithmic moment generating function for an infinite one.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from chapters import UNOPTIMISED
from chapters.trajectory_stability.prediction_tasks import Episode, Task
from chapters.trajectory_stability.problems import DIMENSION
from lib.attention import Attention
from lib.batching import in_batches

# Number of heads in one call of the program for infinite prompts, fixed so that it is compiled once per task.
TOGETHER = 8
# Options of `jax.jit` for the program that draws prompts, which XLA optimises a little.
HARDLY_OPTIMISED = {"xla_backend_optimization_level": 1}


def as_head(flat: Float[Array, " p"] | Float[np.ndarray, " p"]) -> Attention:
    """Return the head with these entries: gaps and gradients are vectors of R^p."""
    size = DIMENSION + 1
    bilinear, value = jnp.split(jnp.asarray(flat), [size**2])
    return Attention(bilinear.reshape(size, size), value.reshape(1, size))


def as_flat(params: Attention) -> Float[np.ndarray, " p"]:
    """Return the entries of a head, the inverse of `as_head`."""
    return np.concatenate([np.ravel(params.bilinear), np.ravel(params.value)])


def read_prompts(
    loss: Callable,
    lengths: tuple[int, ...],
    heads: Float[np.ndarray, "k p"],
    tokens: Float[Array, "n L e"],
    asked: tuple[Float[Array, "n e"], Float[Array, " n"]],
) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, "n k p"]]:
    """Return loss and gradient of head j on the first `lengths[j]` tokens of each prompt."""
    # one row per coordinate: sums over tokens are then products of matrices
    points, query = np.ascontiguousarray(np.swapaxes(tokens, 1, 2)), np.asarray(asked[0])
    bilinear, values = _matrices(heads)
    means, covs = [], []
    for length, matrix, value in zip(lengths, bilinear, values, strict=True):
        prompts = points[..., :length]
        scores = ((query @ matrix.T)[:, None] @ prompts)[:, 0]
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        mean = (prompts @ weights[..., None])[..., 0]
        centred = weights * (value @ prompts - (mean @ value)[:, None])
        means.append(mean)
        covs.append((prompts @ centred[..., None])[..., 0])
    losses, slopes = _losses(loss, values, np.stack(means), np.stack(covs), asked)
    return losses.T, np.swapaxes(slopes, 0, 1)


def _matrices(heads: Float[np.ndarray, "k p"]) -> tuple[Float[np.ndarray, "k e e"], Float[np.ndarray, "k e"]]:
    """Return U and v of heads with these entries."""
    size = DIMENSION + 1
    return heads[:, : size**2].reshape(-1, size, size), heads[:, size**2 :]


def _losses(
    loss: Callable,
    values: Float[np.ndarray, "k e"],
    means: Float[np.ndarray, "k n e"],
    covs: Float[np.ndarray, "k n e"],
    asked: tuple[Float[Array, "n e"], Float[Array, " n"]],
) -> tuple[Float[np.ndarray, "k n"], Float[np.ndarray, "k n p"]]:
    """Return losses and gradients from the tilted means m of tokens and from Cv, where C is their tilted covariance.

    The prediction is `ŷ = ⟨v, m⟩`, with `∂ŷ/∂v = m` and `∂ŷ/∂U = Cv xᵀ` at the query x.
    """
    query, target = map(np.asarray, asked)
    predictions = np.sum(means * values[:, None], axis=-1)
    losses, slopes = map(np.asarray, _loss_and_slope(loss, predictions, target))
    by_bilinear = covs[..., None] * query[:, None]
    gradients = np.concatenate([by_bilinear.reshape(*losses.shape, -1), means], axis=-1)
    return losses, slopes[..., None] * gradients


@partial(jax.jit, static_argnums=0)
def _loss_and_slope(loss: Callable, predictions: Float[Array, "k n"], targets: Float[Array, " n"]):
    return jnp.vectorize(jax.value_and_grad(loss))(predictions, targets)


class Programs:
    """Compiled programs of one task: episodes, their prompts, and tilted means and covariances of infinite prompts."""

    def __init__(self, task: Task, longest: int):
        def prompt(episode, key):
            return episode.measure.sample(longest, key=key)

        def moments(tilt, direction, measure):
            """Return the tilted mean, the tilted covariance times the direction, and Λ at the tilt."""
            (log_mgf, mean), (_, cov) = jax.jvp(jax.value_and_grad(measure.log_mgf), (tilt,), (direction,))
            return mean, cov, log_mgf

        each_episode = jax.vmap(moments, (0, None, 0))
        self._task = task
        self.episodes = jax.jit(jax.vmap(lambda key: task.draw(key=key)), compiler_options=UNOPTIMISED)
        self.tokens = jax.jit(jax.vmap(prompt), compiler_options=HARDLY_OPTIMISED)
        self._moments = jax.jit(jax.vmap(each_episode, (0, 0, None)), compiler_options=UNOPTIMISED)

    def read_laws(
        self, heads: Float[np.ndarray, "m p"], episodes: Episode
    ) -> tuple[Float[np.ndarray, "m n"], Float[np.ndarray, "m n p"]]:
        """Return loss and gradient of each head on the infinite prompt of each episode."""

        def read(some):
            bilinear, values = _matrices(some)
            means, covs = self._tilted(np.asarray(episodes.query) @ np.swapaxes(bilinear, 1, 2), values, episodes)
            return _losses(self._task.loss, values, means, covs, (episodes.query, episodes.target))

        return in_batches(read, heads, batch=TOGETHER)

    def covariances(self, episodes: Episode) -> Float[np.ndarray, "n e e"]:
        """Return the covariance of the tokens of each episode."""
        axes = np.eye(DIMENSION + 1)
        untilted = np.zeros((len(axes), *episodes.query.shape))
        return np.moveaxis(self._tilted(untilted, axes, episodes)[1], 0, -1)

    def _tilted(
        self, tilts: Float[np.ndarray, "k n e"], directions: Float[np.ndarray, "k e"], episodes: Episode
    ) -> tuple[Float[np.ndarray, "k n e"], Float[np.ndarray, "k n e"]]:
        """Return tilted means of the tokens of each episode, and their tilted covariances times a direction."""

        def moments(*some):
            return self._moments(*some, episodes.measure)

        mean, cov, log_mgf = in_batches(moments, tilts, directions, batch=TOGETHER)
        if not np.isfinite(log_mgf).all():
            raise ValueError("A tilt is where Λ(ξ) = log E exp⟨ξ, z⟩ is not finite, and no tilted distribution exists.")
        return mean, cov


@jax.jit
def keys_at(key: PRNGKeyArray, indices: Int[np.ndarray, " n"]) -> Key[Array, " n"]:
    """Return one key per global index, so that no result depends on batches."""
    return jax.vmap(partial(jr.fold_in, key))(indices)
