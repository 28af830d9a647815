"""Integrals over a Gaussian mixture: nodes for each component, and the weights of the components."""

from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.nn import log_softmax
from jaxtyping import Array, Float

from lib.measures import GaussianMixture


def normal_grid(dimension: int, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a trapezoid for standard normals in one or two dimensions: its nodes and weights."""
    line = np.linspace(-9.0, 9.0, nodes)
    weights = np.exp(-0.5 * line**2) * (line[1] - line[0]) / np.sqrt(2 * np.pi)
    if dimension == 1:
        return line[:, None], weights
    return np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2), np.outer(weights, weights).ravel()


def namespace_of(*trees: Any) -> tuple[ModuleType, list[Any]]:
    """Return NumPy, which compiles nothing, and the trees as its arrays, or `jax.numpy` and the trees if traced."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees)):
        return jnp, list(trees)
    return np, jax.tree.map(np.asarray, list(trees))


def component_weights(mixture: GaussianMixture) -> Float[Array, " K"]:
    """Return the probabilities of the components; their derivatives are finite where one is zero."""
    return jnp.exp(jnp.maximum(log_softmax(mixture.log_weights), -1e5))
