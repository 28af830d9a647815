"""Gaussian prompts with a sink: exact moments of the output, simulated prompts, and the plane of sinks."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from lib.attention import Attention
from lib.finite_prompt import LARGEST_TAU, QueryRay, participation, score_error, sink_statistics
from lib.measures import Gaussian
from lib.partition import square_given_others

# The value of the sink in simulated prompts: not 0, so that its part of the mean output is tested, too.
SINK_VALUE = np.array([0.5, -1.0])


def drawn_taus() -> np.ndarray:
    """Return the query sizes of the exact curves."""
    return np.linspace(0.25, 8, 32)


def query_ray() -> QueryRay:
    """Return a head and three-dimensional Gaussian tokens without symmetry."""
    params = Attention([[0.8, -0.3], [0.1, 0.6], [0.4, 0.5]], [[1.0, 0.4, -0.2], [-0.3, 0.9, 0.5]])
    gaussian = Gaussian([0.4, -0.2, 0.1], [[0.9, 0.3, 0.1], [0.3, 1.1, -0.4], [0.1, -0.4, 0.7]])
    return QueryRay.through(params, gaussian, jnp.asarray([1.0, 0.7]))


@dataclass(frozen=True)
class ExactOutputs:
    """Exact moments for each sink, and for each query size; the first sink is none.

    Attributes:
      sinks: scores of the sink above the mean score; -inf is no sink.
      taus: query sizes.
      sink_weight: mean weight of the sink.
      participation: `E Σ p_i²` over tokens.
      mean: mean output along the line of the infinite prompt, `τ (1 - E p_0 - P)`.
      error: mean square error of the output for centred tokens and a sink of value 0.
    """

    sinks: Float[np.ndarray, " sinks"]
    taus: Float[np.ndarray, " taus"]
    sink_weight: Float[np.ndarray, "sinks taus"]
    participation: Float[np.ndarray, "sinks taus"]
    mean: Float[np.ndarray, "sinks taus"]
    error: Float[np.ndarray, "sinks taus"]


def solve_outputs(ray: QueryRay, length: int, sinks: Sequence[float], taus: Sequence[float]) -> ExactOutputs:
    """Return the exact moments without a sink and with each sink, at each query size."""
    taus, log_length = np.asarray(taus, float), np.log(length)
    rows = [(np.zeros(len(taus)), *map(np.asarray, (participation(taus, log_length), score_error(taus, log_length))))]
    for sink in sinks:
        at = sink_statistics(taus, log_length, sink)
        rows.append(tuple(map(np.asarray, (at.sink_weight, at.participation, at.score_error))))
    sink_weight, p, q = (np.asarray(column) for column in zip(*rows, strict=True))
    value, cov, line = (np.asarray(part) for part in (ray.params.value, ray.gaussian.cov, ray.line))
    along = line @ line
    error = along * q + p * (np.trace(value @ cov @ value.T) - along)
    return ExactOutputs(np.asarray([-np.inf, *sinks]), taus, sink_weight, p, taus * (1 - sink_weight - p), error)


def average_sink_weight(exact: ExactOutputs, length: int) -> Float[np.ndarray, "sinks taus"]:
    """Return the weight of each sink if the sum of the tokens' exponentials were its mean."""
    return 1 / (1 + np.exp(np.log(length) + exact.taus**2 / 2 - exact.sinks[1:, None]))


def moments_at_constant_weight(
    ray: QueryRay, exact: ExactOutputs, weight: Float[np.ndarray, "sinks taus"]
) -> tuple[Float[np.ndarray, "sinks taus"], Float[np.ndarray, "sinks taus"]]:
    """Return the error and the participation if each sink had this weight in every prompt."""
    value, cov, line = (np.asarray(part) for part in (ray.params.value, ray.gaussian.cov, ray.line))
    along, kept, participation = line @ line, 1 - weight, exact.participation[0]
    across = np.trace(value @ cov @ value.T) - along
    score_error = (exact.error[0] - across * participation) / along
    error = kept**2 * score_error + exact.taus**2 * (2 * kept * weight * participation + weight**2)
    return along * error + across * kept**2 * participation, kept**2 * participation


