"""Heads with other kernels, with other matrices and with centred weights, which tests compare with those of `lib`."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lib.finite_prompt import score_statistics
from lib.icl import LinearRegression, heads_risk
from lib.icl.heads import _isotropic, _lengths
from lib.pairs import _DEFAULT, _HALVINGS, _log_phi, _trapezoid, _window
from lib.partition import _crossing

_KERNEL_SIZE, _KERNEL_RADII = (170, 701), 24
_MATRIX_SIZE = (150, 281, 121)  # levels, common scores, remaining scores


def _power(task):
    """The variance of a prompt's label."""
    return task.task_scale**2 * task.dimension + task.noise_std**2


def centred_heads_risk(
    task: LinearRegression,
    omega,
    mu,
    log_length,
):
    """Return the risk of heads from whose softmax weights 1/L is subtracted: values $μ_h Σ_l (p_l - 1/L) y_l$.

    It is `heads_risk - ½ (Σ_h μ_h)² (τ_w² d + s²)/L`: C, G̃, P and Q lose 1/L each, and E ĝ does not change.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      omega: keys, shape (H,), as in `heads_risk`.
      mu: values, shape (H,).
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 330.

    Returns:
      The risk, shape (): half the mean square, label noise included. NaN outside the domain of `heads_risk`.
    """
    average = _power(task) * jnp.exp(-jnp.asarray(log_length)) * jnp.sum(jnp.asarray(mu)) ** 2
    return heads_risk(task, omega, mu, log_length) - 0.5 * average


class KernelPair(NamedTuple):
    """Statistics of two heads with weights `p_l(a) = f(a g_l)/Σ_m f(a g_m)`.

    Attributes:
      participation: $𝔼 Σ_l p_l(a) p_l(b)$, shape ().
      product: E ĝ(a) ĝ(b), shape ().
      means: E ĝ(a) and E ĝ(b), shape (2,).
      total: $𝔼 Σ_{lm} p_l(a) p_m(b)$, shape (), which is 1 where the quadrature is exact.
    """

    participation: object
    product: object
    means: object
    total: object


def kernel_pair(log_kernel: Callable, a, b, log_length) -> KernelPair:
    """Return E Σ p(a) p(b), E ĝ(a) ĝ(b) and E ĝ of heads whose weights are a positive kernel f of their scores.

    Args:
      log_kernel: the function log f, elementwise in JAX; -inf at isolated zeros is allowed. `lambda x: x` is a softmax,
        `lambda x: 2 * jnp.log(jnp.abs(1 + x / 2))` its square Taylor polynomial.
      a: tilt of the first head, of either sign, shape (), |a| ≤ 6.
      b: tilt of the second head, of either sign, shape (), |b| ≤ 6.
      log_length: natural logarithm of the prompt length, shape (), ln 10 ≤ log_length ≤ 20.

    Returns:
      A `KernelPair`. `total - 1` is a necessary check of the quadrature: below 1e-9 for kernels without zeros. A kernel
      with a zero of order two has tails `e^{-sL/2}`, hence the lower bound on the length.
    """
    a, b, log_length = map(jnp.asarray, (a, b, log_length))
    others, length = jnp.expm1(log_length), jnp.exp(log_length)
    edge = jnp.sqrt(2 * log_length) + 9.0
    g, g_step = _trapezoid((-edge, edge), _KERNEL_SIZE[1])
    normal = g_step / math.sqrt(2 * math.pi) * jnp.exp(-(g**2) / 2)
    log_factors = jnp.stack([log_kernel(tilt * g) for tilt in (a, b)])

    def sizes(s, log_factor):
        return jnp.exp(jnp.minimum(s[:, None] + log_factor, 6.5))

    def alive(s):
        lost = jnp.sum(-jnp.expm1(-sizes(s, log_factors)) * normal, axis=1)
        return others * _log_phi(lost) > -40.0 - log_length

    bottom = -log_length - jax.nn.logsumexp(log_factors + jnp.log(normal), axis=1) - 33.0
    top = _crossing(alive, bottom, jnp.full(2, 60.0), halvings=_HALVINGS)
    ends = jax.lax.stop_gradient((bottom, top))

    def factors(k):
        s, step = _trapezoid((ends[0][k], ends[1][k]), _KERNEL_SIZE[0])
        size = sizes(s, log_factors[k])
        return step, -jnp.expm1(-size), jnp.exp(-size), size * jnp.exp(-size)

    (s_step, lost, kept, one), (t_step, lost_b, kept_b, one_b) = factors(0), factors(1)
    log_phi = _log_phi((lost @ normal)[:, None] + (kept * normal) @ lost_b.T)
    single = s_step * t_step * length * jnp.exp(others * log_phi)
    double = s_step * t_step * length * others * jnp.exp((others - 1) * log_phi)

    def mean(left, right, weight):
        return (left * (weight * normal)) @ right.T

    unit = jnp.ones_like(g)
    participation = jnp.sum(single * mean(one, one_b, unit))
    total = participation + jnp.sum(double * mean(one, kept_b, unit) * mean(kept, one_b, unit))
    product = jnp.sum(single * mean(one, one_b, g**2) + double * mean(one, kept_b, g) * mean(kept, one_b, g))
    means = [
        step * jnp.sum(length * (each @ (g * normal)) * jnp.exp(others * _log_phi(gone @ normal)))
        for step, each, gone in ((s_step, one, lost), (t_step, one_b, lost_b))
    ]
    return KernelPair(participation, product, jnp.stack(means), total)


