"""In-context regression on infinite prompts: the gradient flow of [BB26, Thm 5.1], its start and its saddles.

Everything is the flow of one polynomial, `½ tr[(bΣA - I) Σ (bΣA - I)ᵀ]`: no prompt is sampled.
"""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray
from pydantic import Field

from lib.experiments.registry import experiment
from lib.experiments.result import Alternative, Claim, Column, Result, Table
from lib.flow import gradient_flow
from lib.icl import Blocks, LinearRegression, balanced_start, block_head, infinite_limit

# Relative error of one step of the integrator; the absolute one is a hundredth of it.
RTOL = 1e-10
# What the flow's distance to its limit and its invariant may still be off, after up to 10⁵ steps.
REACHED, KEPT = 1e-6, 1e3 * RTOL
# Runs that are integrated together, so that studies of different sizes share a compilation.
BATCH = 8
# Time is up when the slowest mode has decayed by e^-25.
DECAYED = 25.0
# "Near the limit", for the time that a start takes.
NEAR = 1e-3
# Divides a Σ of norm 2.6, or in higher dimension up to 3, and makes it small.
SHRINKING = 16.0
# Size of the sign-wrong starts, and the imbalance from which on escape times are a straight line.
SADDLE_SIZE, SMALL_IMBALANCE = 0.3, 1e-3


@experiment
def icl_infinite(
    *,
    seed: Annotated[int, Field(ge=0, description="Starts Θ and the axes of the ill-conditioned Σ are drawn from it.")],
    dimension: Annotated[int, Field(ge=2, le=20, description="d of the covariates.")],
    condition: Annotated[float, Field(ge=2.0, le=100.0, description="Condition number of the ill-conditioned Σ.")],
    points: Annotated[int, Field(ge=50, le=2000, description="Times at which a flow is recorded.")],
    start_scales: Annotated[
        int, Field(ge=3, le=41, description="Scales α of the starts, from 1/30 to 30 times [ZFB24]'s bound.")
    ],
    starts: Annotated[int, Field(ge=1, le=20, description="Random Θ at each scale.")],
    decades: Annotated[int, Field(ge=5, le=12, description="Imbalances of sign-wrong starts: 10⁻¹ to 10 to this.")],
) -> Result:
    """The flow for three Σ, starts inside and outside the interval for α, and starts near a saddle."""
    start_key, axes_key = jr.split(jr.key(seed))
    flows = flows_to_the_limit(covariances(dimension, condition, key=axes_key), points, key=start_key)
    interval = interval_frame(narrow_and_wide(dimension), start_scales, starts, points, key=start_key)
    saddle = saddle_frame(dimension, decades, points)
    return Result(
        tables={
            "infinite_flow": flow_table(flows),
            "initialisation_interval": interval_table(interval),
            "escape_from_saddle": saddle_table(saddle),
        },
        claims=(
            limit_claim(flows),
            invariant_claim(flows),
            every_scale_claim(interval),
            intervals_differ_claim(interval),
            saddle_claim(saddle, dimension),
        ),
    )


# --- the flow ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flow:
    """One run: its task, its start, what it passed through, and where it should end."""

    task: LinearRegression
    start: Blocks
    limit: Blocks
    times: Float[np.ndarray, " n"]
    path: Blocks
    risk: Float[np.ndarray, " n"]

    @property
    def distance(self) -> Float[np.ndarray, " n"]:
        """To (A*, b*), relative to its size."""
        return _distance(self.path, self.limit) / self.size

    @property
    def size(self) -> float:
        """`‖(A*, b*)‖`."""
        return float(np.sqrt(np.sum(np.asarray(self.limit.matrix) ** 2) + float(self.limit.gain) ** 2))

    @property
    def drift(self) -> Float[np.ndarray, " n"]:
        """How far `‖A‖² - b²` is from its value at the start, relative to b*²."""
        invariant = np.sum(np.asarray(self.path.matrix) ** 2, axis=(-1, -2)) - np.asarray(self.path.gain) ** 2
        return np.abs(invariant - _invariant(self.start)) / float(self.limit.gain) ** 2

    @property
    def risk_of_zero(self) -> float:
        """`½ tr Σ`, the risk of predicting 0, and of every saddle."""
        return float(jnp.trace(self.task.cov)) / 2


