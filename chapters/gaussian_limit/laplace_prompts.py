"""Prompts of Laplace tokens before, near and beyond the pole, and how their outputs grow and spread with the length."""

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.gaussian_limit.one_coordinate import unit_head
from chapters.gaussian_limit.parameters import FITTED_PROMPTS, LONG
from lib.attention import attend
from lib.batching import map_batched
from lib.measures import Laplace, empirical
from lib.statistics import standard_error, weighted_slope

# Where the three panels are taken, in units of the pole 1/b.
INSIDE, BETWEEN, BEYOND = 0.4, 0.8, 2.5

# Outputs of all prompts of one length, by tilt.
ByTilt = Mapping[float, Float[np.ndarray, " prompts"]]


def simulate(counts: Mapping[int, int], *, key: PRNGKeyArray) -> dict[int, ByTilt]:
    """By length: outputs for Laplace tokens of scale 1, of that many prompts as `counts` says."""
    return {length: _outputs(length, count, key=jr.fold_in(key, length)) for length, count in counts.items()}


def _outputs(length: int, prompts: int, *, key: PRNGKeyArray) -> ByTilt:
    """Outputs for Laplace tokens of scale 1, by tilt; the three tilts are asked of the same prompts."""
    law = Laplace([1.0])
    tilts = (INSIDE, BETWEEN, BEYOND)

    def one(index):
        prompt = empirical(law, length, key=jr.fold_in(key, index))
        return jax.vmap(lambda tilt: attend(unit_head(), prompt, tilt[None])[0])(jnp.asarray(tilts))

    outputs = np.asarray(map_batched(one, jnp.arange(prompts), size=length))
    return dict(zip(tilts, outputs.T, strict=True))


class Growth(NamedTuple):
    """Slope of the mean output in ln L, its standard error, and the offset of a line of slope one."""

    slope: float
    std_error: float
    offset: float


def growth(outputs: Mapping[int, ByTilt], tilt: float) -> Growth:
    """Fitted to the long prompts."""
    kept = _long(outputs, tilt)
    x, means = np.log(list(kept)), np.asarray([values.mean() for values in kept.values()])
    errors = np.asarray([standard_error(values) for values in kept.values()])
    return Growth(*weighted_slope(x, means, errors), float(np.average(means - x, weights=errors**-2)))


def spread_exponent(outputs: Mapping[int, ByTilt], tilt: float) -> tuple[float, float]:
    """Slope in ln L of the log of the mean absolute deviation, and its standard error by the delta method."""
    kept = _long(outputs, tilt)
    spreads, errors = np.transpose([mean_absolute_deviation(values) for values in kept.values()])
    return weighted_slope(np.log(list(kept)), np.log(spreads), errors / spreads)


def mean_absolute_deviation(values: Float[np.ndarray, " prompts"]) -> tuple[float, float]:
    """`E |x - E x|`, and its standard error, the error of the mean it is taken around included.

    Moving the centre by ε changes it by `-ε E sign(x - E x)`, which is not zero for a skewed law.
    """
    offsets = values - values.mean()
    deviations = np.abs(offsets)
    return float(deviations.mean()), float(standard_error(deviations - np.sign(offsets).mean() * offsets))


def _long(outputs: Mapping[int, ByTilt], tilt: float) -> dict[int, Float[np.ndarray, " prompts"]]:
    """By length: the outputs of prompts long enough for a law in ln L, and enough for a standard error to weigh by."""
    kept = {length: by_tilt[tilt] for length, by_tilt in outputs.items() if length >= LONG}
    return {length: values for length, values in kept.items() if len(values) >= FITTED_PROMPTS}
