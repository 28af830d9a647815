"""Rates at the balanced optimum: eigenvalues of the Hessian in coordinates in which a preconditioned flow is plain."""

from dataclasses import dataclass

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from chapters.preconditioned_training.flows import BLOCK_POWERS, HEAD_POWERS
from chapters.preconditioned_training.matrix_regression import Spectrum, aligned_start, population_loss
from lib.attention import Attention
from lib.icl import Blocks, LinearRegression

LARGEST_CONDITION = 1000.0


@dataclass(frozen=True)
class Rates:
    """The fastest rate over the slowest at the balanced optimum of each flow, by condition number."""

    conditions: Float[np.ndarray, " n"]
    ratios: dict[str, Float[np.ndarray, " n"]]


def solve_rates(dimension: int, points: int) -> Rates:
    """Return the ratios at `points` condition numbers from 1 to LARGEST_CONDITION."""
    conditions = np.geomspace(1.0, LARGEST_CONDITION, points)
    eigenvalues = jax.vmap(lambda condition: jnp.geomspace(1 / condition, 1.0, dimension))(jnp.asarray(conditions))
    heads = jax.jit(jax.vmap(head_rates, (0, None)))
    blocks = jax.jit(jax.vmap(block_rates, (0, None, None)))
    rates = {flow: heads(eigenvalues, power) for flow, power in HEAD_POWERS.items()}
    rates |= {flow: blocks(eigenvalues, *powers) for flow, powers in BLOCK_POWERS.items()}
    return Rates(conditions, {flow: np.asarray(each[:, -1] / each[:, 0]) for flow, each in rates.items()})


def head_rates(eigenvalues: Float[Array, " d"], power: float) -> Float[Array, " d*d"]:
    """Return the rates of the d² directions in which VΣU changes, in increasing order, for G = Σ^{-power}, M = I."""
    spectrum = Spectrum(eigenvalues, jnp.eye(eigenvalues.size))
    root, inverse = spectrum.power(-power / 2), spectrum.power(power / 2)

    def loss(whitened):
        x, y = whitened
        return population_loss(Attention(root @ y @ root, x @ root), spectrum.power(1.0))

    optimum = aligned_start(spectrum, 1.0, power)
    return _largest(loss, (optimum.value @ inverse, inverse @ optimum.bilinear @ inverse), eigenvalues.size**2)


def block_rates(eigenvalues: Float[Array, " d"], left: float, right: float) -> Float[Array, " d*d"]:
    """Return the d² nonzero rates of blocks (A, b) for the gradient `Σ^-left ∇_A Σ^-right`, in increasing order."""
    spectrum = Spectrum(eigenvalues, jnp.eye(eigenvalues.size))
    task = LinearRegression(spectrum.power(1.0))

    def loss(whitened):
        matrix, gain = whitened
        return task.infinite_risk(
            Blocks.head(Blocks(spectrum.power(-left / 2) @ matrix @ spectrum.power(-right / 2), gain))
        )

    matrix = spectrum.power((left + right) / 2 - 1)
    gain = jnp.sqrt(jnp.linalg.norm(matrix))
    return _largest(loss, (matrix / gain, gain), eigenvalues.size**2)


def _largest(loss, optimum, count: int) -> Float[Array, " count"]:
    """Return the `count` largest eigenvalues of the Hessian; the others belong to directions without a change."""
    flat, unflatten = jax.flatten_util.ravel_pytree(optimum)
    return jnp.linalg.eigvalsh(jax.hessian(lambda vector: loss(unflatten(vector)))(flat))[-count:]
