"""Projected gradient descent from random starts: erf attention at two sharpnesses and with one schedule, and softmax.

The setting is that of [M24], on the unit sphere of R^d. Starts are on the manifold of zero cross overlaps or anywhere
on the spheres. Risks are closed forms of the overlaps.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from chapters.single_location_training.names import in_sentence
from chapters.single_location_training.sphere_descent import (
    OverlapRisk,
    SphereTask,
    descend_on_sphere,
    erf_risk,
    in_span,
    manifold_head,
    random_head,
    score_nodes,
    softmax_risk,
)
from companion import Column
from lib.single_location import Head, Overlaps

STARTS = {"on the manifold": manifold_head, "anywhere": random_head}
FLAT, STEEP = "erf, λ = 0.1", "erf, λ = 0.9"
SCHEDULED, SOFT = "erf, λ falling", "softmax, λ = 1"
SHARPEST, FLATTEST = 0.9, 0.1
# A direction with at least this overlap counts as found; the angle is 66°. In the smallest dimension, 100, this is four
# standard deviations of the overlap of a random direction.
LEARNED = 0.4
RECORDS = 40
# Relative distance by which a time may miss the end of a range, because a product of two parameters is rounded.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Descents:
    """Descents of one head from starts of one kind: the recorded steps, risks and overlaps.

    `time` is the number of steps times the step size, `dimension` that of the tokens.
    """

    steps: Int[np.ndarray, " records"]
    risk: Float[np.ndarray, "starts records"]
    overlaps: Overlaps
    time: float
    dimension: int

    @property
    def learned(self) -> Bool[np.ndarray, " starts"]:
        """Whether each start ends with k towards k* and v towards v*, up to a common sign."""
        return np.minimum(np.abs(self.overlaps.m_k[:, -1]), np.abs(self.overlaps.m_v[:, -1])) >= LEARNED

    @property
    def exchanged(self) -> Bool[np.ndarray, " starts"]:
        """Whether each start ends with the roles exchanged: k towards v* and v towards k*."""
        return np.minimum(np.abs(self.overlaps.m_kv[:, -1]), np.abs(self.overlaps.m_vk[:, -1])) >= LEARNED

    @property
    def angles(self) -> tuple[float, float]:
        """The median final angles between k and k* and between v and v*, up to a common sign, in degrees."""
        ends = np.abs([self.overlaps.m_k[:, -1], self.overlaps.m_v[:, -1]])
        key, value = np.median(np.degrees(np.arccos(np.minimum(ends, 1.0 - COSINE_ROUNDING))), axis=1)
        return float(key), float(value)


# An overlap is known to about this accuracy: a cosine nearer to 1 counts as one at this distance, 3e-5 degrees.
COSINE_ROUNDING = 1e-13
# The descents of each head and each kind of start.
Runs = dict[tuple[str, str], Descents]
# Training times, numbers of steps times step size, for which the ends of the descents are described. Shorter descents
# may not have found the directions: erf heads need a time of 4.5 in 1,600 dimensions. Longer ones were not tested.
DESCRIBED = {FLAT: (6.0, 80.0), STEEP: (6.0, 80.0), SOFT: (2.4, 80.0)}
# Largest time per dimension for which the key of the flat erf is described as more than 10° from k*. It keeps turning,
# faster where its scores, of order λ√d, are small: its median angle is 10° after a time of 7 in 100 dimensions and of
# 42 in 400, and 55° after 9 in 1,600.
FAR_TIME = 0.05


def described(runs: Runs, *names: str, per_dimension: float = np.inf) -> tuple[bool, str]:
    """Return whether the named descents are as long as those described, and the reason to withhold a claim if not.

    `per_dimension` is the largest time for the claim, divided by the dimension, if it is less than for others.
    """
    for name in names:
        (low, high), run = DESCRIBED[name], runs[name, "anywhere"]
        high, rule = min(high, per_dimension * run.dimension), ""
        if run.time > high * (1 + ROUNDING):
            rule = f"at most {high:g}"
        elif run.time < low * (1 - ROUNDING):
            rule = f"at least {low:g}"
        if rule:
            return False, (
                f"in {run.dimension:,} dimensions it is known for a training time (steps times step size) of {rule}, "
                f"and this training takes {run.time:.3g} ({in_sentence(name)})"
            )
    return True, ""


def draw_starts(dimension: int, repeats: int, *, key: PRNGKeyArray) -> dict[str, Head]:
    """Return `repeats` random starts of each kind, stacked; both kinds use the same random keys."""
    starts = {kind: jax.vmap(partial(draw, dimension)) for kind, draw in STARTS.items()}
    return {kind: draw(key=jr.split(key, repeats)) for kind, draw in starts.items()}


def train_erf(task: SphereTask, starts: dict[str, Head], steps: int, step_size: float) -> Runs:
    """Return descents of erf attention from every start, with small, large and decreasing λ."""
    risk = partial(erf_risk, task, nodes=score_nodes(task, SHARPEST))
    return _train(risk, erf_sharpness(_whole(steps)), starts, step_size)


def train_softmax(task: SphereTask, starts: dict[str, Head], steps: int, step_size: float) -> Runs:
    """Return descents of softmax attention from every start, with λ = 1."""
    return _train(partial(softmax_risk, task), {SOFT: np.ones(_whole(steps))}, starts, step_size)


def erf_sharpness(steps: int) -> dict[str, Float[np.ndarray, " steps"]]:
    """Return λ at each step, for each head. The linear schedule of this function is not that of [M24]."""
    return {
        FLAT: np.full(steps, FLATTEST),
        STEEP: np.full(steps, SHARPEST),
        SCHEDULED: np.linspace(SHARPEST, FLATTEST, steps),
    }


def _whole(steps: int) -> int:
    """Return the largest multiple of the number of records that is at most `steps`."""
    return steps - steps % RECORDS


def _train(
    risk: OverlapRisk, sharpness: dict[str, Float[np.ndarray, " steps"]], starts: dict[str, Head], step_size: float
) -> Runs:
    """Return descents of every head from every start, compiled once; leaves have the shape (starts, records)."""
    steps = len(next(iter(sharpness.values())))

    def one(start, lams):
        return descend_on_sphere(risk, in_span(start), lams, step_size=step_size, every=steps // RECORDS)

    together = jax.tree.map(lambda *leaves: jnp.stack(leaves), *starts.values())
    over_starts = jax.vmap(jax.vmap(one, in_axes=(0, None)), in_axes=(0, None))
    run = jax.jit(jax.vmap(over_starts, in_axes=(None, 0)))(together, jnp.stack(list(sharpness.values())))
    recorded, dimension = np.linspace(0, steps, RECORDS + 1).astype(int), together.key.shape[-1]
    runs = {}
    for i, name in enumerate(sharpness):
        for j, kind in enumerate(starts):
            mine = jax.tree.map(lambda leaf, i=i, j=j: np.asarray(leaf[i, j]), run)
            runs[name, kind] = Descents(recorded, mine.risk, mine.overlaps, steps * step_size, dimension)
    return runs


def band(values: Float[np.ndarray, "repeats times"]) -> dict[str, np.ndarray]:
    """Return the median over repeats and the ends of the central 80 %."""
    low, middle, high = np.quantile(values, [0.1, 0.5, 0.9], axis=0)
    return {"low": low, "median": middle, "high": high}


BAND = {
    "median": Column("Median over starts", absolute=1e-6),
    "low": Column("First decile over starts", absolute=1e-6),
    "high": Column("Last decile over starts", absolute=1e-6),
}
