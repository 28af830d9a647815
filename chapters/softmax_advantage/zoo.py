"""Eight activations, and the lowest risk of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from chapters.softmax_advantage.models import MODELS, bayes_risk
from lib import single_location as sl


class Species(NamedTuple):
    """An activation: is it normalised over the tokens, does it grow exponentially?"""

    activation: sl.Activation
    normalised: bool
    exponential: bool


ZOO = {
    "softmax": Species(sl.softmax, normalised=True, exponential=True),
    "hardmax": Species(sl.hardmax, normalised=True, exponential=True),
    "softplus": Species(sl.softplus, normalised=True, exponential=False),
    "exp": Species(sl.exp, normalised=False, exponential=True),
    "sigmoid": Species(sl.sigmoid, normalised=False, exponential=False),
    "erf": Species(sl.erf, normalised=False, exponential=False),
    "relu": Species(sl.relu, normalised=False, exponential=False),
    "linear": Species(sl.linear, normalised=False, exponential=False),
}


@dataclass(frozen=True)
class Zoo:
    """Of one model: the Bayes risk, and the lowest risk of each activation."""

    bayes: float
    risks: Mapping[str, float]


def best_risks(length: int, snr: float) -> dict[str, Zoo]:
    """By model: the best risk of every activation."""
    return {model: _best_risks(make(length, snr)) for model, make in MODELS.items()}


def _best_risks(task: sl.LocationTask) -> Zoo:
    bayes = float(bayes_risk(task))
    risks = {
        name: bayes if name == "softmax" else float(sl.best_risk(task, species.activation))
        for name, species in ZOO.items()
    }
    return Zoo(bayes, risks)
