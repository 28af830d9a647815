"""The two models of a relevant token, and risks that several figures show."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
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
    rows = [_both_integrals(replace(task, length=n, snr=nu)) for n, nu in zip(length.ravel(), snr.ravel(), strict=True)]
    return np.asarray(rows).T.reshape(2, *length.shape)


@jax.jit
def _both_integrals(task: Spiked | Max) -> Any:
    return task.bayes_integrals()


def posterior_slope(model: str, snr: float) -> float:
    """Return the slope at which softmax is the posterior: √ν in the spiked model, ν in the max model."""
    return snr**0.5 if model == "spiked" else snr


def best_sigmoid(model: str, tasks: LocationTask) -> Float[np.ndarray, "*stack"]:
    """Return the risk of the best sigmoid; its bias and slope are known in the spiked model and searched otherwise."""
    known = model == "spiked"
    return np.asarray(best_elementwise_risk(tasks) if known else best_risk(tasks, sigmoid))


def risk_at_slope(task: LocationTask, activation: Activation, c: float) -> float:
    """Return the risk of the head `k = c k*` with v along v* and of the best length."""
    mixture = activation.score_mixture(task, jnp.asarray(c), jnp.asarray(c**2))
    hidden, power = _weight_averages(activation, mixture)
    return float(1.0 - hidden**2 / power)


@jax.jit
def _weight_averages(activation: Activation, mixture: Any) -> Any:
    """Return the mean weight of the relevant token, and the mean of the sum of squared weights."""
    moments = activation.moments(mixture)
    return moments.hidden, moments.power