def _invariant(blocks: Blocks) -> float:
    return float(jnp.sum(blocks.matrix**2) - blocks.gain**2)


def _distance(path: Blocks, point: Blocks) -> Float[np.ndarray, "..."]:
    squares = np.sum(np.asarray(path.matrix - point.matrix) ** 2, axis=(-1, -2))
    return np.asarray(np.sqrt(squares + np.asarray(path.gain - point.gain) ** 2))


def follow(tasks: list[LinearRegression], starts: list[Blocks], times: list[Float[np.ndarray, " n"]]) -> list[Flow]:
    """The flows of the infinite risk, each of its own task, from its own start, at its own times."""
    flows = []
    for i in range(0, len(tasks), BATCH):
        together = range(i, min(i + BATCH, len(tasks)))
        padded = [*together] + [together[-1]] * (BATCH - len(together))
        arguments = [(tasks[j].cov, starts[j], jnp.asarray(times[j])) for j in padded]
        paths, risks = _integrate(*jax.tree.map(lambda *leaves: jnp.stack(leaves), *arguments))
        for row, j in enumerate(together):
            path = jax.tree.map(lambda leaf, row=row: np.asarray(leaf[row]), paths)
            flows.append(Flow(tasks[j], starts[j], infinite_limit(tasks[j]), times[j], path, np.asarray(risks[row])))
    return flows


@jax.jit
@jax.vmap
def _integrate(cov, start, times):
    def risk(blocks):
        return LinearRegression(cov).infinite_risk(block_head(blocks))

    path = gradient_flow(risk, start, times, rtol=RTOL, atol=RTOL / 100).params
    return path, jax.vmap(risk)(path)


def clock(task: LinearRegression, points: int) -> Float[np.ndarray, " points"]:
    """Time 0, then times in geometric progression until the slowest mode, of rate `b*² σ_min³`, has decayed.

    Before, a small start has to leave the saddle, at the rate `√tr Σ⁴`.
    """
    eigenvalues = np.linalg.eigvalsh(task.cov)
    slow, escape = float(infinite_limit(task).gain) ** 2 * eigenvalues[0] ** 3, np.sqrt(np.sum(eigenvalues**4))
    return np.append(0.0, np.geomspace(0.03 / escape, DECAYED * (1 / slow + 1 / escape), points - 1))


def bounds(cov: Float[Array, "d d"] | Float[np.ndarray, "d d"]) -> tuple[float, float]:
    """Up to where α may go: `√2/(d^{1/4}‖Σ‖)` by [BB26, Thm 5.1], `√2/(d^{1/4}‖Σ‖^{1/2})` by [ZFB24]."""
    norm = np.linalg.eigvalsh(cov)[-1]
    common = np.sqrt(2) / cov.shape[-1] ** 0.25
    return common / norm, common / np.sqrt(norm)


def toeplitz(d: int) -> Float[np.ndarray, "d d"]:
    """`0.5^|i-j|`."""
    return 0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))


def covariances(d: int, condition: float, *, key: PRNGKeyArray) -> dict[str, LinearRegression]:
    """An isotropic, a mild and an ill-conditioned one."""
    axes = np.linalg.qr(np.asarray(jr.normal(key, (d, d)))).Q
    ill = axes * np.geomspace(1.0, 1 / condition, d) @ axes.T
    named = {"identity": np.eye(d), "Toeplitz": toeplitz(d), f"condition number {condition:g}": (ill + ill.T) / 2}
    return {name: LinearRegression(cov) for name, cov in named.items()}