@partial(jax.jit, static_argnums=1)
def kernel_best_values(task: LinearRegression, log_kernel: Callable, omega, log_length):
    """Return the best values of heads with kernel f, scores `ω_h ⟨x_l, x_q⟩` and values `μ_h y_l`, and their risk.

    `2R = τ_w² d + s² - mᵀK⁻¹m` with `m_h = τ_w² E r ĝ(ω_h r)` and `K_hk = E [τ_w² ĝĝ + (τ_w² (d - 1) + s²) Σ p p]`, in
    this plain form: digits are lost in proportion to L, and where keys nearly coincide.

    Args:
      task: a `LinearRegression` with cov = I and query_cov = I.
      log_kernel: the function log f, as in `kernel_pair`; hashable.
      omega: keys, shape (H,), all different.
      log_length: natural logarithm of the prompt length, shape (), as in `kernel_pair`.

    Returns:
      (μ of shape (H,), risk of shape ()): half the mean square, label noise included.
    """
    task, omega, log_length = _isotropic("kernel_best_values", task, omega, log_length)
    dimension, heads = task.dimension, omega.shape[0]
    radius, weight = _lengths(dimension, jnp.zeros(()), jnp.zeros(()), _KERNEL_RADII)
    first, second = np.triu_indices(heads)
    places = [
        jnp.broadcast_to(x, (first.size, radius.size)).ravel()
        for x in (omega[first][:, None] * radius, omega[second][:, None] * radius)
    ]
    found = jax.lax.map(lambda pair: kernel_pair(log_kernel, pair[0], pair[1], log_length), tuple(places))
    shape = (first.size, radius.size)
    power = task.task_scale**2
    terms = power * found.product + (power * (dimension - 1) + task.noise_std**2) * found.participation
    entries = terms.reshape(shape) @ weight
    matrix = jnp.zeros((heads, heads)).at[first, second].set(entries).at[second, first].set(entries)
    means = found.means[:, 0].reshape(shape)[np.flatnonzero(first == second)]
    target = power * (means * radius) @ weight
    mu = jnp.linalg.solve(matrix, target)
    return mu, 0.5 * (_power(task) - target @ mu)


