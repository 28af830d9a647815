"""One head from whose weights the plain average is subtracted: exact errors, simulated prompts, and small keys."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from chapters.which_kernel.pair_risks import LARGEST_KEY, SMALLEST_KEY, linear_errors, pair_error
from lib.icl import LinearRegression
from lib.icl.heads import best_values
from lib.random import named_keys

SIMULATED_KEYS = (0.1, 0.2, 0.3, 0.45)
# Two keys from which the curvature at zero is extrapolated.
CURVATURE_KEYS = (0.03, 0.06)
BATCH = 500


@dataclass(frozen=True)
class CentredHead:
    """Mean square errors by key at one length: of one head, of one centred head and of the pair, all with best values.

    The simulated errors are those of the centred head, `plain_there` those of the head without the subtraction.
    """

    length: int
    keys: Float[np.ndarray, " keys"]
    plain: Float[np.ndarray, " keys"]
    centred: Float[np.ndarray, " keys"]
    pair: Float[np.ndarray, " keys"]
    debiased: float
    simulated_keys: Float[np.ndarray, " points"]
    simulated: Float[np.ndarray, " points"]
    std_error: Float[np.ndarray, " points"]
    centred_there: Float[np.ndarray, " points"]
    plain_there: Float[np.ndarray, " points"]


@dataclass(frozen=True)
class CentredCurvature:
    """Coefficient of ω² in the error of a centred head: measured with its uncertainty, by the formula, of the pair."""

    length: int
    measured: float
    uncertainty: float
    predicted: float
    pair: float


def _best(task: LinearRegression, key: Float[Array, ""], log_length: Float[Array, ""]):
    """Return risk and value of a head and of a centred head."""
    plain, centred = (best_values(task, key[None], log_length, centred=centred) for centred in (False, True))
    return plain[1], centred[1], centred[0][0]


def centred_curvature(task: LinearRegression, length: int) -> float:
    """Return the coefficient of ω² in the error of a centred head at zero keys."""
    d, power, ratio = task.dimension, float(task.task_scale) ** 2, float(task.noise_std / task.task_scale) ** 2
    bracket = (length - 2) * (d + 2 + ratio) - 8
    return power * d * (d + 2) * (length - 1) * bracket / (2 * length * (length + d + ratio) ** 2)


def solve_curvature(task: LinearRegression, length: int) -> CentredCurvature:
    """Return the coefficient of ω² in the error of a centred head, extrapolated from two small keys."""
    debiased, log_length = linear_errors(task, length)[1], jnp.log(float(length))
    small, large = (
        (2 * float(_best(task, jnp.asarray(key), log_length)[1]) - debiased) / key**2 for key in CURVATURE_KEYS
    )
    measured = small + (small - large) / ((CURVATURE_KEYS[1] / CURVATURE_KEYS[0]) ** 2 - 1)
    d, power, ratio = task.dimension, float(task.task_scale) ** 2, float(task.noise_std / task.task_scale) ** 2
    pair = -4 * power * d * (d + 2) * (length - 1) / (length * (length + d + ratio) ** 2)
    return CentredCurvature(length, measured, abs(measured - small), centred_curvature(task, length), pair)


def _centred_squares(prompts, values: Float[np.ndarray, " keys"]) -> Float[np.ndarray, "prompts keys"]:
    """Return the squared errors of centred heads with the keys `SIMULATED_KEYS`."""
    scores = np.vecdot(prompts.tokens[..., :-1], prompts.queries[:, None, :-1])
    labels = prompts.tokens[..., -1]
    factors = (np.exp(key * scores) for key in SIMULATED_KEYS)
    means = np.stack([np.vecdot(each, labels) / each.sum(axis=1) for each in factors], axis=1)
    return (values * (means - labels.mean(axis=1, keepdims=True)) - prompts.targets[:, None]) ** 2


def simulate_centred_head(task: LinearRegression, length: int, keys: int, prompts: int, *, seed: int) -> CentredHead:
    """Return exact errors along the key, and simulated ones of the centred head at a few keys."""
    grid, log_length = np.linspace(SMALLEST_KEY, LARGEST_KEY, keys), jnp.log(float(length))
    solved = np.array([[float(x) for x in _best(task, jnp.asarray(key), log_length)] for key in grid])
    there = np.array([[float(x) for x in _best(task, jnp.asarray(key), log_length)] for key in SIMULATED_KEYS])
    key = named_keys(seed, "centred")["centred"]
    batches = (task.draw(length, BATCH, key=one) for one in jax.random.split(key, -(-prompts // BATCH)))
    squares = np.concatenate([_centred_squares(drawn, there[:, 2]) for drawn in batches])
    # without the subtraction, at the same value, the error is larger by the mean square of the average
    labels = float(task.task_scale) ** 2 * task.dimension + float(task.noise_std) ** 2
    return CentredHead(
        length,
        grid,
        2 * solved[:, 0],
        2 * solved[:, 1],
        np.array([pair_error(task, "exp", key, length) for key in grid]),
        linear_errors(task, length)[1],
        np.array(SIMULATED_KEYS),
        squares.mean(axis=0),
        squares.std(axis=0, ddof=1) / len(squares) ** 0.5,
        2 * there[:, 1],
        2 * there[:, 1] + there[:, 2] ** 2 * labels / length,
    )
