"""Growth and spread of the outputs of Laplace prompts with the length, below, near and beyond the pole."""

from collections.abc import Mapping
from typing import NamedTuple

import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray, UInt

from chapters.gaussian_limit.drawn_numbers import TOGETHER, laplace_numbers, prompt_keys
from chapters.gaussian_limit.one_coordinate import prompt_outputs
from chapters.gaussian_limit.parameters import FITTED_PROMPTS, LONG
from lib.batching import in_batches
from lib.statistics import standard_error

# Tilts of the three panels, in units of the pole 1/b.
INSIDE, BETWEEN, BEYOND = 0.4, 0.8, 2.5

# Outputs of all prompts of one length, by tilt.
ByTilt = Mapping[float, Float[np.ndarray, " prompts"]]


def simulate_outputs(counts: Mapping[int, int], *, key: PRNGKeyArray) -> dict[int, ByTilt]:
    """Return, for each length, the outputs of `counts[length]` prompts of Laplace tokens of scale 1."""
    return {length: _outputs(length, count, key=jr.fold_in(key, length)) for length, count in counts.items()}


def _outputs(length: int, prompts: int, *, key: PRNGKeyArray) -> ByTilt:
    """Return outputs for Laplace tokens of scale 1, by tilt; the three tilts share their prompts."""
    tilts = np.asarray([INSIDE, BETWEEN, BEYOND])

    def outputs(keys: UInt[np.ndarray, "n 2"]) -> Float[np.ndarray, "n tilts"]:
        return prompt_outputs(tilts, laplace_numbers(keys, length))

    of_prompts = in_batches(outputs, prompt_keys(key, prompts), batch=max(1, min(prompts, TOGETHER // length)))
    return dict(zip(tilts.tolist(), of_prompts.T, strict=True))


class Growth(NamedTuple):
    """Slope of the mean output in ln L, its standard error, and the offset of a line of slope one."""

    slope: float
    std_error: float
    offset: float


def growth(outputs: Mapping[int, ByTilt], tilt: float) -> Growth:
    """Return the growth of the mean output, fitted to long prompts."""
    fitted = _long(outputs, tilt)
    x, means = np.log(list(fitted)), np.asarray([values.mean() for values in fitted.values()])
    errors = np.asarray([standard_error(values) for values in fitted.values()])
    return Growth(*weighted_slope(x, means, errors), float(np.average(means - x, weights=errors**-2)))


def spread_exponent(outputs: Mapping[int, ByTilt], tilt: float) -> tuple[float, float]:
    """Return the slope in ln L of the log of the mean absolute deviation, and its standard error (delta method)."""
    fitted = _long(outputs, tilt)
    spreads, errors = np.transpose([mean_absolute_deviation(values) for values in fitted.values()])
    return weighted_slope(np.log(list(fitted)), np.log(spreads), errors / spreads)


def mean_absolute_deviation(values: Float[np.ndarray, " prompts"]) -> tuple[float, float]:
    """Return `E |x - E x|` and its standard error, including the error of the centre.

    Moving the centre by ε changes it by `-ε E sign(x - E x)`, which is not zero for a skewed distribution.
    """
    offsets = values - values.mean()
    deviations = np.abs(offsets)
    return float(deviations.mean()), float(standard_error(deviations - np.sign(offsets).mean() * offsets))


def _long(outputs: Mapping[int, ByTilt], tilt: float) -> dict[int, Float[np.ndarray, " prompts"]]:
    """Return the outputs at lengths that are long enough for the fit in ln L and have enough prompts to weight it."""
    long = {length: by_tilt[tilt] for length, by_tilt in outputs.items() if length >= LONG}
    return {length: values for length, values in long.items() if len(values) >= FITTED_PROMPTS}


def weighted_slope(x: np.ndarray, y: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Return the slope of the weighted least-squares line through independent points `y ± errors`, and its error.

    Args:
      x: abscissae, shape (n,), n ≥ 2, not all equal.
      y: ordinates, shape (n,).
      errors: standard errors of the ordinates, shape (n,), positive.

    Returns:
      The slope and its standard error, which follows from `errors` and not from the scatter about the line.
    """
    weights = errors**-2
    centred = x - np.average(x, weights=weights)
    precision = float(np.sum(weights * centred**2))
    return float(np.sum(weights * centred * y)) / precision, precision**-0.5
