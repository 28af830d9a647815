"""The price of one head, exactly and as the mean square of the even part of its output on simulated prompts."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib.icl import LinearRegression
from lib.icl.many_heads import best_values, heads_risk, long_prompt_coefficient
from lib.random import named_keys

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


def simulate_prices(task: LinearRegression, lengths: Sequence[int], prompts: int, *, seed: int) -> list[Prices]:
    """Return the price of one head with its best value, at each length and key.

    Args:
      task: isotropic regression.
      lengths: prompt lengths L.
      prompts: simulated prompts per length.
      seed: the seed of the prompts; each length has a random key of its own.
    """
    keys = named_keys(seed, *map(str, lengths))
    return [_prices(task, length, prompts, keys[str(length)]) for length in lengths]


@jax.jit
def _exact_price(task: LinearRegression, key: Float[Array, ""], log_length: Float[Array, ""]) -> Float[Array, " 3"]:
    """Return the best value of one head, its price, and L times the price in the form for long prompts."""
    alone, both = key[None], jnp.stack([key, -key])
    value = best_values(task, alone, log_length)[0]
    halves = jnp.concatenate([value, -value]) / 2
    price = heads_risk(task, alone, value, log_length) - heads_risk(task, both, halves, log_length)
    coefficient = long_prompt_coefficient(task, alone, value) - long_prompt_coefficient(task, both, halves)
    return jnp.stack([value[0], 2 * price, 2 * coefficient])


def _prices(task: LinearRegression, length: int, prompts: int, key: PRNGKeyArray) -> Prices:
    log_length = jnp.log(float(length))
    found = np.stack([_exact_price(task, jnp.asarray(omega), log_length) for omega in KEYS])
    values, exact, coefficients = jnp.asarray(found[:, 0]), found[:, 1], found[:, 2]

    @jax.jit
    def batch(key):
        drawn = task.draw(length, BATCH, key=key)
        heads = jax.vmap(_even_part, in_axes=(None, None, 0, 0))
        return jax.vmap(heads, in_axes=(0, 0, None, None))(drawn.tokens, drawn.queries, jnp.array(KEYS), values) ** 2

    batches = jax.random.split(key, -(-prompts // BATCH))
    squares = np.concatenate([np.asarray(batch(one)) for one in batches])[:prompts]
    return Prices(length, np.array(KEYS), exact, coefficients / length, squares)