def query_risk(
    task: LinearRegression,
    matrices,
    mu,
    query,
    log_length,
):
    """Return `½ E [(ŷ - y)² | x_q]` of heads with scores `⟨A_h x_q, x_l⟩` and values `μ_h y_l`, at any cov of the task.

    Scores of two heads are correlated normals. Given their common part they are independent, so that each one-token
    moment is again one matrix product.

    Args:
      task: a `LinearRegression`; its cov Σ is any covariance, and its query_cov does not matter.
      matrices: the $A_h$, shape (H, d, d).
      mu: the values $μ_h$, shape (H,).
      query: $x_q$, shape (d,), with standard deviations of the scores `0 < |Σ^{1/2} A_h x_q| ≤ 3`.
      log_length: natural logarithm of the prompt length, shape (), 0 ≤ log_length ≤ 20.

    Returns:
      The risk at this query, shape (), label noise included; relative error below 1e-8 in the domain. 0.2 s per pair.
    """
    matrices, mu, query, log_length = map(jnp.asarray, (matrices, mu, query, log_length))
    power = task.task_scale**2
    tilts = matrices @ query
    drifts = tilts @ task.cov
    spreads = jnp.sqrt(jnp.sum(tilts * drifts, axis=1))
    first, second = np.triu_indices(len(tilts))

    def entry(pair):
        h, k = pair
        correlation = jnp.clip(tilts[h] @ drifts[k] / (spreads[h] * spreads[k]), -1, 1)
        scores = jnp.stack([spreads[h], jnp.where(correlation < 0, -spreads[k], spreads[k])]), jnp.abs(correlation)
        products = power * jnp.stack([drifts[h] @ drifts[h], drifts[k] @ drifts[k], drifts[h] @ drifts[k]])
        return _correlated(scores, products, power * jnp.trace(task.cov) + task.noise_std**2, log_length)

    entries = jax.lax.map(entry, (jnp.asarray(first), jnp.asarray(second)))
    matrix = jnp.zeros((len(tilts), len(tilts))).at[first, second].set(entries).at[second, first].set(entries)
    missing = mu @ drifts - query
    shrinkage = (mu * score_statistics(spreads**2, log_length).participation) @ drifts
    bias = power * (missing @ missing - 2 * missing @ shrinkage)
    return 0.5 * (task.noise_std**2 + bias + mu @ matrix @ mu)


def _correlated(scores, products, label, log_length):
    """`K̃_hk`, the mean product of two heads' errors per unit of values: tilts of either sign, correlation ≥ 0."""
    ((a, b), common), (alpha, beta, kappa) = scores, products
    others, length = jnp.expm1(log_length), jnp.exp(log_length)
    edge = jnp.sqrt(2 * log_length) + 9.0
    c, c_step = _trapezoid((-edge, edge), _MATRIX_SIZE[1])
    z, z_step = _trapezoid((-edge, edge), _MATRIX_SIZE[2])
    normal = c_step / math.sqrt(2 * math.pi) * jnp.exp(-(c**2) / 2)
    rest = z_step / math.sqrt(2 * math.pi) * jnp.exp(-(z**2) / 2)
    window = _window(a, b, log_length, _DEFAULT)

    def factors(tilt, ends):
        s, step = _trapezoid(ends, _MATRIX_SIZE[0])
        score = jnp.sqrt(common) * c[:, None] + jnp.sqrt(1 - common) * z

        def at(level):
            size = jnp.exp(jnp.minimum(level + tilt * score, 6.5))
            kept = jnp.exp(-size)
            return jnp.stack([-jnp.expm1(-size) @ rest, *((size**power * kept) @ rest for power in range(4))])

        return step, jnp.moveaxis(jax.lax.map(at, s), 1, 0)

    (s_step, (lost, *left)), (t_step, (lost_b, *right)) = factors(a, window.s), factors(b, window.t)

    def m(i, j):
        return (left[i] * normal) @ right[j].T

    log_phi = _log_phi((lost @ normal)[:, None] + (left[0] * normal) @ lost_b.T)
    one = m(1, 1)
    diagonal = kappa * (one - m(2, 1) - m(1, 2) + 2 * m(2, 2)) + label * one
    diagonal += -alpha * (2 * m(2, 1) - m(3, 1)) - beta * (2 * m(1, 2) - m(1, 3))
    pairs = alpha * m(2, 0) * one + kappa * (m(2, 0) * m(0, 2) + one**2) + beta * one * m(0, 2)
    total = length * jnp.exp(others * log_phi) * diagonal + length * others * jnp.exp((others - 1) * log_phi) * pairs
    return s_step * t_step * jnp.sum(total)
