"""Heads for prompts of random length: one head for all lengths, and one head per length."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int

from chapters.softmax_variations.models import GENERIC_LENGTH, GENERIC_SNR, MODELS, bayes_risk
from lib.single_location import Activation, LocationTask, erf, linear, sigmoid, softmax

# The mean of the distribution of lengths, which is L = mean ± width with equal chances.
MEAN_LENGTH = GENERIC_LENGTH
# Element-wise heads; slope, bias (if there is one) and scale are tuned.
ELEMENTWISE = {"linear": linear, "sigmoid": sigmoid, "erf": erf}


@dataclass(frozen=True)
class FixedHead:
    """Risks of one kind of head, along widths of the distribution of lengths.

    `risk` is that of one head, the best for the distribution; `per_length` is the mean risk of two heads, each the best
    for one of the lengths; `bayes` is the mean of the Bayes risks of both lengths.
    """

    widths: Int[np.ndarray, " widths"]
    risk: Float[np.ndarray, " widths"]
    per_length: Float[np.ndarray, " widths"]
    bayes: Float[np.ndarray, " widths"]


def solve_best_fixed_heads() -> dict[tuple[str, str], FixedHead]:
    """Return risks by model and kind of head, for prompts of `MEAN_LENGTH - width` or `MEAN_LENGTH + width` tokens."""
    widths = np.arange(0, MEAN_LENGTH - 1, 2)
    heads = {}
    for model, make in MODELS.items():
        ends = make(np.stack([MEAN_LENGTH - widths, MEAN_LENGTH + widths]), GENERIC_SNR)
        bayes = bayes_risk(ends).mean(axis=0)
        heads[model, "softmax"] = FixedHead(widths, _softmax_risk(model, ends), bayes, bayes)
        marginals = [
            [score_marginals(make(length, GENERIC_SNR)) for length in both] for both in np.asarray(ends.length).T
        ]
        for name, activation in ELEMENTWISE.items():
            risk = [lowest_risk(activation, pooled(both)) for both in marginals]
            per_length = [np.mean([lowest_risk(activation, marginal) for marginal in both]) for both in marginals]
            heads[model, name] = FixedHead(widths, np.asarray(risk), np.asarray(per_length), bayes)
    return heads


def _softmax_risk(model: str, ends: LocationTask) -> Float[np.ndarray, " widths"]:
    """Return the risk of the softmax head whose weights are the posterior, with the best length of its value vector."""
    c = np.asarray(GENERIC_SNR**0.5 if model == "spiked" else GENERIC_SNR)
    lengths = np.asarray(ends.length)
    tasks = [MODELS[model](length, GENERIC_SNR) for length in lengths.ravel()]
    moments = [softmax.head_moments(_in_numpy(task), c, c**2) for task in tasks]
    averages = np.asarray([(of_task.hidden, of_task.power) for of_task in moments])
    hidden, power = averages.T.reshape(2, *lengths.shape).mean(axis=1)
    return 1.0 - hidden**2 / power


def _in_numpy(task: LocationTask) -> LocationTask:
    """Return the task with arrays of NumPy, for which nothing is compiled."""
    return jax.tree.map(np.asarray, task)


def score_marginals(task: LocationTask) -> Any:
    """Return the distributions of the relevant score along k* and of another score."""
    return _in_numpy(task).marginals(np.ones(()), np.ones(()))


def lowest_risk(activation: Activation, marginals: Any) -> float:
    """Return the lowest risk of an element-wise head whose scores have these distributions."""
    with np.errstate(all="ignore"):
        return float(activation.lowest_risk(marginals))


def pooled(marginals: Sequence[Any]) -> Any:
    """Return the score distribution, averaged over tokens, of prompts that follow any of `marginals` equally often."""
    rest = [marginal.length - 1.0 for marginal in marginals]
    return replace(
        marginals[0],
        length=sum(marginal.length for marginal in marginals) / len(marginals),
        hidden=sum(marginal.hidden for marginal in marginals) / len(marginals),
        others=sum(n * marginal.others for n, marginal in zip(rest, marginals, strict=True)) / sum(rest),
        resolved=np.all([marginal.resolved for marginal in marginals]),
    )
