"""Normalised partition functions `W = (1/L) Σ_i e^{⟨ξ, z_i⟩ - Λ(ξ)}` of simulated prompts, on a logarithmic scale."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, PRNGKeyArray
from scipy.special import ndtri

from chapters.concentration.experiment import isotropic


@dataclass(frozen=True)
class Partitions:
    """Values of `ln W` for prompts of one length at each query size τ."""

    length: int
    taus: Float[np.ndarray, " taus"]
    logs: Float[np.ndarray, "prompts taus"]

    def quantile(self, level: float) -> tuple[Float[np.ndarray, " taus"], Float[np.ndarray, " taus"]]:
        """Return a quantile of ln W and its standard error, from the quantiles one binomial error away."""
        error = np.sqrt(level * (1 - level) / len(self.logs))
        low, middle, high = np.quantile(self.logs, [level - error, level, level + error], axis=0)
        return middle, (high - low) / 2

    @property
    def largest_term_alone(self) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Return query sizes beyond the median of the largest of L normals, and ln of its term, a large part of W."""
        largest = -ndtri(1 - 0.5 ** (1 / self.length))
        beyond = np.linspace(largest, max(self.taus[-1], largest), 20)
        return beyond, largest * beyond - np.log(self.length) - beyond**2 / 2


def partition_taus() -> Float[np.ndarray, " taus"]:
    """Return the query sizes at which partition functions are drawn."""
    return np.linspace(0.0, 7.0, 22)


def simulate_partitions(length: int, prompts: int, *, key: PRNGKeyArray) -> Partitions:
    """Return `W = (1/L) Σ_i e^{τ g_i - τ²/2}` for standard normal scores; all τ share their prompts."""
    scores = np.asarray(isotropic(1).sample(prompts * length, key=key)).reshape(prompts, length)
    taus = partition_taus()
    means = [np.mean(np.exp(tau * scores - tau**2 / 2), axis=1) for tau in taus]
    return Partitions(length, taus, np.log(np.stack(means, axis=1)))