@dataclass(frozen=True)
class SimulatedOutputs:
    """Simulated prompts with sinks: one value per prompt, sink, and query size.

    Attributes:
      outputs: outputs with `SINK_VALUE` at the sink, for tokens with their mean.
      errors: square errors of the output for centred tokens and a sink of value 0.
      participation: L times the mean of p_1² given the other tokens; its mean over prompts is that of `Σ p_i²`, without
        the long tail of rare prompts that `Σ p_i²` has where the sink has most of the weight.
    """

    outputs: Float[np.ndarray, "prompts sinks taus e"]
    errors: Float[np.ndarray, "prompts sinks taus"]
    participation: Float[np.ndarray, "prompts sinks taus"]


def simulate_outputs(
    ray: QueryRay, length: int, sinks: Sequence[float], taus: Sequence[float], prompts: int, *, key: PRNGKeyArray
) -> SimulatedOutputs:
    """Draw prompts of vectors and attend to them with every sink and query size."""
    value, mean, line = (np.asarray(part) for part in (ray.params.value, ray.gaussian.mean, ray.line))
    direction = np.asarray(ray.params.bilinear @ ray.direction)
    shape = len(sinks), len(taus)
    outputs = np.empty((prompts, *shape, len(value)))
    errors, log_others = np.empty((prompts, *shape)), np.empty((prompts, *shape))
    own = np.exp(np.asarray(sinks))[:, None]
    for index in range(prompts):
        tokens = np.asarray(ray.gaussian.sample(length, key=jr.fold_in(key, index))) - mean
        exponentials = np.exp(np.multiply.outer(np.asarray(taus), tokens @ direction))
        total = own + exponentials.sum(axis=1)
        centred = (exponentials @ tokens @ value.T) / total[..., None]
        sink_weight = own / total
        outputs[index] = centred + np.multiply.outer(1 - sink_weight, value @ mean)
        outputs[index] += np.multiply.outer(sink_weight, SINK_VALUE)
        errors[index] = np.sum((centred - np.multiply.outer(np.asarray(taus), line)) ** 2, axis=-1)
        log_others[index] = np.log(own + exponentials[:, 1:].sum(axis=1))
    squares = np.empty((prompts, *shape))
    for row, column in np.ndindex(shape):
        squares[:, row, column] = square_given_others(
            *map(jnp.asarray, (float(taus[column]), log_others[:, row, column]))
        )
    return SimulatedOutputs(outputs, errors, length * squares)


@dataclass(frozen=True)
class SinkPlane:
    """Participation and sink weight over a = τ/√(2 ln L) and κ = b/ln L, at one length."""

    log_length: float
    ratio: Float[np.ndarray, " n"]
    height: Float[np.ndarray, " n"]
    participation: Float[np.ndarray, " n"]
    sink_weight: Float[np.ndarray, " n"]


def boundary(ratio: np.ndarray) -> np.ndarray:
    """Return `f(a) = 1 + a²` up to a = 1 and `2a` beyond: the limit of `ln S / ln L` at τ = a √(2 ln L)."""
    return np.where(ratio < 1, 1 + ratio**2, 2 * ratio)


def solve_plane(log_length: float, points: int) -> SinkPlane:
    """Return the plane for a up to 2 and κ up to 5, or as far as the quadrature is guaranteed."""
    scale = np.sqrt(2 * log_length)
    ratio, height = np.meshgrid(np.linspace(0, min(2.0, LARGEST_TAU / scale), points), np.linspace(0.2, 5, points))
    return _plane(log_length, ratio.ravel(), height.ravel())


def solve_boundary(log_length: float, margin: float) -> tuple[SinkPlane, SinkPlane]:
    """Return the plane below and above the boundary, at the distance `margin` in κ."""
    ratio = np.linspace(0.1, min(2.0, LARGEST_TAU / np.sqrt(2 * log_length)), 20)
    below, above = (_plane(log_length, ratio, boundary(ratio) + shift) for shift in (-margin, margin))
    return below, above


def _plane(log_length: float, ratio: np.ndarray, height: np.ndarray) -> SinkPlane:
    taus = np.minimum(ratio * np.sqrt(2 * log_length), LARGEST_TAU)
    at = sink_statistics(taus, log_length, height * log_length)
    return SinkPlane(log_length, ratio, height, np.asarray(at.participation), np.asarray(at.sink_weight))
