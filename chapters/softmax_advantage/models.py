"""The two models of a relevant token, and risks that several figures show."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from lib.single_location import (
    LocationTask,
    Max,
    Spiked,
    bayes_integrals,
    best_elementwise_risk,
    best_risk,
    optimal_risk,
    sigmoid,
)

MODELS = {"spiked": Spiked, "max": Max}
# Length and signal strength at which single heads are evaluated; the task is neither trivial nor hopeless.
GENERIC_LENGTH, GENERIC_SNR = 10, 4.0


@dataclass(frozen=True)
class Risks:
    """The lowest risk of each kind of head along signal strengths ν, for one model and length."""

    snrs: Float[np.ndarray, " snrs"]
    by_head: Mapping[str, Float[np.ndarray, " snrs"]]


def bayes_risk(task: LocationTask) -> Float[np.ndarray, "*stack"]:
    """Return the Bayes risk by the first of its two integrals; one compilation serves all figures."""
    return np.asarray(bayes_integrals(task)[0])


def posterior_slope(model: str, snr: float) -> float:
    """Return the slope at which softmax is the posterior: √ν in the spiked model, ν in the max model."""
    return snr**0.5 if model == "spiked" else snr


def best_sigmoid(model: str, tasks: LocationTask) -> Float[np.ndarray, "*stack"]:
    """Return the risk of the best sigmoid; its bias and slope are known in the spiked model and searched otherwise."""
    known = model == "spiked"
    return np.asarray(best_elementwise_risk(tasks) if known else best_risk(tasks, sigmoid))


def best_scale(moments: Any) -> Float[np.ndarray, "*stack"]:
    """Return the risk with v along v* and of the best length."""
    return np.asarray(optimal_risk(moments.hidden, moments.power))
