"""The lowest risks of eight activations, the effect of a bias on softplus, and softplus against element-wise
weights."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from chapters.softmax_advantage.models import MODELS, bayes_risk, posterior_slope, risk_at_slope
from lib.single_location import (
    Activation,
    LocationTask,
    Spiked,
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

# Biases of softplus, from one at which it differs from softmax to one at which it does not.
BIASES = (-2.0, -4.0, -8.0, -16.0, -64.0)
# Spiked tasks (L, ν) in which softplus and the best element-wise weights are compared: short prompts at weak signals
# and at strong ones, and a longer prompt.
SHORT, STRONG, LONG = ((2, 5.0), (3, 2.0)), ((2, 20.0), (3, 20.0), (2, 60.0), (3, 60.0)), (10, 6.0)


class ActivationKind(NamedTuple):
    """An activation, and whether it is normalised over the tokens, grows exponentially and has a bias to search."""

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
    """The Bayes risk, the lowest risk of each activation, and risks of softplus by its bias, in one model.

    The risks of softplus in `shifted` are at the slope of the posterior, so they are upper bounds of the lowest ones.
    """

    bayes: float
    risks: Mapping[str, float]
    shifted: Mapping[float, float]


@dataclass(frozen=True)
class SoftplusLeads:
    """The lowest risk of softplus without a bias minus that of element-wise weights, in the spiked model.

    The fields are for the tasks of `SHORT` and of `STRONG`, and for `LONG`.
    """

    short: Float[np.ndarray, " short"]
    strong: Float[np.ndarray, " strong"]
    long: float


def solve_best_risks(length: int, snr: float) -> dict[str, ActivationRisks]:
    """Return by model the best risk of every activation, and the risks of softplus by its bias."""
    return {model: _best_risks(model, make(length, snr)) for model, make in MODELS.items()}


def solve_softplus_leads() -> SoftplusLeads:
    """Return the lead of the best element-wise weights over softplus without a bias, on short and longer prompts."""
    tasks = Spiked(*np.asarray([*SHORT, *STRONG, LONG]).T)
    lead = np.asarray(best_risk(tasks, softplus)) - np.asarray(best_elementwise_risk(tasks))
    return SoftplusLeads(lead[: len(SHORT)], lead[len(SHORT) : -1], float(lead[-1]))


def _best_risks(model: str, task: LocationTask) -> ActivationRisks:
    bayes = float(bayes_risk(task))
    c = posterior_slope(model, float(task.snr))
    shifted = {bias: risk_at_slope(task, replace(softplus, bias=bias), c) for bias in BIASES}
    risks = {
        name: bayes if name == "softmax" else float(best_risk(task, kind.activation))
        for name, kind in ACTIVATIONS.items()
    }
    return ActivationRisks(bayes, risks, shifted)
