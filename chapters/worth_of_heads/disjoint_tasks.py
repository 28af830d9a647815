"""Several regression tasks on disjoint covariates in the limit of long prompts: the least error of H heads."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.optimize import minimize

from lib.icl import best_in_the_valley
from lib.random import normal

# Spread of the keys at the starts of the searches, relative to D^{-1/2}.
START = 0.5


@dataclass(frozen=True)
class Staircase:
    """Least errors, times L, by number of heads.

    Attributes:
      heads: H = 1, …, I + 1.
      found: the least error that the searches found.
      reached: the error that H heads reach, by the formula.
      bound: the proved lower bound, the error of min(H, I) linear heads.
      allocated: the error of one head for each of the I tasks.
    """

    tasks: int
    heads: Float[np.ndarray, " heads"]
    found: Float[np.ndarray, " heads"]
    reached: Float[np.ndarray, " heads"]
    bound: Float[np.ndarray, " heads"]
    allocated: float


def several_tasks_law(
    dimensions: tuple[int, ...],
    omega: Float[Array | np.ndarray, "h i"],
    mu: Float[Array | np.ndarray, "h i"],
    *,
    task_scale: float = 1.0,
    noise_std: float = 0.0,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return (R_∞, c) of H heads on I regressions on disjoint covariates: the total risk is about `R_∞ + c/L`.

    Head h has scores `x_lᵀ A_h x_q`, `A_h = Σ_j ω_hj P_j` with P_j the projector on task j's covariates, and answers
    task i with `μ_hi y_i`. `R_∞ = ½ Σ_i τ_w² d_i (1 - Σ_h μ_hi ω_hi)²`, and with Π over all tasks j
    `c = ½ Σ_ihk μ_hi μ_ki Π_j (1 - 2ω_hj ω_kj)^{-d_j/2} [d_i τ_w² + s² + τ_w² d_i ω_hi ω_ki/(1 - 2ω_hi ω_ki)]`: half
    mean squares, without the noise of the queries' labels. Exact in the limit for heads without bias,
    `Σ_h μ_hi ω_hi = 1`; c is infinite if some product `ω_hj ω_kj ≥ ½`. Derived here.
    """
    sizes, omega, mu = jnp.asarray(dimensions, float), jnp.asarray(omega), jnp.asarray(mu)
    products = omega[:, None] * omega[None]
    finite = products < 0.5
    left = 1 - 2 * jnp.where(finite, products, 0.0)
    growth = jnp.exp(-jnp.sum(sizes / 2 * jnp.log(left), axis=-1))
    power = task_scale**2 * sizes
    terms = growth[..., None] * (power + noise_std**2 + power * products / left)
    variance = jnp.einsum("hi,ki,hki->", mu, mu, terms)
    bias = jnp.sum(power * (1 - jnp.sum(mu * omega, axis=0)) ** 2)
    return 0.5 * bias, jnp.where(jnp.all(finite), 0.5 * variance, jnp.inf)


def linear_heads(total: int, heads: int) -> float:
    """Return D(D/N + 1), the least error of N linear heads, times L, where N is at most the number of tasks."""
    return total * (total / heads + 1)


def allocated_heads(tasks: int, dimension: int) -> float:
    """Return the error of one head for each of I tasks of dimension δ, times L."""
    return tasks * best_in_the_valley(dimension).limit


def softmax_heads(tasks: int, dimension: int, heads: int) -> float:
    """Return the error that H softmax heads reach, times L: D(D/(H - 1) + 1), or the price of one head for H = 1."""
    total = tasks * dimension
    if heads == 1:
        return best_in_the_valley(total).limit
    return linear_heads(total, min(heads - 1, tasks))


def best_error(
    dimension: int, omega: Float[Array, "heads tasks"], used: Float[Array, " heads"] | np.ndarray
) -> Float[Array, ""]:
    """Return the error, times L, of heads `Σ_j ω_hj P_j` with the best values among those without bias.

    The error is quadratic in the values of each task, with a matrix K_i that `several_tasks_law` implies, and its least
    value at `μ_i·ω_i = 1` is `1/(ω_i·K_i⁻¹ω_i)`. Heads with `used` 0 are left out; heads with 1 count.
    """
    heads, tasks = omega.shape
    keys = omega * jnp.asarray(used)[:, None]

    def least(task: Float[Array, ""]) -> Float[Array, ""]:
        def error(mu):
            values = jnp.zeros((heads, tasks)).at[:, task].set(mu)
            return several_tasks_law((dimension,) * tasks, keys, values)[1]

        covariance = jax.hessian(error)(jnp.zeros(heads))
        covariance = jnp.where(jnp.outer(used, used) > 0, covariance, jnp.eye(heads))
        return 1 / (keys[:, task] @ jnp.linalg.solve(covariance, keys[:, task]))

    return jnp.sum(jax.lax.map(least, jnp.arange(tasks)))


def _objective(tasks: int, dimension: int) -> Callable[[np.ndarray, int], tuple[float, np.ndarray]]:
    """Return the logarithm of `best_error` and its gradient as a function of flat keys, compiled once for all H."""
    most = tasks + 1

    @jax.jit
    def compiled(omega, used):
        return jax.value_and_grad(lambda omega: jnp.log(best_error(dimension, omega, used)))(omega)

    def evaluate(flat: np.ndarray, heads: int) -> tuple[float, np.ndarray]:
        omega = np.zeros((most, tasks))
        omega[:heads] = flat.reshape(heads, tasks)
        value, slope = compiled(omega, (np.arange(most) < heads).astype(float))
        if not np.isfinite(value):  # a line search may leave the domain |ω_hj ω_kj| < ½
            return 1e3, np.zeros_like(flat)
        return float(value), np.asarray(slope)[:heads].ravel()

    return evaluate


def solve_staircase(tasks: int, dimension: int, searches: int, *, key: PRNGKeyArray) -> Staircase:
    """Return the least errors of H = 1, …, I + 1 heads, found by searches from random keys and by formulas."""
    evaluate, heads = _objective(tasks, dimension), range(1, tasks + 2)
    spread = START * (tasks * dimension) ** -0.5

    def least(h: int) -> float:
        starts = spread * np.asarray(normal(jr.fold_in(key, h), (searches, h * tasks)))
        return math.exp(min(minimize(evaluate, start, (h,), jac=True, method="BFGS").fun for start in starts))

    return Staircase(
        tasks,
        np.array(heads, float),
        np.array([least(h) for h in heads]),
        np.array([softmax_heads(tasks, dimension, h) for h in heads]),
        np.array([linear_heads(tasks * dimension, min(h, tasks)) for h in heads]),
        allocated_heads(tasks, dimension),
    )
