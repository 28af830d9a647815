"""Retrieval of one hidden token: exact and simulated risks of heads trained at one length and used at another."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.trained_at_other_lengths.numpy_generator import generator
from chapters.trained_at_other_lengths.parameters import FULL_POWER, PAIRS, ROOT_POWER
from chapters.trained_at_other_lengths.style import LINEAR, SIGMOID, SOFTMAX
from lib.single_location import (
    Activation,
    Overlaps,
    Spiked,
    attention_risk,
    bayes_risk,
    best_elementwise_risk,
    best_risk,
    linear,
    sigmoid,
    softmax,
)
from lib.statistics import standard_error

HEADS = (SOFTMAX, SIGMOID, LINEAR)
# Prompts per batch.
BATCH = 500


@dataclass(frozen=True)
class Head:
    """A head with the activation `activation`, k = key k* and v = value v*."""

    activation: Activation
    key: float
    value: float

    @property
    def overlaps(self) -> Overlaps:
        """The overlaps of k = key k* and v = value v*."""
        return Overlaps(self.key, self.key**2, self.value, self.value**2)

    def scaled(self, factor: float) -> "Head":
        """Return the head with its scores multiplied by a factor."""
        return Head(self.activation, factor * self.key, self.value)


@dataclass(frozen=True)
class Risks:
    """Risks at the lengths of use `used`, by head, of heads trained at the length `trained`.

    `unchanged` are the risks of the heads themselves, `retrained` those of the best heads of the same kind for each
    length; `scaled` are risks of softmax with its scores multiplied by a power of ln L'/ln L.
    """

    trained: int
    snr: float
    used: Float[np.ndarray, " n"]
    unchanged: Mapping[str, Float[np.ndarray, " n"]]
    retrained: Mapping[str, Float[np.ndarray, " n"]]
    scaled: Mapping[float, Float[np.ndarray, " n"]]


def best_head(kind: str, length: int, snr: float) -> Head:
    """Return the best head of its kind at one length.

    Softmax: k = √ν k* and v = v* [D26]. Sigmoid: the same k and v, and the posterior odds of one token given its own
    score, which depend on L. Linear: least squares for the weights α + βχ*, which also depend on L.
    """
    root = float(np.sqrt(snr))
    if kind == SOFTMAX:
        return Head(softmax, root, 1.0)
    if kind == SIGMOID:
        return Head(replace(sigmoid, bias=-0.5 * snr - np.log(length - 1.0)), root, 1.0)
    power = np.asarray([[length, root], [root, length + snr]])
    constant, slope = np.linalg.solve(power, [1.0, root])
    return Head(linear, float(slope / constant), float(constant))


def risk(head: Head, length: int, snr: float) -> float:
    """Return the exact excess risk of a head on prompts of any length."""
    return float(attention_risk(Spiked(length, snr), head.activation, head.overlaps))


def solve_risks(trained: int, snr: float, used: list[int]) -> Risks:
    """Return the risks, at every length of use, of the heads trained at one length."""
    heads = {kind: best_head(kind, trained, snr) for kind in HEADS}
    growth = [np.log(length) / np.log(trained) for length in used]
    scaled = {
        power: np.asarray([risk(heads[SOFTMAX].scaled(by**power), L, snr) for by, L in zip(growth, used, strict=True)])
        for power in (ROOT_POWER, FULL_POWER)
    }
    tasks = Spiked(np.asarray(used, float), snr)
    best = (bayes_risk(tasks), best_elementwise_risk(tasks), best_risk(tasks, linear))
    return Risks(
        trained,
        snr,
        np.asarray(used),
        {kind: np.asarray([risk(head, length, snr) for length in used]) for kind, head in heads.items()},
        dict(zip(HEADS, map(np.asarray, best), strict=True)),
        scaled,
    )


@dataclass(frozen=True)
class Trial:
    """Risks of a head trained at one length and used at another: `drawn` by simulation, and `exact`.

    `at_training` is its exact risk at the length of training, and `prompts` the number of simulated prompts.
    """

    head: str
    trained: int
    used: int
    drawn: float
    std_error: float
    exact: float
    at_training: float
    prompts: int


def simulate_risks(snr: float, prompts: int, *, key: PRNGKeyArray) -> list[Trial]:
    """Return simulated and exact risks for every head and every pair (L, L') of `PAIRS`."""
    trials = []
    for index, (trained, used) in enumerate(PAIRS):
        heads = {kind: best_head(kind, trained, snr) for kind in HEADS}
        drawn = squared_errors(list(heads.values()), used, snr, prompts, key=jr.fold_in(key, index))
        for (kind, head), errors in zip(heads.items(), drawn, strict=True):
            mean, error = float(errors.mean()), float(standard_error(errors))
            exact = (risk(head, length, snr) for length in (used, trained))
            trials.append(Trial(kind, trained, used, mean, error, *exact, prompts))
    return trials


def squared_errors(
    heads: list[Head], length: int, snr: float, prompts: int, *, key: PRNGKeyArray
) -> Float[np.ndarray, "heads prompts"]:
    """Return the squared errors of heads on the same simulated prompts, whose first token is the hidden one."""
    random, parts = generator(key), []
    for _ in range(-(-prompts // BATCH)):
        scores, values = random.standard_normal((2, BATCH, length))
        scores[:, 0] += np.sqrt(snr)
        weights = [head.value * np.asarray(head.activation.weights(head.key * scores)) for head in heads]
        parts.append([(values[:, 0] - np.sum(each * values, axis=1)) ** 2 for each in weights])
    return np.concatenate(parts, axis=1)[:, :prompts]
