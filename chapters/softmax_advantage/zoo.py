"""Eight activations, and the lowest risk of each; what a bias makes of softplus, and which half is worth more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from chapters.softmax_advantage.models import MODELS, bayes_risk, best_scale, posterior_slope
from lib import single_location as sl
from lib.single_location.activations import Softplus
from lib.single_location.population import moments

# Biases that softplus is given, from where it still differs from softmax to where it does not any more.
BIASES = (-2.0, -4.0, -8.0, -16.0, -64.0)
# Spiked tasks in which softplus and the best element-wise weights are compared: short prompts, and a longer one.
SHORT, LONG = ((2, 5.0), (3, 2.0)), (10, 6.0)


class Species(NamedTuple):
    """An activation: is it normalised over the tokens, does it grow exponentially, is its bias searched?"""

    activation: sl.Activation
    normalised: bool
    exponential: bool
    biased: bool = False


ZOO = {
    "softmax": Species(sl.softmax, normalised=True, exponential=True),
    "hardmax": Species(sl.hardmax, normalised=True, exponential=True),
    "softplus": Species(sl.softplus, normalised=True, exponential=False),
    "exp": Species(sl.exp, normalised=False, exponential=True),
    "sigmoid": Species(sl.sigmoid, normalised=False, exponential=False, biased=True),
    "erf": Species(sl.erf, normalised=False, exponential=False, biased=True),
    "relu": Species(sl.relu, normalised=False, exponential=False, biased=True),
    "linear": Species(sl.linear, normalised=False, exponential=False),
}


@dataclass(frozen=True)
class Zoo:
    """Of one model: the Bayes risk, the lowest risk of each activation, and risks of softplus by the bias it is given.

    The last are at the slope of the posterior, so that each is at least as large as the lowest at its bias.
    """

    bayes: float
    risks: Mapping[str, float]
    shifted: Mapping[float, float]


@dataclass(frozen=True)
class Halves:
    """Lowest risks in the spiked model: of softplus, normalised only, and of element-wise weights, which are neither.

    One entry a task of `SHORT`, and of `LONG` the last.
    """

    normalised: Float[np.ndarray, " tasks"]
    neither: Float[np.ndarray, " tasks"]


def best_risks(length: int, snr: float) -> dict[str, Zoo]:
    """By model: the best risk of every activation, and softplus shifted."""
    return {model: _best_risks(model, make(length, snr)) for model, make in MODELS.items()}


def compare_halves() -> Halves:
    """Softplus without a bias against the best element-wise weights there are, for short prompts and for long ones."""
    tasks = sl.Spiked(*np.asarray([*SHORT, LONG]).T)
    return Halves(np.asarray(sl.best_risk(tasks, sl.softplus)), np.asarray(sl.best_elementwise_risk(tasks)))


def _best_risks(model: str, task: sl.LocationTask) -> Zoo:
    bayes = float(bayes_risk(task))
    c = posterior_slope(model, float(task.snr))
    overlaps = sl.Overlaps(c, c**2, 1.0, 1.0)
    shifted = {bias: float(best_scale(moments(task, Softplus(bias), overlaps))) for bias in BIASES}
    risks = {
        name: bayes if name == "softmax" else float(sl.best_risk(task, species.activation))
        for name, species in ZOO.items()
    }
    return Zoo(bayes, risks, shifted)
