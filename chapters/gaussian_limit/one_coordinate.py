"""Outputs of tokens of one coordinate along a line of tilts: five distributions with the same mean and variance."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.gaussian_limit.gaussian_prompts import TOKENS_TOGETHER, softmax_means
from lib.attention import Attention, attend
from lib.batching import in_batches
from lib.measures import Gaussian, GaussianMixture, Laplace, Measure, Rademacher, Uniform


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
    measures = one_coordinate_measures()
    exact = _exact(measures, {name: tilts_of(name)[:, None] for name in measures})
    curves = {}
    for index, (name, measure) in enumerate(measures.items()):
        tokens = np.asarray(_tokens(measure, jr.fold_in(key, index), length, prompts))
        outputs = in_batches(partial(prompt_outputs, tilts_of(name)), tokens, batch=max(1, TOKENS_TOGETHER // length))
        curves[name] = TiltCurve(tilts_of(name), *map(np.asarray, exact[name]), outputs, pole_of(name))
    return curves


def prompt_outputs(
    tilts: Float[np.ndarray, " tilts"], tokens: Float[np.ndarray, "prompts length"]
) -> Float[np.ndarray, "prompts tilts"]:
    """Return outputs of the head U = V = 1 for finite prompts."""
    return softmax_means(tokens, tokens, tilts)[0]


def one_coordinate_measures() -> dict[str, Measure]:
    """Return five distributions of mean 0 and variance 1, for which linear attention has the same output."""
    narrow = 0.45
    gap = np.sqrt((1 - narrow**2) / 0.21)
    components = Gaussian(np.asarray([[0.7 * gap], [-0.3 * gap]]), np.full((2, 1, 1), narrow**2))
    return {
        "Gaussian": Gaussian([0.0], [[1.0]]),
        "Rademacher": Rademacher([1.0]),
        "uniform": Uniform([np.sqrt(3.0)]),
        "Laplace": Laplace([np.sqrt(0.5)]),
        "mixture": GaussianMixture(np.log([0.3, 0.7]), components),
    }


def tilts_of(name: str) -> Float[np.ndarray, " tilts"]:
    """Return tilts from -4 to 4; for Laplace tokens, up to nine tenths of the pole."""
    return np.linspace(-1, 1, 61) * min(0.9 * pole_of(name), 4.0)


def pole_of(name: str) -> float:
    """Return the tilt at which Λ becomes infinite: 1/b for Laplace tokens, of scale b = √½; infinity for the others."""
    return np.sqrt(2.0) if name == "Laplace" else np.inf


@jax.jit
def _exact(
    measures: dict[str, Measure], tilts: dict[str, Float[Array, "tilts 1"]]
) -> dict[str, tuple[Float[Array, " tilts"], Float[Array, " tilts"]]]:
    """Return Λ of each measure, and the output of the head U = V = 1 for the infinite prompt, at its tilts."""

    def along(measure, tilts):
        attended = jax.vmap(partial(attend, unit_head(), measure))(tilts)
        return jax.vmap(measure.log_mgf)(tilts), attended[:, 0]

    return {name: along(measure, tilts[name]) for name, measure in measures.items()}


@partial(jax.jit, static_argnums=(2, 3))
def _tokens(measure: Measure, key: PRNGKeyArray, length: int, prompts: int) -> Float[Array, "prompts length"]:
    def prompt(index):
        return measure.sample(length, key=jr.fold_in(key, index))[:, 0]

    return jax.lax.map(prompt, jnp.arange(prompts))
