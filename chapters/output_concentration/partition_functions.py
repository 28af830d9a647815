"""Normalised partition functions `W = (1/L) Σ_i e^{⟨ξ, z_i⟩ - Λ(ξ)}` of simulated prompts, on a logarithmic scale."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray
from scipy.special import ndtri

from chapters.output_concentration.experiment import isotropic
from lib.measures import Empirical


@dataclass(frozen=True)
class Partitions:
    """Of prompts of one length: `ln W` at each query size τ."""

    length: int
    taus: Float[np.ndarray, " taus"]
    logs: Float[np.ndarray, "prompts taus"]

    def quantile(self, level: float) -> tuple[Float[np.ndarray, " taus"], Float[np.ndarray, " taus"]]:
        """Of ln W over prompts, and its standard error: half the distance of the quantiles one binomial error away."""
        away = np.sqrt(level * (1 - level) / len(self.logs))
        low, middle, high = np.quantile(self.logs, [level - away, level, level + away], axis=0)
        return middle, (high - low) / 2

    @property
    def largest_term_alone(self) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Query sizes beyond the median of the largest of L normals, and ln of its term, which there is most of W."""
        largest = -ndtri(1 - 0.5 ** (1 / self.length))
        beyond = np.linspace(largest, max(self.taus[-1], largest), 20)
        return beyond, largest * beyond - np.log(self.length) - beyond**2 / 2


def partition_taus() -> Float[np.ndarray, " taus"]:
    """Query sizes at which partition functions are drawn."""
    return np.linspace(0.0, 7.0, 22)


def simulate(length: int, prompts: int, *, key: PRNGKeyArray) -> Partitions:
    """Of standard normal scores, `W = (1/L) Σ_i e^{τ g_i - τ²/2}`; all τ are asked of the same prompts."""
    law = isotropic(1)
    points = law.sample(prompts * length, key=key).reshape(prompts, length, 1)

    @jax.jit
    def log_partition(tau):
        return jax.vmap(lambda tokens: Empirical(tokens).log_mgf(tau[None]) - law.log_mgf(tau[None]))(points)

    taus = partition_taus()
    return Partitions(length, taus, np.stack([np.asarray(log_partition(tau)) for tau in jnp.asarray(taus)], axis=1))
