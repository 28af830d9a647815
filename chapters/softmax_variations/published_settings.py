"""Least risks of four heads in the settings of the published figure."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from chapters.softmax_variations.fixed_heads import lowest_risk, pooled, score_marginals
from chapters.softmax_variations.log_ratios import max_log_ratio, spiked_log_ratio
from chapters.softmax_variations.models import MODELS, bayes_risk
from chapters.softmax_variations.style import STRONGEST
from lib.single_location import Prompts, erf, linear, softmax, softplus

# Steps of the lattices of scores on which slopes are searched and risks are evaluated, by length.
SEARCH_STEPS, RISK_STEPS = {1: 0.1, 2: 0.1, 3: 0.15}, {1: 0.05, 2: 0.05, 3: 0.09}
NORMALISED = {"softmax": softmax, "softplus": softplus}
ELEMENTWISE = {"erf": erf, "linear": linear}


class Setting(NamedTuple):
    """A model, and the equally likely lengths of its prompts."""

    model: str
    lengths: tuple[int, ...]


SETTINGS = {
    "spiked, $L=2$": Setting("spiked", (2,)),
    "max, $L=2$": Setting("max", (2,)),
    "max, $L$ = 1, 2 or 3": Setting("max", (1, 2, 3)),
}


@dataclass(frozen=True)
class Curves:
    """The Bayes risk and the lowest risk of each kind of head along ν, in one setting."""

    snrs: Float[np.ndarray, " snrs"]
    bayes: Float[np.ndarray, " snrs"]
    by_head: Mapping[str, Float[np.ndarray, " snrs"]]


def solve_best_risks(points: int) -> dict[str, Curves]:
    """Return the curves of every setting at `points` signal strengths from 0 to `STRONGEST`."""
    snrs = np.linspace(0.0, STRONGEST, points)
    return {name: _best_risks(setting, snrs) for name, setting in SETTINGS.items()}


def _best_risks(setting: Setting, snrs: Float[np.ndarray, " snrs"]) -> Curves:
    make, by_head = MODELS[setting.model], _normalised_risks(setting, snrs)
    marginals = [pooled([score_marginals(make(length, snr)) for length in setting.lengths]) for snr in snrs]
    for name, activation in ELEMENTWISE.items():
        by_head[name] = np.asarray([lowest_risk(activation, marginal) for marginal in marginals])
    bayes = np.mean([bayes_risk(make(length, snrs)) for length in setting.lengths], axis=0)
    return Curves(snrs, bayes, by_head)


def _normalised_risks(setting: Setting, snrs: Float[np.ndarray, " snrs"]) -> dict[str, Float[np.ndarray, " snrs"]]:
    search_prompts = _prompts(setting, SEARCH_STEPS, snrs[:, None, None])
    slopes = np.asarray([Prompts.best_slopes(activation, search_prompts) for activation in NORMALISED.values()])
    risks = []
    # finer lattices of one signal strength at a time, because those of all do not fit into memory
    for snr, of_heads in zip(snrs, slopes.T, strict=True):
        prompts = _prompts(setting, RISK_STEPS, snr)
        heads = zip(NORMALISED.values(), of_heads, strict=True)
        risks.append([Prompts.risk(activation, slope, prompts) for activation, slope in heads])
    return dict(zip(NORMALISED, np.asarray(risks).T, strict=True))


def _prompts(setting: Setting, steps: Mapping[int, float], snr: float | Float[np.ndarray, "snrs 1 1"]) -> list[Prompts]:
    """Return the prompts of each length, on lattices of these steps."""
    log_ratio, shift = (max_log_ratio, 0.0) if setting.model == "max" else (spiked_log_ratio, np.sqrt(STRONGEST))
    return [
        Prompts.of(partial(log_ratio, snr=snr), length, step=steps[length], shift=shift) for length in setting.lengths
    ]
