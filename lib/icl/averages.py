"""Averages over Gaussian tasks and queries by fixed nodes, with a quadrature in the radius.

The risk of a finite prompt grows like $e^{τ²}$, with τ proportional to the length of the query, so rare long queries
contribute much of its average, and nodes of equal probability miss them. The radius therefore has a separate
quadrature, and only the direction, on which all averages depend weakly, has quasi-random points.
"""

from functools import lru_cache
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import scipy.special
from jaxtyping import Array, Float

from lib._checks import as_array, public, require_count
from lib._namespace import namespace, softmax
from lib._quasi_random import quasi_normals
from lib._types import Scalar


class QueryAverage(eqx.Module):
    """Nodes and weights with `E f(x) ≈ Σ_i weights_i f(nodes_i)` for x ~ $N(0, I_d)$ and even functions f.

    Attributes:
      nodes: the nodes, shape (n, d).
      weights: the weights, shape (n,), of sum 1.
    """

    nodes: Float[Array, "n d"]
    weights: Float[Array, " n"]

    @classmethod
    @public
    def radial(cls, d: int, *, radii: int = 64) -> "QueryAverage":
        """Return nodes at `radii` radii on each of the d axes.

        Exact in direction for functions of |x| alone, and there for the gradient of a risk in its matrix.

        Args:
          d: the dimension.
          radii: number of radii.

        Returns:
          d · radii nodes.
        """
        return _on_rays(np.eye(d), radii)

    @classmethod
    @public
    def of_frames(cls, d: int, *, frames: int = 64, radii: int = 32, seed: int = 0) -> "QueryAverage":
        """Return nodes at `radii` radii on each of the d rays of quasi-random orthonormal frames.

        Exact in direction for quadratic functions.

        Args:
          d: the dimension.
          frames: number of frames, a power of two.
          radii: number of radii on each ray.
          seed: seed of the scrambled Sobol points.

        Returns:
          frames · d · radii nodes.

        Raises:
          ValueError: if `frames` is not a power of two.
        """
        return _on_rays(_quasi_random_frames(d, frames, seed).reshape(-1, d), radii)


def _on_rays(rays: Float[np.ndarray, "n d"], radii: int) -> QueryAverage:
    radius, weights = _radial(rays.shape[1], radii)
    nodes = radius[:, None, None] * rays
    return QueryAverage(as_array(nodes.reshape(-1, rays.shape[1])), as_array(np.repeat(weights / len(rays), len(rays))))


class PairAverage(eqx.Module):
    """Nodes for functions of a query x ~ $N(0, I_d)$, even in it, and of an independent task w ~ $N(0, I_d)$.

    Rays of queries come in orthonormal frames. Each ray has a random frame of tasks, whose 2d half-axes are used: exact
    in direction for functions that are quadratic in x or in w.

    Attributes:
      rays: unit vectors of queries, shape (n, d).
      frames: an orthonormal frame of tasks for each ray, one vector per row, shape (n, d, d).
      query_radii: radii of queries, shape (r,).
      query_weights: their weights, of sum 1.
      task_radii: radii of tasks, shape (k,).
      task_weights: their weights, of sum 1.
    """

    rays: Float[Array, "n d"]
    frames: Float[Array, "n d d"]
    query_radii: Float[Array, " r"]
    query_weights: Float[Array, " r"]
    task_radii: Float[Array, " k"]
    task_weights: Float[Array, " k"]

    @classmethod
    @public
    def of_frames(
        cls, d: int, *, frames: int | None = None, query_radii: int = 24, task_radii: int = 3, seed: int = 0
    ) -> "PairAverage":
        """Return nodes for averages over a query and a task.

        Args:
          d: the dimension.
          frames: number of frames of queries, a power of two; by default about 16384/d², at most 512.
          query_radii: number of radii of queries.
          task_radii: number of radii of tasks.
          seed: seed of the scrambled Sobol points and of the frames of tasks.

        Returns:
          The rule, with frames · d rays.

        Raises:
          ValueError: if `frames` is not a power of two.
        """
        frames = 2 ** int(np.clip(round(np.log2(16384 / d**2)), 1, 9)) if frames is None else frames
        rays = _quasi_random_frames(d, frames, seed).reshape(-1, d)
        rules = (rays, _random_frames(d, len(rays), seed), *_radial(d, query_radii), *_few_radii(d, task_radii))
        return cls(*map(jnp.asarray, rules))

    @classmethod
    @public
    def line(cls, radii: int) -> "PairAverage":
        """Return nodes for d = 1 with as many radii for tasks as for queries.

        Both reach far into the tails, for heads whose scores depend on labels, where the task multiplies the query.

        Args:
          radii: number of radii of queries and of tasks.

        Returns:
          The rule, with one ray.
        """
        return cls(*map(jnp.asarray, (np.ones((1, 1)), np.ones((1, 1, 1)), *_radial(1, radii), *_radial(1, radii))))


@lru_cache
def _radial(d: int, n: int) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return nodes and weights for the length of a standard normal vector of $R^d$: Gauss–Legendre on [0, √d + 10]."""
    return _radii(d, require_count("radial", "n", n, "an average needs a node."), 10.0)


def _radii(d: int, n: int, reach: Scalar) -> tuple[Any, Any]:
    """Return Gauss–Legendre nodes on [0, √d + reach] for the length of a normal vector, and weights of sum 1."""
    xp = namespace(reach)
    unit, width = np.polynomial.legendre.leggauss(n)
    radius = (d**0.5 + reach) * (unit + 1) / 2
    return radius, softmax(np.log(width) + (d - 1) * xp.log(radius) - radius**2 / 2)


@lru_cache
def _few_radii(d: int, n: int) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return the Gauss rule for the length of a standard normal vector of $R^d$, exact for even powers up to 4n - 2."""
    half_square, weights = scipy.special.roots_genlaguerre(n, d / 2 - 1)
    return np.sqrt(2 * half_square), weights / weights.sum()


@lru_cache
def _quasi_random_frames(d: int, n: int, seed: int) -> Float[np.ndarray, "n d d"]:
    """Return orthonormal frames from scrambled Sobol points, made normal and then orthonormal."""
    if n < 1 or n & (n - 1):
        raise ValueError(f"`frames` must be a power of two, because Sobol points are even only then. Got {n}.")
    normals = quasi_normals(d * d, n, (seed,)).reshape(n, d, d)
    q, r = np.linalg.qr(np.swapaxes(normals, 1, 2))
    return np.swapaxes(q * np.sign(np.einsum("nii->ni", r))[:, None], 1, 2)


@lru_cache
def _random_frames(d: int, n: int, seed: int) -> Float[np.ndarray, "n d d"]:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, d, d))).Q
