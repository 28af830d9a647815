"""Rate of the error of Laplace prompts between half the pole and the pole, for prompts too long to sample fully."""

from collections.abc import Mapping
from functools import partial
from math import cos, gamma, pi

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from chapters.gaussian_limit.laplace_prompts import BETWEEN

# ln L of the prompts; number of prompts of each length, and number of their largest tokens that are sampled.
FAR = (50.0, 200.0)
FAR_PROMPTS, LARGEST = 4000, 2000

# For each ln L: the errors of the outputs, times L^{1-ξ}.
FarErrors = Mapping[float, Float[np.ndarray, " prompts"]]


def simulate_errors(*, key: PRNGKeyArray) -> FarErrors:
    """Return errors, times L^{1-ξ}, of prompts of the lengths FAR at ξ = BETWEEN, for Laplace tokens of scale 1."""
    return {
        log_length: scaled_errors(log_length, FAR_PROMPTS, key=jr.fold_in(key, index))
        for index, log_length in enumerate(FAR)
    }


def scaled_errors(log_length: float, prompts: int, *, key: PRNGKeyArray) -> Float[np.ndarray, " prompts"]:
    """Return `L^{1-ξ} (T - Λ'(ξ))` at ξ = BETWEEN, from the LARGEST tokens and two moments of the other tokens.

    The largest of L Laplace tokens are `ln(L/2) - ln Γ_j`, with Γ_j the arrival times of a Poisson process, up to
    relative errors of LARGEST/L. The sum over all other tokens is nearly normal.
    """
    return np.asarray(_scaled_errors(log_length, prompts, key))


@partial(jax.jit, static_argnums=1)
def _scaled_errors(log_length: Float[Array, ""], prompts: int, key: PRNGKeyArray) -> Float[Array, " prompts"]:
    xi, unit = BETWEEN, jnp.exp((1 - BETWEEN) * log_length)
    limit, mean_weight = 2 * xi / (1 - xi**2), 1 / (1 - xi**2)
    arrival_key, rest_key = jr.split(key)
    arrivals = jnp.cumsum(jr.exponential(arrival_key, (prompts, LARGEST)), axis=1)
    tokens = log_length - np.log(2) - jnp.log(arrivals)
    weights = jnp.exp(xi * tokens - log_length)  # over L
    # All other tokens are below the last of these; their mean is the mean of all minus the mean of the tokens above it.
    edge = tokens[:, -1] - limit
    above = jnp.exp((xi - 1) * tokens[:, -1]) / (2 * (1 - xi))
    spread = jnp.sqrt(jnp.exp((2 * xi - 1) * tokens[:, -1] - log_length) / (2 * (2 * xi - 1)))
    noise = spread * jr.normal(rest_key, (prompts,))
    numerator = jnp.sum(weights * (tokens - limit), axis=1) - above * (edge + 1 / (1 - xi))
    numerator += noise * (edge - 1 / (2 * xi - 1))
    denominator = jnp.sum(weights, axis=1) + mean_weight - above + noise
    return unit * numerator / denominator


def far_growth(errors: FarErrors) -> tuple[float, float]:
    """Return the growth of the median of |error| per unit of ln L, and its standard error."""
    half = np.asarray([0.5])
    sizes = {log_length: np.abs(values) for log_length, values in errors.items()}
    near, far = (float(np.median(values)) for values in sizes.values())
    spreads = [float(quantile_error(values, half)[0]) for values in sizes.values()]
    apart = max(sizes) - min(sizes)
    return (far - near) / apart, float(np.hypot(*spreads)) / apart


def stable_median() -> float:
    """Return the median of |Y|, where `(T - Λ'(ξ)) L^{1-ξ} / ln L → Y` in distribution at ξ = BETWEEN, scale 1.

    `Y = Σ_j κ Γ_j^{-ξ}`, centred, with κ = 2^{-ξ}(1 - ξ²): a stable variable of index 1/ξ, totally skewed.
    """
    from scipy.optimize import brentq
    from scipy.stats import levy_stable

    index = 1 / BETWEEN
    tail = (1 - index) / (gamma(2 - index) * cos(pi * index / 2))
    scale = 2**-BETWEEN * (1 - BETWEEN**2) * tail**-BETWEEN

    def excess(size: float) -> float:
        below, above = (levy_stable.cdf(bound, index, 1.0, scale=scale) for bound in (-size, size))
        return float(above - below) - 0.5

    return float(brentq(excess, 1e-3, 100.0))  # pyright: ignore[reportArgumentType]


def quantile_error(samples: np.ndarray, chances: np.ndarray, *, width: float = 0.01) -> np.ndarray:
    """Return the standard errors of quantiles; densities come from the quantiles at `chances` ± `width`."""
    density = 2 * width / (np.quantile(samples, chances + width) - np.quantile(samples, chances - width))
    return np.sqrt(chances * (1 - chances) / len(samples)) / density
