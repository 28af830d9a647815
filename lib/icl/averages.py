"""Averages over Gaussian tasks and queries by fixed nodes: deterministic, and careful in the radius.

A finite prompt's risk grows like e^{τ²}, with τ proportional to the size of the query: its average lives far out in
the tail, where equal-probability nodes have none. So the radius gets a quadrature of its own, and only the direction,
on which everything depends mildly, gets quasi-random points.
"""

from functools import lru_cache

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float

from lib._checks import require_count


class QueryAverage(eqx.Module):
    """`E f(x) ≈ Σ_i weights_i f(nodes_i)` for even functions of x ~ N(0, I_d); the weights sum to one."""

    nodes: Float[Array, "n d"]
    weights: Float[Array, " n"]


def radial_average(d: int, *, radii: int = 64) -> QueryAverage:
    """`radii` nodes on each axis: exact where f sees only |x|, and for the gradient there of a risk in its matrix."""
    return _on_rays(np.eye(d), radii)


def query_average(d: int, *, frames: int = 64, radii: int = 32, seed: int = 0) -> QueryAverage:
    """`radii` nodes on each of the d rays of `frames` frames; exact in direction for quadratic functions."""
    return _on_rays(quasi_random_frames(d, frames, seed).reshape(-1, d), radii)


def _on_rays(rays: Float[np.ndarray, "n d"], radii: int) -> QueryAverage:
    radius, weights = radial(rays.shape[1], radii)
    nodes = radius[:, None, None] * rays
    return QueryAverage(
        jnp.asarray(nodes.reshape(-1, rays.shape[1])), jnp.asarray(np.repeat(weights / len(rays), len(rays)))
    )


class PairAverage(eqx.Module):
    """Nodes for functions of a query x ~ N(0, I_d), even in it, and of an independent task w ~ N(0, I_d).

    Rays of queries come in orthonormal frames, and each has a frame of tasks of its own, to which belong 2d half-axes:
    exact in direction for what is quadratic in x or in w.
    """

    rays: Float[Array, "n d"]
    frames: Float[Array, "n d d"]
    query_radii: Float[Array, " r"]
    query_weights: Float[Array, " r"]
    task_radii: Float[Array, " k"]
    task_weights: Float[Array, " k"]


def pair_average(
    d: int, *, frames: int | None = None, query_radii: int = 24, task_radii: int = 3, seed: int = 0
) -> PairAverage:
    """The rule with `frames` frames of queries, a power of two; by default about 16384/d², at most 512."""
    frames = 2 ** int(np.clip(round(np.log2(16384 / d**2)), 1, 9)) if frames is None else frames
    rays = quasi_random_frames(d, frames, seed).reshape(-1, d)
    rules = (rays, _random_frames(d, len(rays), seed), *radial(d, query_radii), *few_radii(d, task_radii))
    return PairAverage(*map(jnp.asarray, rules))


def line_average(radii: int) -> PairAverage:
    """On the line, `radii` nodes for query and task each, both into the tail: a score of labels multiplies them."""
    return PairAverage(*map(jnp.asarray, (np.ones((1, 1)), np.ones((1, 1, 1)), *radial(1, radii), *radial(1, radii))))


@lru_cache
def radial(d: int, n: int) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Nodes and weights for the length of a standard normal vector of R^d: Gauss–Legendre on [0, √d + 10].

    Nodes are as dense in the tail as in the bulk, so a steep integrand is resolved out to ten standard deviations.
    """
    unit, width = np.polynomial.legendre.leggauss(require_count("radial", "n", n, "an average needs a node."))
    radius = (d**0.5 + 10) * (unit + 1) / 2
    return radius, scipy.special.softmax(np.log(width) + (d - 1) * np.log(radius) - radius**2 / 2)


@lru_cache
def few_radii(d: int, n: int) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """The Gauss rule for the length of a standard normal vector of R^d: exact for even powers up to 4n - 2."""
    half_square, weights = scipy.special.roots_genlaguerre(n, d / 2 - 1)
    return np.sqrt(2 * half_square), weights / weights.sum()


@lru_cache
def quasi_random_frames(d: int, n: int, seed: int) -> Float[np.ndarray, "n d d"]:
    """`n` orthonormal frames, a power of two, one vector a row: scrambled Sobol normals, made orthonormal."""
    from scipy.stats import qmc  # takes a second to import

    if n < 1 or n & (n - 1):
        raise ValueError(f"`frames` must be a power of two, because Sobol points are even only then. Got {n}.")
    normals = scipy.special.ndtri(qmc.Sobol(d * d, rng=seed).random(n)).reshape(n, d, d)
    q, r = np.linalg.qr(np.swapaxes(normals, 1, 2))
    return np.swapaxes(q * np.sign(np.einsum("nii->ni", r))[:, None], 1, 2)


@lru_cache
def _random_frames(d: int, n: int, seed: int) -> Float[np.ndarray, "n d d"]:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, d, d))).Q
