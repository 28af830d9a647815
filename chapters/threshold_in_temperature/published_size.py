"""Weight and risk along the overlap of the key at the size that [Do25] uses: exact, simulated, and in the limit.

Tokens are those of [Do25]: the relevant one is N(c√d u*, γ² I) with c² = 1 - γ², the others are N(0, I), and scores are
β√d⟨u, x⟩ with unit vectors u and u*. So the strength of the signal is ν = c²d, and an overlap m_k = ⟨u, u*⟩ multiplies
the amplitude √ν.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from chapters.threshold_in_temperature.below_threshold import excess_risk
from chapters.threshold_in_temperature.phases import mean_field_weight, weights
from lib.random import named_keys
from lib.statistics import standard_error

SIMULATED_OVERLAPS = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55)
LARGEST_OVERLAP = 0.7
BATCH = 2000


@dataclass(frozen=True)
class Size:
    """Dimension d, length L, scale β of the scores, and variance γ² of the relevant token."""

    dimension: int
    length: int
    sharpness: float
    variance: float

    @property
    def spread(self) -> float:
        """Standard deviation τ = β√d of the scores of the other tokens."""
        return self.sharpness * self.dimension**0.5

    @property
    def amplitude(self) -> float:
        """√ν = c√d."""
        return ((1.0 - self.variance) * self.dimension) ** 0.5

    @property
    def temperature(self) -> float:
        """√(2 ln L)/τ."""
        return float(np.sqrt(2.0 * np.log(self.length)) / self.spread)


@dataclass(frozen=True)
class Curves:
    """By overlap, with m_v = 1: the mean weight of the relevant token and the excess risk, exact and in the limit."""

    overlaps: Float[np.ndarray, " n"]
    weight: Float[np.ndarray, " n"]
    risk: Float[np.ndarray, " n"]
    limit_weight: Float[np.ndarray, " n"]
    limit_risk: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class Simulation:
    """Mean weight and excess risk over γ² of simulated prompts, with standard errors, at the overlaps of `curves`."""

    curves: Curves
    weight: Float[np.ndarray, " n"]
    weight_std_error: Float[np.ndarray, " n"]
    risk: Float[np.ndarray, " n"]
    risk_std_error: Float[np.ndarray, " n"]


def limit_weight(size: Size, overlaps: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the weight of the relevant token by the formula of [Do25], which has e^{αd} = L - 1."""
    log_others = np.log(size.length - 1.0)
    return mean_field_weight(log_others, size.amplitude * overlaps, np.sqrt(2.0 * log_others) / size.spread)


def evaluate_curves(size: Size, overlaps: Float[np.ndarray, " n"]) -> Curves:
    """Return exact and limiting weights and risks at the given overlaps."""
    log_length = float(np.log(size.length))
    averages = [
        weights(log_length, size.amplitude * float(overlap), size.temperature, size.variance) for overlap in overlaps
    ]
    limit = limit_weight(size, overlaps)
    return Curves(
        overlaps,
        np.array([each.relevant for each in averages]),
        np.array([excess_risk(each, 1.0, size.variance) for each in averages]),
        limit,
        1.0 - 2.0 * limit + limit**2,
    )


def solve_curves(size: Size, overlaps: int) -> Curves:
    """Return the curves at `overlaps` overlaps from 0 to 0.7."""
    return evaluate_curves(size, np.linspace(0.0, LARGEST_OVERLAP, overlaps))


def simulate_heads(size: Size, prompts: int, *, seed: int) -> Simulation:
    """Return simulated weights and risks of prompts of d-dimensional tokens, at six overlaps.

    The key and the hidden direction span the first two coordinates and the value, v = v*, is the third, so that the
    other coordinates of the tokens matter neither for scores nor for values and are not drawn.
    """
    curves = evaluate_curves(size, np.array(SIMULATED_OVERLAPS))
    keys = named_keys(seed, *(f"overlap {overlap}" for overlap in SIMULATED_OVERLAPS))
    rows = [_simulate(size, overlap, prompts, keys[f"overlap {overlap}"]) for overlap in SIMULATED_OVERLAPS]
    return Simulation(curves, *np.array(rows).T)


def _simulate(size: Size, overlap: float, prompts: int, key: Array) -> tuple[float, float, float, float]:
    direction = jnp.array([overlap, (1.0 - overlap**2) ** 0.5, 0.0])

    @jax.jit
    def batch(key):
        tokens = jax.random.normal(key, (BATCH, size.length, 3))
        tokens = tokens.at[:, 0].multiply(size.variance**0.5).at[:, 0, 0].add(size.amplitude)
        p = jax.nn.softmax(size.spread * tokens @ direction, axis=1)
        errors = tokens[:, 0, 2] - jnp.sum(p * tokens[:, :, 2], axis=1)
        return p[:, 0], errors**2 / size.variance

    parts = [batch(each) for each in jax.random.split(key, -(-prompts // BATCH))]
    weight, risk = (np.concatenate([np.asarray(part[k]) for part in parts]) for k in (0, 1))
    return weight.mean(), standard_error(weight), risk.mean(), standard_error(risk)
