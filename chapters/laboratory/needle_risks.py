"""Risks of four kinds of heads of single-location regression."""

from collections.abc import Mapping
from functools import partial

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from chapters.laboratory.grids import Axis, Grid, Values
from chapters.laboratory.ranges import LARGEST_NEEDLE_DECADE
from chapters.laboratory.trials import Trial, uniform
from lib.batching import in_batches
from lib.single_location import Spiked, bayes_risk, best_elementwise_risk, best_risk, hardmax, linear

LARGEST_SNR = 81.0
RISKS = {
    "softmax": bayes_risk,
    "element_wise": best_elementwise_risk,
    "linear": partial(best_risk, activation=linear),
    "largest_score": partial(best_risk, activation=hardmax),
}


def solve_needle_risks(nodes: int, settings: int, *, key: PRNGKeyArray) -> Trial:
    """Return the risks at the nodes, and at random settings, uniform in ν and in log L, with integer L."""
    highest = np.sqrt(2 * np.log(10.0**LARGEST_NEEDLE_DECADE - 1))
    axes = [Axis.between("scale", 0.0, np.sqrt(LARGEST_SNR), nodes), Axis.between("top", 0.0, highest, nodes)]
    snrs, decades = uniform(key, settings, (0.0, LARGEST_SNR), (np.log10(2.0), LARGEST_NEEDLE_DECADE))
    lengths = np.round(10.0 ** np.asarray(decades))
    places = (np.sqrt(np.asarray(snrs)), np.sqrt(2 * np.log(lengths - 1)))
    return Trial(Grid.of(axes, exactly), places, exactly(*places))


def exactly(scale: Values, top: Values) -> Mapping[str, Values]:
    """Return the risks of the library at signal strengths scale² in prompts with √(2 ln(L - 1)) = top."""
    lengths = 1 + np.exp(top**2 / 2)
    # traced lengths, because a node need not be an integer length; the integrals of the library accept it
    risks = {name: in_batches(partial(_risk, name), lengths.ravel(), scale.ravel() ** 2) for name in RISKS}
    return {name: np.log(risk).reshape(scale.shape) for name, risk in risks.items()}


@partial(jax.jit, static_argnums=0)
def _risk(name, length, snr):
    return RISKS[name](Spiked(length, snr))
