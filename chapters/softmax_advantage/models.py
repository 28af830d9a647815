"""The two models of a hidden token, and the risks that several figures ask of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from lib.single_location import (
    LocationTask,
    Max,
    Moments,
    Spiked,
    bayes_integrals,
    best_elementwise_risk,
    best_risk,
    optimal_risk,
    sigmoid,
)

MODELS = {"spiked": Spiked, "max": Max}
# A prompt and a hint, neither trivial nor hopeless, at which single heads are looked at.
GENERIC_LENGTH, GENERIC_SNR = 10, 4.0


class Keys(NamedTuple):
    """One key a simulation of the chapter: there is one."""

    cosine: PRNGKeyArray


def prompt_key(seed: int) -> PRNGKeyArray:
    """For the prompt that is shown, and those that are answered beside it."""
    return jr.fold_in(jr.key(seed), 1)


def keys(seed: int) -> Keys:
    """The chapter's keys, all from `seed`."""
    return Keys(jr.key(seed))


@dataclass(frozen=True)
class Risks:
    """Of one model and length, along strengths ν of the hint: the lowest risk of each kind of head."""

    snrs: Float[np.ndarray, " snrs"]
    by_head: Mapping[str, Float[np.ndarray, " snrs"]]


def bayes_risk(task: LocationTask) -> Float[np.ndarray, "*stack"]:
    """The first of the two integrals: both are asked for somewhere, so one compilation serves."""
    return np.asarray(bayes_integrals(task)[0])


def posterior_slope(model: str, snr: float) -> float:
    """The slope at which softmax is the posterior of the hidden token: √ν in the spiked model, ν in the max model."""
    return snr**0.5 if model == "spiked" else snr


def best_sigmoid(model: str, tasks: LocationTask) -> Float[np.ndarray, "*stack"]:
    """In the spiked model the best bias and slope are known; in the max model they are searched."""
    known = model == "spiked"
    return np.asarray(best_elementwise_risk(tasks) if known else best_risk(tasks, sigmoid))


def best_scale(these: Moments) -> Float[np.ndarray, "*stack"]:
    """The risk with v along v* and as long as is best."""
    return np.asarray(optimal_risk(these.hidden, these.power))
