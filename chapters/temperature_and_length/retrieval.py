"""Heads that find one hidden token, trained at one length and used at another: exact risks, and drawn prompts."""

from collections.abc import Mapping
from dataclasses import dataclass

import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.temperature_and_length.parameters import FULL_POWER, PAIRS, ROOT_POWER
from chapters.temperature_and_length.simulated_prompts import generator
from chapters.temperature_and_length.style import LINEAR, SIGMOID, SOFTMAX
from lib.single_location import (
    Activation,
    Overlaps,
    Spiked,
    attention_risk,
    bayes_risk,
    best_elementwise_risk,
    best_risk,
    linear,
    single_token_posterior,
    softmax,
)
from lib.statistics import standard_error

HEADS = (SOFTMAX, SIGMOID, LINEAR)
# Prompts drawn at a time.
TOGETHER = 500


@dataclass(frozen=True)
class Head:
    """What training at one length leaves: an activation of its scores, and how long k and v are along k* and v*."""

    activation: Activation
    key: float
    value: float

    @property
    def overlaps(self) -> Overlaps:
        """k = key k*, v = value v*."""
        return Overlaps(self.key, self.key**2, self.value, self.value**2)

    def scaled(self, factor: float) -> "Head":
        """With its scores multiplied by a factor."""
        return Head(self.activation, factor * self.key, self.value)


@dataclass(frozen=True)
class Risks:
    """Of heads trained at one length, at lengths of use: as they are, retrained, and softmax with scaled scores."""

    trained: int
    snr: float
    used: Float[np.ndarray, " n"]
    kept: Mapping[str, Float[np.ndarray, " n"]]
    retrained: Mapping[str, Float[np.ndarray, " n"]]
    scaled: Mapping[float, Float[np.ndarray, " n"]]


def train(kind: str, length: int, snr: float) -> Head:
    """The best head of its kind at one length.

    Softmax: k = √ν k*, v = v* [D26]. Sigmoid: the same, and the posterior odds of one token by itself, which know L.
    Linear: least squares for the weights α + βχ*, which know L too.
    """
    root = float(np.sqrt(snr))
    if kind == SOFTMAX:
        return Head(softmax, root, 1.0)
    if kind == SIGMOID:
        return Head(single_token_posterior(Spiked(length, snr)), root, 1.0)
    power = np.asarray([[length, root], [root, length + snr]])
    constant, slope = np.linalg.solve(power, [1.0, root])
    return Head(linear, float(slope / constant), float(constant))


def risk(head: Head, length: int, snr: float) -> float:
    """The excess risk of a head on prompts of any length, exact."""
    return float(attention_risk(Spiked(length, snr), head.activation, head.overlaps))


def follow(trained: int, snr: float, used: list[int]) -> Risks:
    """Heads trained at one length, used at others; softmax also with its scores times a power of ln L'/ln L."""
    heads = {kind: train(kind, trained, snr) for kind in HEADS}
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
    """One head trained at one length and used at another: its risk there, drawn and exact, and that of its training."""

    head: str
    trained: int
    used: int
    drawn: float
    std_error: float
    exact: float
    at_training: float


def compare(snr: float, prompts: int, *, key: PRNGKeyArray) -> list[Trial]:
    """Exact risks against drawn prompts, for every head and pair (L, L')."""
    found = []
    for index, (trained, used) in enumerate(PAIRS):
        heads = {kind: train(kind, trained, snr) for kind in HEADS}
        drawn = squares(list(heads.values()), used, snr, prompts, key=jr.fold_in(key, index))
        for (kind, head), these in zip(heads.items(), drawn, strict=True):
            measured, error = float(these.mean()), float(standard_error(these))
            found.append(Trial(kind, trained, used, measured, error, risk(head, used, snr), risk(head, trained, snr)))
    return found


def squares(
    heads: list[Head], length: int, snr: float, prompts: int, *, key: PRNGKeyArray
) -> Float[np.ndarray, "heads prompts"]:
    """Squared errors of heads on drawn prompts, the hidden token put first; all heads see the same."""

    random, parts = generator(key), []
    for _ in range(-(-prompts // TOGETHER)):
        scores, values = random.standard_normal((2, TOGETHER, length))
        scores[:, 0] += np.sqrt(snr)
        weights = [head.value * np.asarray(head.activation.weights(head.key * scores)) for head in heads]
        parts.append([(values[:, 0] - np.sum(each * values, axis=1)) ** 2 for each in weights])
    return np.concatenate(parts, axis=1)[:, :prompts]
