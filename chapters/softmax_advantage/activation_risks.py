"""Eight activations, and the lowest risk of each; what a bias makes of softplus, and which half is worth more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from chapters.softmax_advantage.models import MODELS, bayes_risk, best_scale, posterior_slope
from lib.single_location import (
    Activation,
    LocationTask,
    Overlaps,
    Softplus,
    Spiked,
    attention_moments,
    best_elementwise_risk,
    best_risk,
    erf,
    exp,
    hardmax,
    linear,
    relu,
    sigmoid,
    softmax,
    softplus,
)

# Biases that softplus is given, from where it still differs from softmax to where it does not any more.
BIASES = (-2.0, -4.0, -8.0, -16.0, -64.0)
# Spiked tasks (L, ν) in which softplus and the best element-wise weights are compared: short prompts at weak hints and
# at strong ones, and a longer prompt.
SHORT, STRONG, LONG = ((2, 5.0), (3, 2.0)), ((2, 20.0), (3, 20.0), (2, 60.0), (3, 60.0)), (10, 6.0)


class ActivationKind(NamedTuple):
    """An activation: is it normalised over the tokens, does it grow exponentially, is its bias searched?"""

    activation: Activation
    normalised: bool
    exponential: bool
    biased: bool = False


ACTIVATIONS = {
    "softmax": ActivationKind(softmax, normalised=True, exponential=True),
    "hardmax": ActivationKind(hardmax, normalised=True, exponential=True),
    "softplus": ActivationKind(softplus, normalised=True, exponential=False),
    "exp": ActivationKind(exp, normalised=False, exponential=True),
    "sigmoid": ActivationKind(sigmoid, normalised=False, exponential=False, biased=True),
    "erf": ActivationKind(erf, normalised=False, exponential=False, biased=True),
    "relu": ActivationKind(relu, normalised=False, exponential=False, biased=True),
    "linear": ActivationKind(linear, normalised=False, exponential=False),
}


@dataclass(frozen=True)
class ActivationRisks:
    """Of one model: the Bayes risk, the lowest risk of each activation, and risks of softplus by the bias it is given.

    The last are at the slope of the posterior, so that each is at least as large as the lowest at its bias.
    """

    bayes: float
    risks: Mapping[str, float]
    shifted: Mapping[float, float]


@dataclass(frozen=True)
class SoftplusLeads:
    """Lowest risk of softplus, which is normalised only, less that of element-wise weights, which are neither.

    In the spiked model, for the tasks of `SHORT`, of `STRONG`, and for `LONG`.
    """

    short: Float[np.ndarray, " short"]
    strong: Float[np.ndarray, " strong"]
    long: float


def best_risks(length: int, snr: float) -> dict[str, ActivationRisks]:
    """By model: the best risk of every activation, and softplus shifted."""
    return {model: _best_risks(model, make(length, snr)) for model, make in MODELS.items()}


def compare_softplus() -> SoftplusLeads:
    """Compare softplus without a bias with the best element-wise weights, in short prompts and in a longer one."""
    tasks = Spiked(*np.asarray([*SHORT, *STRONG, LONG]).T)
    lead = np.asarray(best_risk(tasks, softplus)) - np.asarray(best_elementwise_risk(tasks))
    return SoftplusLeads(lead[: len(SHORT)], lead[len(SHORT) : -1], float(lead[-1]))


def _best_risks(model: str, task: LocationTask) -> ActivationRisks:
    bayes = float(bayes_risk(task))
    c = posterior_slope(model, float(task.snr))
    overlaps = Overlaps(c, c**2, 1.0, 1.0)
    shifted = {bias: float(best_scale(attention_moments(task, Softplus(bias), overlaps))) for bias in BIASES}
    risks = {
        name: bayes if name == "softmax" else float(best_risk(task, species.activation))
        for name, species in ACTIVATIONS.items()
    }
    return ActivationRisks(bayes, risks, shifted)
