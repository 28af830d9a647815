"""One head and two opposite heads: their exact errors, the limit for long prompts, and simulated prompts."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.risk_and_parameters.isotropic_heads import DIMENSION
from lib.attention import attend
from lib.icl import LinearRegression, best_pair, best_values, block_attention
from lib.measures import Empirical

# Number of values (prompts times tokens) in one batch.
BATCH_VALUES = 2**20
# Number of u on the theoretical curves, besides the simulated ones.
GRID = 36


@dataclass(frozen=True)
class Outputs:
    """Outputs of one head and of a pair of opposite heads of half its gain, on the same prompts, and the targets.

    The outputs are those of the gain 1.
    """

    length: int
    tilts: Float[np.ndarray, " tilts"]
    one: Float[np.ndarray, "tilts prompts"]
    two: Float[np.ndarray, "tilts prompts"]
    targets: Float[np.ndarray, " prompts"]

    def best_gain_errors(self, outputs: Float[np.ndarray, "tilts prompts"]) -> Float[np.ndarray, "tilts prompts"]:
        """Return the squared errors at the gain that is best on these prompts.

        The choice of the gain changes their mean to second order only.
        """
        gains = (outputs @ self.targets) / np.sum(outputs**2, axis=1)
        return (gains[:, None] * outputs - self.targets) ** 2


@dataclass(frozen=True)
class Theory:
    """2R·L at the best gain against u: one and two opposite heads, exact; the limit of two; the best linear head."""

    tilts: Float[np.ndarray, " tilts"]
    one_exact: Float[np.ndarray, " tilts"]
    two_exact: Float[np.ndarray, " tilts"]
    two_limit: Float[np.ndarray, " tilts"]
    linear: float


def simulate_outputs(length: int, tilts: Sequence[float], prompts: int, *, key: PRNGKeyArray) -> Outputs:
    """Simulate the outputs of the head A = uI, b = 1, and of the pair ±uI with gains ±½, for each u.

    Prompts are drawn in single precision, as in training; averages are taken in double precision.
    """
    tilts = np.asarray(sorted(tilts))
    one, zero = jnp.ones((), jnp.float32), jnp.zeros((), jnp.float32)
    task = LinearRegression(np.eye(DIMENSION, dtype=np.float32), task_scale=one, noise_std=zero)
    matrices = jnp.asarray(tilts, jnp.float32)[:, None, None] * jnp.eye(DIMENSION, dtype=jnp.float32)

    def outputs(tokens, query):
        def of_head(matrix):
            head, opposite = (
                attend(block_attention(sign * matrix, sign), Empirical(tokens), query)[0] for sign in (1.0, -1.0)
            )
            return head, (head + opposite) / 2

        return jax.vmap(of_head)(matrices)

    batch = max(1, min(prompts, BATCH_VALUES // length))

    def draw_batch(key):
        drawn = task.draw(length, batch, key=key)
        return *jax.vmap(outputs)(drawn.tokens, drawn.queries), drawn.targets

    batches = jax.jit(lambda keys: jax.lax.map(draw_batch, keys))(jr.split(key, -(-prompts // batch)))
    one, two, targets = (np.concatenate(np.asarray(part, np.float64)) for part in batches)
    return Outputs(length, tilts, one.T, two.T, targets)


def solve_errors(length: int, tilts: Sequence[float]) -> Theory:
    """Return the theoretical errors at the `tilts` and on a fine grid between the smallest and the largest."""
    task, log_length = LinearRegression(np.eye(DIMENSION)), float(np.log(length))
    grid = np.unique([*tilts, *np.geomspace(min(tilts), max(tilts), GRID)])
    one = [float(best_values(task, grid[[place]], log_length)[1]) for place in range(grid.size)]
    two = [float(best_pair(task, log_length, tilt)[2]) for tilt in grid]
    return Theory(
        tilts=grid,
        one_exact=2 * length * np.array(one),
        two_exact=2 * length * np.array(two),
        two_limit=np.asarray(at_best_gain(opposite_limit(grid**2, DIMENSION), length)),
        linear=2 * length * float(task.linear_attention_risk(length)),
    )


def opposite_limit(squared_tilt: np.ndarray | float, dimension: int) -> np.ndarray | float:
    """Return `lim 2R_L L` of two opposite heads with bu = 1: `E[(d/s) sinh(s|x|²) + |x|² cosh(s|x|²)]`, s = u² < ½.

    The fluctuations of the two heads are correlated. By the delta method the variance of half the difference is
    ⟨v, Γv⟩ sinh τ² + ⟨v, Γξ⟩² cosh τ²; one head has (⟨v, Γv⟩ + ⟨v, Γξ⟩²) e^{τ²}.
    """
    minus, plus = 1 - 2 * squared_tilt, 1 + 2 * squared_tilt
    first = (minus ** (-dimension / 2) - plus ** (-dimension / 2)) / (2 * squared_tilt)
    second = (minus ** (-dimension / 2 - 1) + plus ** (-dimension / 2 - 1)) / 2
    return dimension * (first + second)


def at_best_gain(limit: np.ndarray | float, length: int) -> np.ndarray | float:
    """Return 2R·L at the best gain: d V/(d + V) replaces V = limit/L, the error variance of an unbiased output."""
    return limit / (1 + limit / (DIMENSION * length))
