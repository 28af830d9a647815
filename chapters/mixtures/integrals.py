"""Integrals over a Gaussian mixture: nodes for each component, and the weights of the components."""

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


def component_weights(mixture: GaussianMixture) -> Float[Array, " K"]:
    """Return the probabilities of the components; their derivatives are finite where one is zero."""
    return jnp.exp(jnp.maximum(log_softmax(mixture.log_weights), -1e5))
