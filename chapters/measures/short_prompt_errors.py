"""Short prompts of standard normal tokens: their squared errors, simulated and by quadrature."""

from dataclasses import dataclass

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.measures.growing_prompts import TOGETHER, prefix_outputs
from lib.attention import Attention
from lib.batching import map_batched
from lib.finite_prompt import score_error
from lib.measures import Gaussian, empirical


@dataclass(frozen=True)
class ShortPrompts:
    """Squared errors of prompts around their limit, for each length and query size."""

    taus: list[float]
    lengths: list[int]
    squares: Float[np.ndarray, "prompts lengths taus"]

    @property
    def single_tokens(self) -> Float[np.ndarray, "prompts taus"]:
        """Return the squared errors of prompts of one token."""
        return self.squares[:, self.lengths.index(1)]

    @property
    def longer(self) -> np.ndarray:
        """Return which lengths are at least 2, where the bound is not zero."""
        return np.asarray(self.lengths) >= 2


def simulate_short_prompts(taus: list[float], lengths: list[int], prompts: int, *, key: PRNGKeyArray) -> ShortPrompts:
    """Return squared errors of prompts of standard normal tokens at V = 1, Uz = τ, where the limit is τ.

    The shorter prompts are the first tokens of the longest ones.
    """
    normal, longest = Gaussian([0.0], [[1.0]]), max(lengths)

    def one(index):
        points = empirical(normal, longest, key=jr.fold_in(key, index)).points
        outputs = [prefix_outputs(Attention([[tau]], [[1.0]]), points, np.ones(1), np.asarray(lengths)) for tau in taus]
        return (jnp.concatenate(outputs, axis=1) - np.asarray(taus)) ** 2

    squares = map_batched(one, jnp.arange(prompts), size=longest * len(taus), numbers_at_once=TOGETHER)
    return ShortPrompts(taus, lengths, np.asarray(squares))


def solve_short_prompt_errors(taus: list[float], lengths: list[int]) -> Float[np.ndarray, "lengths taus"]:
    """Return the mean squared errors, by quadrature."""
    return np.asarray(score_error(np.asarray(taus), np.log(lengths)[:, None]))
