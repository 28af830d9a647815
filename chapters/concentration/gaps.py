"""Errors of finite prompts at their queries, and samples of them over prompts and queries [BB26, Prop. 3.1, 3.4]."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray, PyTree

from lib.attention import Attention
from lib.batching import in_batches, map_batched
from lib.concentration import RadialTable
from lib.measures import Measure, tilted_cov, tilted_mean


@dataclass(frozen=True)
class TiltedPrompt:
    """Finite prompts under tilts: mean and covariance of their tokens with the weights `exp⟨ξ, z_i⟩`.

    Attributes:
      tokens: the tokens of each prompt.
      scores: `⟨ξ, z_i⟩` for the q tilts of each prompt.
      weights: `exp⟨ξ, z_i⟩`, up to a factor for each prompt and tilt.
    """

    tokens: Float[np.ndarray, "*n L d"]
    scores: Float[np.ndarray, "*n q L"]
    weights: Float[np.ndarray, "*n q L"]

    @classmethod
    def of(cls, tokens: Float[np.ndarray, "*n L d"], tilts: Float[np.ndarray, "*n q d"]) -> "TiltedPrompt":
        """Return the prompts with these tokens, each under its own tilts."""
        scores = tilts @ np.swapaxes(tokens, -1, -2)
        return cls(tokens, scores, np.exp(scores - scores.max(axis=-1, keepdims=True)))

    def first(self, length: int) -> "TiltedPrompt":
        """Return the prompts of the first `length` tokens, under the same tilts."""
        return TiltedPrompt(self.tokens[..., :length, :], self.scores[..., :length], self.weights[..., :length])

    @cached_property
    def mean(self) -> Float[np.ndarray, "*n q d"]:
        """The tilted mean, `∇Λ(ξ)`."""
        return self._average(self.tokens)

    @cached_property
    def cov(self) -> Float[np.ndarray, "*n q d d"]:
        """The tilted covariance, `∇²Λ(ξ)`."""
        products = self.tokens[..., :, None] * self.tokens[..., None, :]
        second = self._average(products.reshape(*self.tokens.shape[:-1], -1))
        return second.reshape(*self.mean.shape, -1) - self.mean[..., :, None] * self.mean[..., None, :]

    def _average(self, values: Float[np.ndarray, "*n L m"]) -> Float[np.ndarray, "*n q m"]:
        return self.weights @ values / self.weights.sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class TiltedMeasure:
    """The distribution of tokens under the same tilts: the limit of long prompts."""

    measure: Measure
    tilts: Float[np.ndarray, "*n q d"]

    @cached_property
    def mean(self) -> Float[np.ndarray, "*n q d"]:
        """The tilted mean, `∇Λ(ξ)`."""
        return np.asarray(_tilted_means(self.measure, self.tilts))

    @cached_property
    def cov(self) -> Float[np.ndarray, "*n q d d"]:
        """The tilted covariance, `∇²Λ(ξ)`."""
        return np.asarray(_tilted_covs(self.measure, self.tilts))


@eqx.filter_jit
def _tilted_means(measure: Measure, tilts: Float[Array | np.ndarray, "*n d"]) -> Float[Array, "*n d"]:
    return jnp.vectorize(partial(tilted_mean, measure), signature="(d)->(d)")(tilts)


@eqx.filter_jit
def _tilted_covs(measure: Measure, tilts: Float[Array | np.ndarray, "*n d"]) -> Float[Array, "*n d d"]:
    return jnp.vectorize(partial(tilted_cov, measure), signature="(d)->(d,d)")(tilts)


# One number for each prompt and query, or a pytree of several.
Gap = Callable[[Attention, TiltedPrompt, TiltedMeasure, Float[np.ndarray, "*n q d"]], PyTree[Float[np.ndarray, "*n q"]]]


def output_gap(
    params: Attention, prompt: TiltedPrompt, limit: TiltedMeasure, queries: Float[np.ndarray, "*n q d"]
) -> Float[np.ndarray, "*n q"]:
    """Return `‖T[μ̂](z) - T[μ](z)‖²`, the square error of the output `T = V∇Λ(Uz)`.

    Args:
      params: the head.
      prompt: the finite prompts μ̂ under the tilts Uz.
      limit: the distribution μ of tokens under these tilts.
      queries: z, shape (..., q, d).

    Returns:
      The square errors, shape (..., q).

    Source: [BB26, Prop. 3.1].
    """
    return np.sum(((prompt.mean - limit.mean) @ params.value.T) ** 2, axis=-1)


def value_gap(
    params: Attention, prompt: TiltedPrompt, limit: TiltedMeasure, queries: Float[np.ndarray, "*n q d"]
) -> Float[np.ndarray, "*n q"]:
    """Return `‖∇_V T[μ̂](z) - ∇_V T[μ](z)‖²` in the Hilbert–Schmidt norm.

    `T = V∇Λ(Uz)` is linear in V, and each of its e rows multiplies the same tilted mean: e times the square gap of the
    means.

    Args:
      params: the head.
      prompt: the finite prompts μ̂ under the tilts Uz.
      limit: the distribution μ of tokens under these tilts.
      queries: z, shape (..., q, d).

    Returns:
      The square errors, shape (..., q).

    Source: [BB26, Prop. 3.4].
    """
    return params.value.shape[0] * np.sum((prompt.mean - limit.mean) ** 2, axis=-1)


def bilinear_gap(
    params: Attention, prompt: TiltedPrompt, limit: TiltedMeasure, queries: Float[np.ndarray, "*n q d"]
) -> Float[np.ndarray, "*n q"]:
    """Return `‖∇_U T[μ̂](z) - ∇_U T[μ](z)‖²` in the Hilbert–Schmidt norm.

    In direction dU the output moves by `V ∇²Λ(Uz) dU z`: the square gap of `V ∇²Λ`, summed over its entries, times
    `‖z‖²`.

    Args:
      params: the head.
      prompt: the finite prompts μ̂ under the tilts Uz.
      limit: the distribution μ of tokens under these tilts.
      queries: z, shape (..., q, d).

    Returns:
      The square errors, shape (..., q).

    Source: [BB26, Prop. 3.4].
    """
    return np.sum((params.value @ (prompt.cov - limit.cov)) ** 2, axis=(-1, -2)) * np.sum(queries**2, axis=-1)


@dataclass(frozen=True)
class ByImportance:
    """A gap at queries drawn from N(0, spread² I), weighted so that its mean is that over queries N(0, I).

    Where long queries carry the mean, few of the queries of N(0, I) are that long, and the standard error, measured on
    the same few, is too small. A wider distribution draws them more often. No weight exceeds `spread**d`.

    Args:
      gap: the gap to weight.
      spread: standard deviation of the queries' coordinates, spread ≥ 1.
    """

    gap: Gap
    spread: float

    def __call__(
        self, params: Attention, prompt: TiltedPrompt, limit: TiltedMeasure, queries: Float[np.ndarray, "*n q d"]
    ) -> PyTree[Float[np.ndarray, "*n q"]]:
        """Return the gap times the ratio of the densities of N(0, I) and N(0, spread² I) at the queries.

        Args:
          params: the head.
          prompt: the finite prompts under the tilts of the queries.
          limit: the distribution of tokens under these tilts.
          queries: z, shape (..., q, d), drawn from N(0, spread² I).

        Returns:
          The weighted gap, a pytree like that of `gap`.
        """
        squares = np.sum(queries**2, axis=-1)
        weight = self.spread ** queries.shape[-1] * np.exp(-(1 - self.spread**-2) / 2 * squares)
        return jax.tree.map(lambda value: weight * value, self.gap(params, prompt, limit, queries))


def sample_gaps(
    gap: Gap,
    params: Attention,
    measure: Measure,
    queries: Measure,
    lengths: Sequence[int],
    *,
    prompts: int,
    key: PRNGKeyArray,
    queries_per_prompt: int = 1,
    at_once: int = 16,
) -> PyTree[Float[np.ndarray, "prompts k ..."]]:
    """Return gaps of independent prompts at several lengths: the first L tokens of one long prompt, for each L.

    Rows are independent, columns are not. Each prompt has fresh queries, and its row is the mean over them, so that the
    mean over rows is unbiased for prompts and queries, and its standard error covers both. If all prompts shared one
    set of queries, the standard error would leave out the error of that set; for a fixed set pass
    `queries=Empirical(set)`. Prompt i is drawn from `fold_in(key, i)`, for any number of prompts.

    Args:
      gap: a function of a head, prompts, the distribution of tokens and queries, such as `output_gap`.
      params: the head.
      measure: the distribution μ of tokens.
      queries: the distribution ν of queries.
      lengths: k prompt lengths, whole numbers ≥ 1.
      prompts: number of prompts.
      key: JAX random key.
      queries_per_prompt: number of queries of each prompt.
      at_once: how many prompts are in memory at once.

    Returns:
      An array of shape (prompts, k), or a pytree of such arrays if `gap` returns a pytree.

    Transformations: none.
    """
    params = jax.tree.map(np.asarray, params)

    def gaps_of(indices):
        prompt_keys, query_keys = _keys_of_prompts(key, indices)
        drawn = np.asarray(_samples(queries, queries_per_prompt, query_keys))
        tilts = drawn @ params.bilinear.T
        prompt = TiltedPrompt.of(np.asarray(_samples(measure, max(lengths), prompt_keys)), tilts)
        limit = TiltedMeasure(measure, tilts)
        gaps = [gap(params, prompt.first(length), limit, drawn) for length in lengths]
        return jax.tree.map(lambda *by_length: np.stack([np.mean(x, axis=1) for x in by_length], axis=1), *gaps)

    return in_batches(gaps_of, np.arange(prompts), batch=at_once)


@jax.jit
def _keys_of_prompts(key: PRNGKeyArray, indices: Int[Array, " n"]) -> tuple[Key[Array, " n"], Key[Array, " n"]]:
    """Return a key for the tokens and one for the queries of each prompt."""
    keys = jax.vmap(lambda index: jr.split(jr.fold_in(key, index)))(indices)
    return keys[:, 0], keys[:, 1]


@eqx.filter_jit
def _samples(measure: Measure, size: int, keys: Key[Array, " n"]) -> Float[Array, "n size d"]:
    """Return `size` independent draws for each key."""
    return jax.vmap(lambda key: measure.sample(size, key=key))(keys)


def sample_isotropic(
    table: RadialTable,
    operator_norm: float,
    dimensions: Sequence[int],
    lengths: Sequence[int],
    *,
    prompts: int,
    key: PRNGKeyArray,
) -> Float[Array, "prompts d k"]:
    """Return samples whose mean is `RadialTable.error`, from the L scores of each prompt alone.

    They are `Σ_j mass_j ((ĝ - τ_j)² + (d - 1) Σ p²)` over the nodes of the table: exact averages over the rest of the
    tokens and over the length of the query. Prompt i, from `fold_in(key, i)`, serves all dimensions and lengths.

    Args:
      table: the nodes in τ; its lengths are not used.
      operator_norm: H.
      dimensions: the dimensions d.
      lengths: prompt lengths L, whole numbers ≥ 1.
      prompts: number of prompts.
      key: JAX random key.

    Returns:
      The samples, shape (prompts, dimensions, lengths).

    Source: derived here, see book/concentration. Transformations: none.
    """
    masses = jnp.asarray([table.mass(operator_norm, d) for d in dimensions])
    others, tau = jnp.asarray(dimensions) - 1, jnp.asarray(table.tau)

    def one_prompt(index):
        scores = jr.normal(jr.fold_in(key, index), (max(lengths),), tau.dtype)

        def at_length(length):
            weights = jax.nn.softmax(tau[:, None] * scores[:length], axis=1)
            misses, shares = (weights @ scores[:length] - tau) ** 2, jnp.sum(weights**2, axis=1)
            return masses @ misses + others * (masses @ shares)

        return jnp.stack([at_length(length) for length in lengths], axis=1)

    return map_batched(one_prompt, jnp.arange(prompts), size=max(lengths) * tau.size)
