"""The price of one head, exactly and as the mean square of the even part of its output on simulated prompts."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib.icl import LinearRegression
from lib.icl.many_heads import best_values, heads_risk, long_prompt_coefficient

KEYS = (0.1, 0.2, 0.3, 0.4, 0.5)
# Prompts per batch: such a batch fits a cache.
BATCH = 500


@dataclass(frozen=True)
class Prices:
    """Price of one head by key at one length: exact, for long prompts, and the squares of simulated even parts."""

    length: int
    keys: Float[np.ndarray, " keys"]
    exact: Float[np.ndarray, " keys"]
    long_prompt: Float[np.ndarray, " keys"]
    squares: Float[np.ndarray, "prompts keys"]


def _even_part(tokens: Float[Array, "length d_1"], query: Float[Array, " d_1"], key, value) -> Float[Array, ""]:
    """Return (f(x_q) + f(-x_q))/2 for the head with scores key ⟨x_l, x_q⟩ and values value·y_l."""
    scores = key * tokens[:, :-1] @ query[:-1]
    weights = jax.nn.softmax(scores) + jax.nn.softmax(-scores)
    return value * weights @ tokens[:, -1] / 2


def simulate_prices(task: LinearRegression, lengths: Sequence[int], prompts: int, *, keys) -> list[Prices]:
    """Return the price of one head with its best value, at each length and key.

    Args:
      task: isotropic regression.
      lengths: prompt lengths L.
      prompts: simulated prompts per length.
      keys: one random key per length, by length.
    """
    return [_prices(task, length, prompts, keys[str(length)]) for length in lengths]


def _prices(task: LinearRegression, length: int, prompts: int, key: PRNGKeyArray) -> Prices:
    log_length = jnp.log(float(length))
    values = jnp.stack([best_values(task, jnp.array([omega]), log_length)[0][0] for omega in KEYS])
    exact, long_prompt = [], []
    for omega, value in zip(KEYS, values, strict=True):
        one = jnp.array([omega]), jnp.array([value])
        pair = jnp.array([omega, -omega]), jnp.array([value, -value]) / 2
        exact.append(2 * float(heads_risk(task, *one, log_length) - heads_risk(task, *pair, log_length)))
        difference = long_prompt_coefficient(task, *one) - long_prompt_coefficient(task, *pair)
        long_prompt.append(2 * float(difference) / length)

    @jax.jit
    def batch(key):
        drawn = task.draw(length, BATCH, key=key)
        heads = jax.vmap(_even_part, in_axes=(None, None, 0, 0))
        return jax.vmap(heads, in_axes=(0, 0, None, None))(drawn.tokens, drawn.queries, jnp.array(KEYS), values) ** 2

    batches = jax.random.split(key, -(-prompts // BATCH))
    squares = np.concatenate([np.asarray(batch(one)) for one in batches])[:prompts]
    return Prices(length, np.array(KEYS), np.array(exact), np.array(long_prompt), squares)
