"""Errors of one finite prompt at one query, and samples of them over prompts and queries [BB26, Prop. 3.1, 3.4]."""

from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from lib.attention import Attention, attend
from lib.batching import map_batched
from lib.concentration import RadialTable
from lib.measures import Empirical, Measure, empirical, tilted_cov, tilted_mean

# One number, or a pytree of several of the same prompt and query.
Gap = Callable[[Attention, Empirical, Measure, Float[Array, " q"]], PyTree[Float[Array, "..."]]]


def output_gap(params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " q"]) -> Float[Array, ""]:
    """Return `‖T[μ̂](z) - T[μ](z)‖²`, the square error of the output.

    Args:
      params: the head.
      prompt: the finite prompt μ̂.
      measure: the distribution μ of tokens.
      query: z, shape (q,).

    Returns:
      The square error, shape ().

    Raises:
      ValueError: as `lib.attention.attend`.

    Source: [BB26, Prop. 3.1]. Transformations: jit, vmap, grad.
    """
    return jnp.sum((attend(params, prompt, query) - attend(params, measure, query)) ** 2)


def value_gap(params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " q"]) -> Float[Array, ""]:
    """Return `‖∇_V T[μ̂](z) - ∇_V T[μ](z)‖²` in the Hilbert–Schmidt norm.

    `T = V∇Λ(Uz)` is linear in V, and each of its e rows multiplies the same tilted mean: e times the square gap of the
    means.

    Args:
      params: the head.
      prompt: the finite prompt μ̂.
      measure: the distribution μ of tokens.
      query: z, shape (q,).

    Returns:
      The square error, shape ().

    Raises:
      ValueError: as `lib.measures.tilted_mean`.

    Source: [BB26, Prop. 3.4]. Transformations: jit, vmap, grad.
    """
    tilt = params.bilinear @ query
    return params.value.shape[0] * jnp.sum((tilted_mean(prompt, tilt) - tilted_mean(measure, tilt)) ** 2)


def bilinear_gap(params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " q"]) -> Float[Array, ""]:
    """Return `‖∇_U T[μ̂](z) - ∇_U T[μ](z)‖²` in the Hilbert–Schmidt norm.

    In direction dU the output moves by `V ∇²Λ(Uz) dU z`: the square gap of `V ∇²Λ`, summed over its entries, times
    `‖z‖²`.

    Args:
      params: the head.
      prompt: the finite prompt μ̂.
      measure: the distribution μ of tokens.
      query: z, shape (q,).

    Returns:
      The square error, shape ().

    Raises:
      ValueError: as `lib.measures.tilted_cov`.

    Source: [BB26, Prop. 3.4]. Transformations: jit, vmap, grad.
    """
    tilt = params.bilinear @ query
    covs = tilted_cov(prompt, tilt) - tilted_cov(measure, tilt)
    return jnp.sum((params.value @ covs) ** 2) * jnp.sum(query**2)


class ByImportance(eqx.Module):
    """A gap at a query drawn from N(0, spread² I), weighted so that its mean is that over queries N(0, I).

    Where long queries carry the mean, few of the queries of N(0, I) are that long, and the standard error, measured on
    the same few, is too small. A wider distribution draws them more often. No weight exceeds `spread**q`.

    Args:
      gap: the gap to weight.
      spread: standard deviation of the queries' coordinates, shape (), spread ≥ 1.
    """

    gap: Gap
    spread: Float[Array, ""] = eqx.field(converter=jnp.asarray)

    def __call__(
        self, params: Attention, prompt: Empirical, measure: Measure, query: Float[Array, " q"]
    ) -> PyTree[Float[Array, "..."]]:
        """Return the gap times the ratio of the densities of N(0, I) and N(0, spread² I) at the query.

        Args:
          params: the head.
          prompt: the finite prompt.
          measure: the distribution of tokens.
          query: z, shape (q,), drawn from N(0, spread² I).

        Returns:
          The weighted gap, a pytree like that of `gap`.

        Transformations: jit, vmap, grad.
        """
        log_weight = query.size * jnp.log(self.spread) - (1 - self.spread**-2) / 2 * jnp.sum(query**2)
        return jax.tree.map(lambda value: jnp.exp(log_weight) * value, self.gap(params, prompt, measure, query))


@eqx.filter_jit
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
    numbers_at_once: int = 2**18,
) -> PyTree[Float[Array, "prompts k ..."]]:
    """Return gaps of independent prompts at several lengths: the first L tokens of one long prompt, for each L.

    Rows are independent, columns are not. Each prompt has fresh queries, and its row is the mean over them, so that the
    mean over rows is unbiased for prompts and queries, and its standard error covers both. (A set of queries that all
    prompts share would leave its own error out; for a fixed set pass `queries=Empirical(set)`.) Prompt i is drawn from
    `fold_in(key, i)`, for any number of prompts. The function is jitted.

    Args:
      gap: a function of a head, a prompt, the distribution of tokens and a query, such as `output_gap`.
      params: the head.
      measure: the distribution μ of tokens.
      queries: the distribution ν of queries.
      lengths: k prompt lengths, whole numbers ≥ 1; static.
      prompts: number of prompts; static.
      key: JAX random key.
      queries_per_prompt: number of queries of each prompt; static.
      numbers_at_once: how many numbers of prompts are in memory at once, at least one prompt; batches follow one after
        the other (see `lib.map_batched`).

    Returns:
      An array of shape (prompts, k), or a pytree of such arrays if `gap` returns a pytree.

    Transformations: jit, vmap, grad.
    """

    def one_prompt(index):
        prompt_key, query_key = jr.split(jr.fold_in(key, index))
        points = empirical(measure, max(lengths), key=prompt_key).points

        def one_query(query):
            gaps = [gap(params, Empirical(points[:length]), measure, query) for length in lengths]
            return jax.tree.map(lambda *leaves: jnp.stack(leaves), *gaps)

        by_query = jax.vmap(one_query)(queries.sample(queries_per_prompt, key=query_key))
        return jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), by_query)

    size = max(lengths) * (measure.dimension + queries_per_prompt)
    return map_batched(one_prompt, jnp.arange(prompts), size=size, numbers_at_once=numbers_at_once)


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
