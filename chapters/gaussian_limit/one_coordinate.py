"""Outputs of tokens of one coordinate along a line of tilts: five distributions with the same mean and variance."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from lib.attention import Attention, attend
from lib.batching import map_batched
from lib.measures import Empirical, Gaussian, GaussianMixture, Laplace, Measure, Rademacher, Uniform


def unit_head() -> Attention:
    """Return the head U = V = 1."""
    return Attention([[1.0]], [[1.0]])


@dataclass(frozen=True)
class TiltCurve:
    """One distribution of one coordinate: Λ, the exact output Λ' and outputs of finite prompts on a grid of tilts.

    Λ is infinite from `pole` on; the pole is finite for one distribution only.
    """

    tilts: Float[np.ndarray, " tilts"]
    log_mgf: Float[np.ndarray, " tilts"]
    exact: Float[np.ndarray, " tilts"]
    outputs: Float[np.ndarray, "prompts tilts"]
    pole: float


def simulate_curves(length: int, prompts: int, *, key: PRNGKeyArray) -> dict[str, TiltCurve]:
    """Return the curves of the five distributions, each with its own prompts."""
    return {
        name: _curve(measure, tilts_of(name), pole_of(name), length, prompts, key=jr.fold_in(key, index))
        for index, (name, measure) in enumerate(one_coordinate_measures().items())
    }


def one_coordinate_measures() -> dict[str, Measure]:
    """Return five distributions of mean 0 and variance 1, for which linear attention has the same output."""
    narrow = 0.45
    gap = np.sqrt((1 - narrow**2) / 0.21)
    components = Gaussian(jnp.asarray([[0.7 * gap], [-0.3 * gap]]), jnp.full((2, 1, 1), narrow**2))
    return {
        "Gaussian": Gaussian([0.0], [[1.0]]),
        "Rademacher": Rademacher([1.0]),
        "uniform": Uniform([np.sqrt(3.0)]),
        "Laplace": Laplace([np.sqrt(0.5)]),
        "mixture": GaussianMixture(jnp.log(jnp.asarray([0.3, 0.7])), components),
    }


def tilts_of(name: str) -> Float[np.ndarray, " tilts"]:
    """Return tilts from -4 to 4; for Laplace tokens, up to nine tenths of the pole."""
    return np.linspace(-1, 1, 61) * min(0.9 * pole_of(name), 4.0)


def pole_of(name: str) -> float:
    """Return the tilt at which Λ becomes infinite: 1/b for Laplace tokens, of scale b = √½; infinity for the others."""
    return np.sqrt(2.0) if name == "Laplace" else np.inf


def _curve(
    measure: Measure, tilts: Float[np.ndarray, " tilts"], pole: float, length: int, prompts: int, *, key: PRNGKeyArray
) -> TiltCurve:
    """Return outputs of the head U = V = 1 for the infinite prompt and for finite prompts."""
    queries = jnp.asarray(tilts)[:, None]
    log_mgf = jax.jit(jax.vmap(measure.log_mgf))(queries)
    exact = jax.jit(jax.vmap(lambda query: attend(unit_head(), measure, query)[0]))(queries)
    indices = jnp.arange(prompts)
    tokens = map_batched(lambda index: measure.sample(length, key=jr.fold_in(key, index)), indices, size=length)
    return TiltCurve(tilts, np.asarray(log_mgf), np.asarray(exact), np.asarray(_outputs(tokens, queries)), pole)


@jax.jit
def _outputs(
    prompts: Float[Array, "prompts length 1"], queries: Float[Array, "queries 1"]
) -> Float[Array, "prompts queries"]:
    def one_prompt(points):
        return map_batched(lambda query: attend(unit_head(), Empirical(points), query)[0], queries, size=len(points))

    return jax.lax.map(one_prompt, prompts)
