"""Prompts of Laplace tokens before, near and beyond the pole, and how their outputs grow and spread with the length."""

from collections.abc import Mapping
from functools import partial
from math import cos, gamma, pi
from typing import NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.gaussian_limit.one_coordinate import unit_head
from chapters.gaussian_limit.parameters import FITTED_PROMPTS, LONG
from lib.attention import attend
from lib.batching import map_batched
from lib.measures import Laplace, empirical
from lib.statistics import quantile_error, standard_error, weighted_slope

# Where the three panels are taken, in units of the pole 1/b.
INSIDE, BETWEEN, BEYOND = 0.4, 0.8, 2.5

# ln L of prompts far too long to be drawn token by token; how many there are, and how many of their largest tokens.
FAR = (50.0, 200.0)
FAR_PROMPTS, LARGEST = 4000, 2000

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


# By ln L: how far the output of each prompt is from its limit, times L^{1-ξ}.
FarErrors = Mapping[float, Float[np.ndarray, " prompts"]]


def simulate_far(*, key: PRNGKeyArray) -> FarErrors:
    """Errors, times L^{1-ξ}, of prompts of the lengths FAR at the tilt BETWEEN, for Laplace tokens of scale 1."""
    return {
        log_length: scaled_errors(log_length, FAR_PROMPTS, key=jr.fold_in(key, index))
        for index, log_length in enumerate(FAR)
    }


def scaled_errors(log_length: float, prompts: int, *, key: PRNGKeyArray) -> Float[np.ndarray, " prompts"]:
    """`L^{1-ξ} (T - Λ'(ξ))` at ξ = BETWEEN, from the LARGEST tokens of each prompt and the two moments of the others.

    The largest of L Laplace tokens are `ln(L/2) - ln Γ_j`, with Γ_j the arrival times of a Poisson process, up to
    relative errors of LARGEST/L. The sum over all other tokens is nearly normal.
    """
    draws = jax.jit(partial(_scaled_errors, log_length, prompts))
    return np.asarray(draws(key))


def _scaled_errors(log_length: float, prompts: int, key: PRNGKeyArray) -> Float[Array, " prompts"]:
    xi, unit = BETWEEN, np.exp((1 - BETWEEN) * log_length)
    limit, mean_weight = 2 * xi / (1 - xi**2), 1 / (1 - xi**2)
    arrival_key, rest_key = jr.split(key)
    arrivals = jnp.cumsum(jr.exponential(arrival_key, (prompts, LARGEST)), axis=1)
    tokens = log_length - np.log(2) - jnp.log(arrivals)
    weights = jnp.exp(xi * tokens - log_length)  # over L
    # all other tokens are below the last of these; their mean is the mean of all less that of the tokens above it
    edge = tokens[:, -1] - limit
    above = jnp.exp((xi - 1) * tokens[:, -1]) / (2 * (1 - xi))
    spread = jnp.sqrt(jnp.exp((2 * xi - 1) * tokens[:, -1] - log_length) / (2 * (2 * xi - 1)))
    noise = spread * jr.normal(rest_key, (prompts,))
    numerator = jnp.sum(weights * (tokens - limit), axis=1) - above * (edge + 1 / (1 - xi))
    numerator += noise * (edge - 1 / (2 * xi - 1))
    denominator = jnp.sum(weights, axis=1) + mean_weight - above + noise
    return unit * numerator / denominator


def far_growth(errors: FarErrors) -> tuple[float, float]:
    """Growth of the median of |error| with each unit of ln L, between the two lengths, and its standard error."""
    half = np.asarray([0.5])
    sizes = {log_length: np.abs(values) for log_length, values in errors.items()}
    near, far = (float(np.median(values)) for values in sizes.values())
    spreads = [float(quantile_error(values, half)[0]) for values in sizes.values()]
    apart = max(sizes) - min(sizes)
    return (far - near) / apart, float(np.hypot(*spreads)) / apart


def stable_median() -> float:
    """The median of |Y|, where `(T - Λ'(ξ)) L^{1-ξ} / ln L → Y` in law at ξ = BETWEEN, for tokens of scale 1.

    `Y = Σ_j κ Γ_j^{-ξ}`, centred, with κ = 2^{-ξ}(1 - ξ²): a stable variable of index 1/ξ, totally skewed.
    """
    from scipy.optimize import brentq
    from scipy.stats import levy_stable

    index = 1 / BETWEEN
    tail = (1 - index) / (gamma(2 - index) * cos(pi * index / 2))
    scale = 2**-BETWEEN * (1 - BETWEEN**2) * tail**-BETWEEN

    def excess(size: float) -> float:
        below, above = (levy_stable.cdf(place, index, 1.0, scale=scale) for place in (-size, size))
        return float(above - below) - 0.5

    return float(brentq(excess, 1e-3, 100.0))  # pyright: ignore[reportArgumentType]


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
