"""The two models of a relevant token, and risks that several figures show."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from lib import single_location
from lib.single_location import (
    Activation,
    LocationTask,
    Max,
    Spiked,
    best_elementwise_risk,
    best_risk,
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
    """Return the Bayes risk as a NumPy array."""
    return np.asarray(single_location.bayes_risk(task))


def bayes_integrals(task: Spiked | Max) -> Float[np.ndarray, "2 *stack"]:
    """Return the Bayes risk by two integrals with different integrands, which are equal by an integration by parts."""
    length, snr = np.broadcast_arrays(task.length, task.snr)
    tasks = (replace(task, length=n, snr=nu) for n, nu in zip(length.ravel(), snr.ravel(), strict=True))
    with np.errstate(all="ignore"):
        integrals = [_in_numpy(one).bayes_integrals() for one in tasks]
    return np.reshape(integrals, (*length.shape, 2)).T


def _in_numpy(task: Any) -> Any:
    """Return the task with arrays of NumPy, for which nothing is compiled."""
    return jax.tree.map(np.asarray, task)


def posterior_slope(model: str, snr: float) -> float:
    """Return the slope at which softmax is the posterior: √ν in the spiked model, ν in the max model."""
    return snr**0.5 if model == "spiked" else snr


def best_sigmoid(model: str, tasks: LocationTask) -> Float[np.ndarray, "*stack"]:
    """Return the risk of the best sigmoid; its bias and slope are known in the spiked model and searched otherwise."""
    known = model == "spiked"
    return np.asarray(best_elementwise_risk(tasks) if known else best_risk(tasks, sigmoid))


def risk_at_slope(task: LocationTask, activation: Activation, c: float) -> float:
    """Return the risk of the head `k = c k*` with v along v* and of the best length."""
    with np.errstate(all="ignore"):
        moments = activation.head_moments(_in_numpy(task), np.asarray(c), np.asarray(c**2))
    return float(1.0 - moments.hidden**2 / moments.power)