def flows_to_the_limit(tasks: dict[str, LinearRegression], points: int, *, key: PRNGKeyArray) -> dict[str, Flow]:
    """From a random balanced start in the middle of both intervals for α."""
    starts = [
        balanced_start(jr.normal(jr.fold_in(key, i), task.cov.shape), min(bounds(task.cov)) / 2)
        for i, task in enumerate(tasks.values())
    ]
    flows = follow([*tasks.values()], starts, [clock(task, points) for task in tasks.values()])
    return dict(zip(tasks, flows, strict=True))


def flow_table(flows: dict[str, Flow]) -> Table:
    """Risk, distance and invariant along each flow."""
    frames = [
        pd.DataFrame(
            {
                "covariance": name,
                "time": flow.times,
                "risk": flow.risk / flow.risk_of_zero,
                "distance": flow.distance,
                "drift": flow.drift,
            }
        )
        for name, flow in flows.items()
    ]
    columns = {
        "covariance": Column("Σ, the covariance of the covariates", "name"),
        "time": Column("Time of the gradient flow"),
        "risk": Column("Risk, divided by that of predicting 0", absolute=1e-12),
        "distance": Column("Distance of (A, b) to (A*, b*), divided by the size of the latter", absolute=1e-8),
        "drift": Column("Change of ‖A‖² - b² since the start, divided by b*²: the integrator's error", absolute=KEPT),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def limit_claim(flows: dict[str, Flow]) -> Claim:
    """The end of each flow against (A*, b*); the other zeros of the risk are far from it."""

    def other(flow: Flow) -> float:
        """The zero of the risk with gain 1: also Bayes, but not balanced."""
        head = Blocks(np.linalg.inv(flow.task.cov), 1.0)
        return float(_distance(head, flow.limit)) / flow.size

    return Claim(
        id="icl-infinite-limit",
        statement=(
            f"The flow of the infinite-prompt risk ends at A* = tr(Σ⁻²)^(-1/4) Σ⁻¹, b* = tr(Σ⁻²)^(1/4), for Σ "
            f"{', '.join(flows)}: the largest distance, relative to the limit's size."
        ),
        source="[BB26, Thm 5.1]",
        figure="infinite_flow",
        measured=max(flow.distance[-1] for flow in flows.values()),
        expected=0.0,
        tolerance=REACHED,
        relation="≤",
        alternative=Alternative(
            "it ends at another head of risk zero, A = Σ⁻¹ and b = 1", max(map(other, flows.values()))
        ),
    )


def invariant_claim(flows: dict[str, Flow]) -> Claim:
    """`‖A‖² - b²` along each flow. A gain that learns twice as fast keeps `‖A‖² - b²/2` instead."""

    def twice_as_fast(flow: Flow) -> float:
        """Drift at the end: bA = Σ⁻¹ and ‖A‖² - b²/2 = α²/2 give b² in closed form."""
        power, alpha = np.sum(np.linalg.inv(flow.task.cov) ** 2), float(flow.start.gain)
        square = np.sqrt(alpha**4 / 4 + 2 * power) - alpha**2 / 2
        return abs(power / square - square) / float(flow.limit.gain) ** 2

    return Claim(
        id="icl-infinite-invariant",
        statement=(
            f"Along the flow ‖A‖² - b² does not change, up to {KEPT / RTOL:g} times the integrator's tolerance per "
            f"step: the largest change, divided by b*²."
        ),
        source="[BB26, Thm 5.1]",
        figure="infinite_flow",
        measured=max(flow.drift.max() for flow in flows.values()),
        expected=0.0,
        tolerance=KEPT,
        relation="≤",
        alternative=Alternative("the gain learns twice as fast as the matrix", max(map(twice_as_fast, flows.values()))),
    )


# --- the start --------------------------------------------------------------------------------------------


def narrow_and_wide(d: int) -> dict[str, LinearRegression]:
    """One covariance at two scales, on either side of ‖Σ‖ = 1, where the two conditions on α change order."""
    return {"‖Σ‖ > 1": LinearRegression(toeplitz(d)), "‖Σ‖ < 1": LinearRegression(toeplitz(d) / SHRINKING)}


def interval_frame(
    tasks: dict[str, LinearRegression], scales: int, starts: int, points: int, *, key: PRNGKeyArray
) -> pd.DataFrame:
    """Runs from random Θ, at scales inside, at and outside the two intervals."""
    rows, runs = [], []
    for name, task in tasks.items():
        paper, earlier = bounds(task.cov)
        for alpha in sorted({*(earlier * np.geomspace(1 / 30, 30, scales)), paper, earlier}):
            for i in range(starts):
                rows.append({"covariance": name, "alpha": alpha, "paper": paper, "earlier": earlier})
                runs.append((task, balanced_start(jr.normal(jr.fold_in(key, i), task.cov.shape), alpha)))
    flows = follow(
        [task for task, _ in runs],
        [start for _, start in runs],
        [clock(task, points) for task, _ in runs],
    )
    measured = [
        {
            "start_risk": flow.risk[0] / flow.risk_of_zero,
            "time": first_below(flow.times, flow.distance, NEAR),
            "distance": flow.distance[-1],
        }
        for flow in flows
    ]
    return pd.concat([pd.DataFrame(rows), pd.DataFrame(measured)], axis=1)


def first_below(times: np.ndarray, values: np.ndarray, level: float) -> float:
    """Where `values` come below `level` for good, the logarithm interpolated; NaN if they do not."""
    if values[-1] >= level:
        return float("nan")
    i = int(np.flatnonzero(values >= level)[-1])
    share = np.log(values[i] / level) / np.log(values[i] / values[i + 1])
    return float(times[i] + share * (times[i + 1] - times[i]))


def interval_table(frame: pd.DataFrame) -> Table:
    """One run a row."""
    columns = {
        "covariance": Column("Σ, by its norm", "name"),
        "alpha": Column("Scale α of the start"),
        "paper": Column("√2/(d^(1/4)‖Σ‖), the bound on α of [BB26, Thm 5.1]"),
        "earlier": Column("√2/(d^(1/4)‖Σ‖^(1/2)), the bound on α of [ZFB24]"),
        "start_risk": Column("Risk of the start, divided by that of predicting 0"),
        "time": Column(f"Time after which (A, b) stays within {NEAR:g} of its limit, relative to its size"),
        "distance": Column("Distance to the limit at the end of the run, relative to its size", absolute=1e-8),
    }
    return Table(frame, columns)


def every_scale_claim(frame: pd.DataFrame) -> Claim:
    """The end of every run against its limit. At the saddle A = 0, b = 0 the relative distance is 1 by definition."""
    return Claim(
        id="icl-infinite-every-alpha",
        statement=(
            f"Inside, at and outside the interval for α the flow ends at (A*, b*): the largest relative distance of "
            f"{len(frame)} random starts, with α up to {(frame['alpha'] / frame['paper']).max():.0f} times the bound."
        ),
        source="derived here",
        figure="initialisation_interval",
        measured=float(np.max(frame["distance"])),
        expected=0.0,
        tolerance=REACHED,
        relation="≤",
        alternative=Alternative("one of the runs ends in the saddle A = 0, b = 0", 1.0),
    )


def intervals_differ_claim(frame: pd.DataFrame) -> Claim:
    """Start risks where ‖Σ‖ < 1, inside the paper's interval and inside the earlier one."""
    small = frame[frame["paper"] > frame["earlier"]]

    def worst(bound: str) -> float:
        return float(small.loc[small["alpha"] <= small[bound], "start_risk"].max())

    return Claim(
        id="icl-infinite-two-conditions",
        statement=(
            "Where ‖Σ‖ < 1 the condition α < √2/(d^(1/4)‖Σ‖) of [BB26] allows starts that are worse than predicting "
            "0: the largest risk of such a start, divided by that of predicting 0."
        ),
        source="derived here",
        figure="initialisation_interval",
        measured=worst("paper"),
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("the condition α < √2/(d^(1/4)‖Σ‖^(1/2)) of [ZFB24]", worst("earlier")),
    )


# --- saddles ----------------------------------------------------------------------------------------------


def saddle_frame(d: int, decades: int, points: int) -> pd.DataFrame:
    """Starts with the wrong sign, `A = -sI/√d` and b = s, one of them a little larger, at Σ = I; and A = 0, b = 0."""
    task = LinearRegression(np.eye(d))
    imbalances = 10.0 ** -np.arange(1, decades + 1)
    wrong = -SADDLE_SIZE * np.eye(d) / np.sqrt(d)
    labels, starts = [("neither", 0.0)], [Blocks(np.zeros((d, d)), 0.0)]
    for imbalance in imbalances:
        factor = np.sqrt(1 + imbalance)
        labels += [("gain", imbalance), ("matrix", imbalance)]
        starts += [Blocks(wrong, SADDLE_SIZE * factor), Blocks(wrong * factor, SADDLE_SIZE)]
    times = np.linspace(0.0, (decades * np.log(10) + 8) / np.sqrt(d), points)
    flows = follow([task] * len(starts), starts, [times] * len(starts))
    frames = [
        pd.DataFrame(
            {
                "larger": larger,
                "imbalance": imbalance,
                "time": times,
                "risk": flow.risk / flow.risk_of_zero,
                "gain": flow.path.gain,
                "escape": first_below(times, flow.risk / flow.risk_of_zero, 0.5),
            }
        )
        for (larger, imbalance), flow in zip(labels, flows, strict=True)
    ]
    frame = pd.concat(frames, ignore_index=True)
    last = frame[frame["imbalance"] == imbalances[-1]]["escape"].mean()
    with np.errstate(divide="ignore"):
        frame["line"] = last + np.log(imbalances[-1] / frame["imbalance"]) / np.sqrt(d)
    return frame.replace(np.inf, np.nan)


def saddle_table(frame: pd.DataFrame) -> Table:
    """Risk along each flow, and when it left."""
    columns = {
        "larger": Column("Which of b and ‖A‖ is larger at the start", "name"),
        "imbalance": Column("|‖A‖² - b²| at the start, divided by the smaller of the two squares"),
        "time": Column("Time of the gradient flow"),
        "risk": Column("Risk, divided by that of predicting 0", absolute=1e-8),
        "gain": Column("Gain b", absolute=1e-8),
        "escape": Column("Time after which the risk stays below half that of predicting 0", absolute=1e-5),
        "line": Column("Line of slope 1/√(tr Σ⁴) in ln 1/imbalance through the last of these times", absolute=1e-5),
    }
    return Table(frame, columns)


def saddle_claim(frame: pd.DataFrame, d: int) -> Claim:
    """Slope of the escape time in `ln 1/imbalance`."""
    left = frame[(frame["imbalance"] > 0) & (frame["imbalance"] <= SMALL_IMBALANCE)]
    left = left.groupby(["larger", "imbalance"], as_index=False).first()
    slope = np.polyfit(np.log(1 / left["imbalance"]), left["escape"], 1)[0]
    rate = np.sqrt(d)
    return Claim(
        id="icl-infinite-saddle",
        statement=(
            "A sign-wrong start passes the saddle and leaves it: the time this takes grows with ln(1/imbalance), with "
            "slope 1/√(tr Σ⁴), here in units of that."
        ),
        source="derived here",
        figure="escape_from_saddle",
        measured=slope * rate,
        expected=1.0,
        tolerance=0.01,
        alternative=Alternative("escape at the rate tr Σ² instead of its root", rate / d),
    )
