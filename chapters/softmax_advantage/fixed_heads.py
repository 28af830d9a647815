"""Heads that are tuned to one length and meet prompts of two others."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from chapters.softmax_advantage.models import GENERIC_LENGTH, GENERIC_SNR, MODELS, bayes_risk, best_scale
from lib import single_location as sl
from lib.single_location.activations import Activation, affine_fit
from lib.single_location.population import lone_posterior, moments

# The widest law of lengths: L = mean ± width, with equal chances.
MEAN_LENGTH = GENERIC_LENGTH


@dataclass(frozen=True)
class FixedHead:
    """Of one head, along widths of the law of lengths: its risk, and the mean of the Bayes risks of both lengths."""

    widths: Int[np.ndarray, " widths"]
    risk: Float[np.ndarray, " widths"]
    bayes: Float[np.ndarray, " widths"]


def fix_heads() -> dict[tuple[str, str], FixedHead]:
    """By model and head: prompts of `MEAN_LENGTH ± width` tokens; heads fixed at what is best for the mean length."""
    heads = {}
    for model, make in MODELS.items():
        for name, (activation, c) in _tuned(model).items():
            widths = np.arange(MEAN_LENGTH - 1)
            ends = make(np.stack([MEAN_LENGTH - widths, MEAN_LENGTH + widths]), GENERIC_SNR)
            both = moments(ends, activation, sl.Overlaps(c, c**2, 1.0, 1.0))
            either = jax.tree.map(lambda leaf: leaf.mean(axis=0), both)
            heads[model, name] = FixedHead(widths, best_scale(either), bayes_risk(ends).mean(axis=0))
    return heads


def _tuned(model: str) -> dict[str, tuple[Activation, float]]:
    """Activations, each with the slope that is best at the mean length."""
    mean = MODELS[model](MEAN_LENGTH, np.asarray(GENERIC_SNR))
    slope = float(affine_fit(mean.marginals(jnp.ones(()), jnp.ones(())))[1])
    sharp = np.sqrt(GENERIC_SNR) if model == "spiked" else GENERIC_SNR
    return {
        "softmax": (sl.softmax, sharp),
        "sigmoid": (lone_posterior(sl.Spiked(MEAN_LENGTH, GENERIC_SNR)), np.sqrt(GENERIC_SNR)),
        "linear": (sl.linear, slope),
    }
