"""The lowest pass found from the second minimum to the optimum: a string, a saddle, and descent from it on both sides.

A string of heads between the two minima slides down the mean square while its heads stay at equal distances (the string
method of E, Ren and Vanden-Eijnden). From the highest head, Newton's steps go up along the softest direction and down
along all others, to a saddle. Descent from the saddle on either side ends at the two minima. No search proves that
there is no lower pass.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float

from chapters.published_experiment.protocol import WIDTH, published_task
from chapters.second_minima.landscape import (
    FLAT,
    copies,
    curvatures_at,
    distance,
    head_at,
    hessian,
    linear_square,
    settle,
    sharp_square,
    softmax_square,
    square_and_slope,
)
from chapters.second_minima.published_runs import CORRECTED, DATA
from chapters.second_minima.stationary_heads import OPTIMUM, SECOND, StationaryHeads
from companion import Column
from lib.icl import PairAverage

TABLE, SEARCHES = "the_pass", "searches"
PASS = "pass"
# A string slides on fewer quadrature nodes than the search for a saddle uses. They raise every mean square by some
# percent, and the position of the highest head hardly moves.
FEW_NODES = {"frames": 16, "query_radii": 8, "task_radii": 2}
# Number of heads on a string; step size, below two over the largest curvature on the path, and number of steps.
IMAGES = 13
SLIDES = {"softmax": (0.1, 600), "linear": (0.015, 3000)}
# Sizes of the random bends of the straight line before it slides, one per pair of searches.
BENDS = (0.3, 0.8, 1.5)
# Step size and number of steps of descent from a saddle; rows of a descent; points of each half of the path.
WAY_DOWN = {"softmax": (0.1, 2000), "linear": (0.02, 20000)}
ROWS, POINTS = 200, 40
ENTRIES = [f"p{i}" for i in range(WIDTH * WIDTH)]
COLUMNS = {
    "activation": Column("Softmax or linear attention", "name"),
    "place": Column("Second minimum, pass or optimum; empty in between", "name"),
    "along": Column("Distance along the path from the second minimum, in the entries of U and v"),
    "square": Column("Exact mean square of the head"),
    "straight": Column("Exact mean square at the same fraction of the straight line between the two minima"),
    **{name: Column(f"Entry {i} of the head as a point, U by rows, then v") for i, name in enumerate(ENTRIES)},
}
SEARCH_COLUMNS = {
    "activation": Column("Softmax or linear attention", "name"),
    "end": Column(
        "Copy of the optimum at the end of the string: with a label entry of the same sign, or the other copy"
    ),
    "bend": Column("Size of the initial bend of the straight line"),
    "top": Column("Mean square at the highest head of the final string, on few nodes"),
    "square": Column("Mean square of the saddle found from there, on the nodes of the search for stationary heads"),
    "slope": Column("Norm of the gradient at this saddle"),
    "negative": Column("Number of negative curvatures at this saddle"),
}


@dataclass(frozen=True)
class Way:
    """A path from the second minimum over the pass to the optimum, with mean squares on the straight line as well."""

    along: Float[np.ndarray, " m"]
    squares: Float[np.ndarray, " m"]
    straight: Float[np.ndarray, " m"]
    points: Float[np.ndarray, "m n"]
    top: int

    @property
    def height(self) -> float:
        """Return the mean square at the pass."""
        return float(self.squares[self.top])


# The path of each head.
Ways = Mapping[str, Way]


def read_ways() -> Ways:
    """Return the tracked paths by activation."""
    frame = pd.read_csv(DATA / f"{TABLE}.csv")
    return {
        activation: Way(
            *(way[name].to_numpy() for name in ("along", "square", "straight")),
            points=way[ENTRIES].to_numpy(),
            top=int(np.flatnonzero(way["place"] == PASS)[0]),
        )
        for activation, way in frame.groupby("activation", sort=False)
    }


def read_searches() -> pd.DataFrame:
    """Return the tracked results of all searches for the pass."""
    return pd.read_csv(DATA / f"{SEARCHES}.csv")


def search(activation: str, places: StationaryHeads, number: int) -> tuple[dict[str, object], Float[np.ndarray, " n"]]:
    """Run one search; return a row of the table, and the saddle."""
    start = copies(activation, places.minimum_beyond.point)[0]
    ends = copies(activation, places.optimum.point)[:2]
    ends = sorted(ends, key=lambda end: np.sign(end[-1]) != np.sign(start[-1]))
    bend = np.random.default_rng(number).normal(size=len(start))
    size = BENDS[number // 2]
    fractions = np.linspace(0, 1, IMAGES)[:, None]
    line = start + fractions * (ends[number % 2] - start)
    string = slide(activation, line + np.sin(np.pi * fractions) * size * bend / np.linalg.norm(bend))
    tops = np.asarray(_squares(activation, string))
    saddle = climb(activation, string[np.argmax(tops)])
    square, slope = square_and_slope(activation, CORRECTED, saddle)
    row = {
        "activation": activation,
        "end": ("same", "other")[number % 2],
        "bend": size,
        "top": tops.max(),
        "square": float(square),
        "slope": float(np.linalg.norm(slope)),
        "negative": int(np.sum(curvatures_at(activation, saddle) < 0)),
    }
    return row, saddle


def joins(activation: str, places: StationaryHeads, way: pd.DataFrame) -> bool:
    """Return whether a path leads from the second minimum to the optimum."""
    first, last = way[ENTRIES].to_numpy()[[0, -1]]
    near = [
        distance(activation, end, place.point)
        for end, place in ((first, places.minimum_beyond), (last, places.optimum))
    ]
    return max(near) < 1e-3


def _few(activation: str, point: Float[Array, " n"]) -> Float[Array, ""]:
    if activation == "linear":
        return linear_square(published_task(), head_at(point))
    average = PairAverage.of_frames(WIDTH - 1, **FEW_NODES)
    return softmax_square(published_task(), head_at(point), average=average)


@partial(jax.jit, static_argnums=0)
def _squares(activation: str, points: Float[Array, "m n"]) -> Float[Array, " m"]:
    return jax.lax.map(partial(_few, activation), points)


def slide(activation: str, string: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "m n"]:
    """Return the string after descent of the mean square, with fixed ends and heads at equal distances."""
    return np.asarray(_slide(activation, *SLIDES[activation], string))


@partial(jax.jit, static_argnums=(0, 2))
def _slide(activation: str, step: float, steps: int, string: Float[Array, "m n"]) -> Float[Array, "m n"]:
    def once(string, _):
        slopes = jax.lax.map(jax.grad(partial(_few, activation)), string[1:-1])
        return _spread(string.at[1:-1].add(-step * slopes), len(string)), None

    return jax.lax.scan(once, string, length=steps)[0]


def _spread(string: Float[Array, "m n"], count: int) -> Float[Array, "k n"]:
    """Return `count` heads at equal distances along a string."""
    along = jnp.append(0.0, jnp.cumsum(jnp.linalg.norm(jnp.diff(string, axis=0), axis=1)))
    at = jnp.linspace(0.0, along[-1], count)
    return jax.vmap(lambda entries: jnp.interp(at, along, entries), 1, 1)(string)


def climb(activation: str, point: Float[np.ndarray, " n"], *, steps: int = 60) -> Float[np.ndarray, " n"]:
    """Return the saddle near a head, by bounded Newton steps that go uphill along the softest direction."""
    for _ in range(steps):
        slope = np.asarray(square_and_slope(activation, CORRECTED, point)[1])
        if np.linalg.norm(slope) < 1e-9:
            break
        curved = hessian(activation, point)
        if FLAT[activation]:  # no step along (U, v) ↦ (cU, v/c)
            flat = np.append(point[:-WIDTH], -point[-WIDTH:])
            curved = curved + np.outer(flat, flat) / (flat @ flat)
        values, axes = np.linalg.eigh(curved)
        sizes = np.maximum(np.abs(values), 1e-3) * np.where(np.arange(len(values)) == 0, -1, 1)
        step = -axes @ (axes.T @ slope / sizes)
        point = copies(activation, point + step * min(1.0, 0.05 / np.linalg.norm(step)))[0]
    return point


def ways_down(activation: str, saddle: Float[np.ndarray, " n"]) -> list[Float[np.ndarray, "rows n"]]:
    """Return descents that start a little to either side of a saddle, each up to the minimum that it reaches."""
    axis = np.linalg.eigh(hessian(activation, saddle))[1][:, 0]
    step, steps = WAY_DOWN[activation]
    ways = [np.asarray(_descend(activation, step, steps, saddle + side * 0.01 * axis)) for side in (1, -1)]
    return [np.concatenate([saddle[None], way, settle(activation, way[-1])[None]]) for way in ways]


@partial(jax.jit, static_argnums=(0, 2))
def _descend(activation: str, step: float, steps: int, point: Float[Array, " n"]) -> Float[Array, "rows n"]:
    def once(_, point):
        return point - step * square_and_slope(activation, CORRECTED, point)[1]

    def row(point, _):
        return jax.lax.fori_loop(0, steps // ROWS, once, point), point

    return jax.lax.scan(row, point, length=ROWS)[1]


def whole_way(activation: str, places: StationaryHeads, saddle: Float[np.ndarray, " n"]) -> pd.DataFrame:
    """Return rows of the table: from the second minimum up to the pass and down to the optimum."""
    second = places.minimum_beyond.point
    up, down = sorted(ways_down(activation, saddle), key=lambda way: distance(activation, way[-1], second))
    up, down = (np.asarray(_spread(jnp.asarray(way), POINTS)) for way in (up, down))
    points = np.concatenate([up[::-1], down[1:]])
    along = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1)))
    straight = points[0] + (along / along[-1])[:, None] * (points[-1] - points[0])
    judge = jax.jit(partial(jax.lax.map, lambda point: sharp_square(activation, published_task(), head_at(point))))
    names = {0: SECOND, POINTS - 1: PASS, len(points) - 1: OPTIMUM}
    frame = pd.DataFrame(points, columns=ENTRIES).assign(
        activation=activation,
        place=[names.get(i, "") for i in range(len(points))],
        along=along,
        square=np.asarray(judge(points)),
        straight=np.asarray(judge(straight)),
    )
    return frame[list(COLUMNS)]


def solve_pass_curvatures(ways: Ways) -> dict[str, Float[np.ndarray, " _"]]:
    """Return the curvatures of the exact mean square at each tracked pass, in increasing order."""
    return {activation: curvatures_at(activation, way.points[way.top]) for activation, way in ways.items()}
