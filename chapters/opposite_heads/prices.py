"""The cost of the even part of a head's output, exactly and as its mean square on simulated prompts."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.opposite_heads.exact_risks import pair_risk
from lib.icl import LinearRegression
from lib.icl.heads import best_values
from lib.random import named_keys

KEYS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
# Prompts per batch: such a batch fits a cache.
BATCH = 500


@dataclass(frozen=True)
class Prices:
    """Cost of the even part by key at one length: exact, for long prompts, and the squares of simulated even parts."""

    length: int
    keys: Float[np.ndarray, " keys"]
    exact: Float[np.ndarray, " keys"]
    long_prompt: Float[np.ndarray, " keys"]
    squares: Float[np.ndarray, "prompts keys"]


def _even_parts(
    prompts, keys: Float[np.ndarray, " keys"], values: Float[np.ndarray, " keys"]
) -> Float[np.ndarray, "prompts keys"]:
    """Return (f(x_q) + f(-x_q))/2 for the heads with scores key ⟨x_l, x_q⟩ and values value·y_l."""
    scores = np.vecdot(prompts.tokens[..., :-1], prompts.queries[:, None, :-1])
    labels = prompts.tokens[..., -1]

    def output(factors):
        return np.vecdot(factors, labels) / factors.sum(axis=1)

    factors = (np.exp(key * scores) for key in keys)
    return np.stack([output(each) + output(1 / each) for each in factors], axis=1) * values / 2


def simulate_prices(task: LinearRegression, lengths: Sequence[int], prompts: int, *, seed: int) -> list[Prices]:
    """Return the cost of the even part of one head with its best value, at each length and key.

    Args:
      task: isotropic regression.
      lengths: prompt lengths L.
      prompts: simulated prompts per length.
      seed: the seed of the prompts; each length has a separate random key.
    """
    keys = named_keys(seed, *map(str, lengths))
    return [_prices(task, length, prompts, keys[str(length)]) for length in lengths]


def exact_price(task: LinearRegression, key: float, length: int) -> tuple[float, float]:
    """Return the best value of one head and the cost of its even part: what the pair with half the value gains."""
    log_length = np.log(length)
    [value], risk = best_values(task, np.array([key]), log_length)
    return float(value), float(2 * (risk - pair_risk(task, key, float(value) / 2, log_length)))


def long_prompt_coefficient(
    task: LinearRegression, omega: Float[Array, " h"], mu: Float[Array, " h"]
) -> Float[Array, ""]:
    """Return the limit of `L (R_L - R_∞)` of fixed heads (ω, μ), `R_∞ = ½ (τ_w² d (1 - μ·ω)² + s²)`.

    `½ Σ_hk μ_h μ_k K(ω_h ω_k) + τ_w² d (1 - μ·ω) Σ_h μ_h ω_h (1 - 2ω_h²)^{-d/2 - 1}` with the covariance
    `K(t) = (τ_w² d + s²)(1 - 2t)^{-d/2} + τ_w² t d (1 - 2t)^{-d/2 - 1}`: infinite if some `ω_h² ≥ ½`. Derived here.
    """
    dimension, power = task.dimension, task.task_scale**2
    products = jnp.where(omega[:, None] * omega < 0.5, omega[:, None] * omega, 0.0)
    left = 1 - 2 * products
    covariance = left ** (-dimension / 2) * (
        power * dimension + task.noise_std**2 + power * dimension * products / left
    )
    bias = (1 - mu @ omega) * jnp.sum(mu * omega * jnp.diagonal(left) ** (-dimension / 2 - 1))
    return jnp.where(jnp.all(omega**2 < 0.5), 0.5 * mu @ covariance @ mu + power * dimension * bias, jnp.inf)


@jax.jit
def _long_prompt_price(task: LinearRegression, key: Float[Array, ""], value: Float[Array, ""]) -> Float[Array, ""]:
    """Return the limit of L times the cost, at a fixed value."""
    pair = jnp.stack([key, -key]), jnp.stack([value, -value]) / 2
    return 2 * (long_prompt_coefficient(task, key[None], value[None]) - long_prompt_coefficient(task, *pair))


def _prices(task: LinearRegression, length: int, prompts: int, key: PRNGKeyArray) -> Prices:
    found = [exact_price(task, omega, length) for omega in KEYS]
    values, exact = np.array(found).T
    long_prompt = np.array(jax.vmap(_long_prompt_price, (None, 0, 0))(task, jnp.array(KEYS), values)) / length
    batches = (task.draw(length, BATCH, key=one) for one in jax.random.split(key, -(-prompts // BATCH)))
    squares = np.concatenate([_even_parts(drawn, np.array(KEYS), values) ** 2 for drawn in batches])[:prompts]
    return Prices(length, np.array(KEYS), exact, long_prompt, squares)
