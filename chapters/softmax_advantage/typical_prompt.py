"""Simulated prompts of the spiked model, of which one is typical, and the weights of two heads."""

from dataclasses import dataclass

import jax
import jax.random as jr
import numpy as np
from jaxtyping import Bool, Float, PRNGKeyArray

from chapters.softmax_advantage.models import bayes_risk
from chapters.softmax_advantage.parameters import SHOWN_HEADS, SHOWN_SNR
from lib.single_location import Head, Spiked

# Length, dimension of the tokens, and the number of simulated prompts.
LENGTH, DIMENSION, PROMPTS = 10, 200, 4000


@dataclass(frozen=True)
class Prompts:
    """Scores and values of the tokens of simulated prompts, the relevant tokens, and the weights of both heads."""

    scores: Float[np.ndarray, "n L"]
    values: Float[np.ndarray, "n L"]
    hidden: Float[np.ndarray, " n"]
    weights: dict[str, Float[np.ndarray, "n L"]]
    bayes: float

    def outputs(self, head: str) -> Float[np.ndarray, " n"]:
        """Return the outputs of a head, its weighted sums of values."""
        return np.sum(self.weights[head] * self.values, axis=1)

    @property
    def median(self) -> int:
        """Return the index of the prompt whose squared errors of both heads are nearest to their medians, by rank."""
        errors = np.stack([self.squared_errors(head) for head in SHOWN_HEADS])
        ranks = errors.argsort(axis=1).argsort(axis=1)
        return int(np.argmin(np.abs(ranks - (errors.shape[1] - 1) / 2).max(axis=0)))

    def found(self, head: str) -> Bool[np.ndarray, " n"]:
        """Return for each prompt whether the relevant token has more than half of the absolute weight."""
        sizes = np.abs(self.weights[head])
        hidden = np.take_along_axis(sizes, self.hidden[:, None], axis=1)[:, 0]
        return hidden > 0.5 * sizes.sum(axis=1)

    def squared_errors(self, head: str) -> Float[np.ndarray, " n"]:
        """Return the squared errors of a head."""
        label = np.take_along_axis(self.values, self.hidden[:, None], axis=1)[:, 0]
        return (label - self.outputs(head)) ** 2


def simulate_prompts(*, key: PRNGKeyArray) -> Prompts:
    """Draw prompts of tokens without label noise; return the weights of the best softmax and the best linear head."""
    truth_key, prompt_key, position_key = jr.split(key, 3)
    task, truth = Spiked(LENGTH, SHOWN_SNR), Head.orthogonal(DIMENSION, key=truth_key)
    drawn = jax.jit(lambda key: task.draw(truth, PROMPTS, noise_std=0.0, key=key))(prompt_key)
    tokens = np.asarray(drawn.tokens)
    scores, values = (tokens @ np.asarray(side) / np.sqrt(DIMENSION) for side in (truth.key, truth.value))
    hidden = np.asarray(jr.randint(position_key, (PROMPTS,), 0, LENGTH))  # tokens are drawn with the hidden one first
    order = (np.arange(LENGTH) - hidden[:, None]) % LENGTH
    scores, values = np.take_along_axis(scores, order, axis=1), np.take_along_axis(values, order, axis=1)
    offset, slope = _least_squares()
    softmax = np.exp(np.sqrt(SHOWN_SNR) * (scores - scores.max(axis=1, keepdims=True)))
    weights = {"softmax": softmax / softmax.sum(axis=1, keepdims=True), "linear": offset + slope * scores}
    return Prompts(scores, values, hidden, weights, float(bayes_risk(task)))


def _least_squares() -> Float[np.ndarray, "2"]:
    """Return offset and slope of the linear weights with the least risk `1 - 2 E s_ε + E Σ s²`."""
    shift = np.array([1.0, np.sqrt(SHOWN_SNR)])
    return np.linalg.solve(np.diag([LENGTH - 1.0, LENGTH]) + np.outer(shift, shift), shift)
