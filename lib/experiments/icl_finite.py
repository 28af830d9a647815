"""In-context regression on finite prompts: training by exact flow and by stochastic descent, and what length buys.

For Σ = I and a start `A ∝ I` the exact dynamics have two numbers, ‖A‖_F and b; stochastic descent moves all of A.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import optax
import pandas as pd
from jaxtyping import Array, Float, PRNGKeyArray
from pydantic import Field
from scipy.optimize import minimize_scalar

from lib.experiments.registry import experiment
from lib.experiments.result import Alternative, Claim, Column, Result, Table, comparison_quantile, standard_error
from lib.finite_prompt import LARGEST_LOG_LENGTH
from lib.flow import gradient_flow, sgd
from lib.icl import (
    Blocks,
    LinearRegression,
    ScoreTable,
    balanced_start,
    block_head,
    block_risk,
    collapsed,
    infinite_limit,
    plain,
    prompt_loss,
    radial_average,
    score_table,
)

# e^330 tokens: P and Q are below 1e-100, which is what "infinite" means in float64.
INFINITE = LARGEST_LOG_LENGTH
# Longest prompts whose flow differs from the infinite one by more than the integrator's error.
LONGEST_GAP = 21.0
RTOL = 1e-10
# Largest and smallest batch: the noise of a step moves the mean over seeds as well, by order step/batch.
LARGEST_BATCH, SMALLEST_BATCH = 128, 8
LONGER = 1.2
SAMPLINGS = {"collapsed": collapsed, "plain": plain}


@experiment
def icl_finite(
    *,
    seed: Annotated[int, Field(ge=0, description="All prompts of the stochastic descents are drawn from it.")],
    dimension: Annotated[int, Field(ge=1, le=10, description="d of the covariates, whose covariance is I.")],
    alpha: Annotated[float, Field(gt=0.0, le=2.0, description="Scale of the balanced start, ‖A‖ = b = α.")],
    lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**5)]],
        Field(min_length=2, max_length=10, description="Lengths at which stochastic descent is run."),
    ],
    plain_lengths: Annotated[
        list[Annotated[int, Field(ge=2, le=10**4)]],
        Field(max_length=10, description="Lengths at which it is run on plainly drawn prompts too."),
    ],
    step: Annotated[float, Field(gt=0.0, le=0.05, description="Step of the descents.")],
    steps: Annotated[int, Field(ge=50, le=10**6, description="Number of steps.")],
    every: Annotated[int, Field(ge=5, le=10**5, description="Steps averaged to one point; divides their number.")],
    seeds: Annotated[int, Field(ge=8, le=1000, description="Independent runs at each length.")],
    tokens: Annotated[int, Field(ge=10**4, le=10**9, description="Tokens a step, over all seeds.")],
    log_lengths: Annotated[
        list[Annotated[float, Field(ge=2.0, le=60.0)]],
        Field(min_length=3, max_length=40, description="ln L of longer prompts, for the exact theory only."),
    ],
    dimensions: Annotated[
        list[Annotated[int, Field(ge=1, le=50)]],
        Field(min_length=1, max_length=6, description="Dimensions of the curves L(ε); 1 and `dimension` are added."),
    ],
    horizon: Annotated[float, Field(ge=100.0, le=1e4, description="Until when the exact flows are followed.")],
    gap_times: Annotated[
        list[Annotated[float, Field(ge=0.1, le=50.0)]],
        Field(min_length=1, max_length=6, description="Times at which finite and infinite flow are compared."),
    ],
) -> Result:
    """Flows and descents at several lengths, the price of accuracy, and the gap between the trajectories."""
    scene = Scene(LinearRegression(np.eye(dimension)), alpha)
    exact_lengths = sorted({*np.log(lengths), *log_lengths, INFINITE})
    flows = Flows.of(scene, exact_lengths, np.union1d(np.geomspace(0.05, horizon, 80), gap_times))
    chosen = [("collapsed", length) for length in lengths] + [("plain", length) for length in plain_lengths]
    runs = trained(scene, chosen, Plan(step, steps, every, seeds, tokens), key=jr.key(seed))
    prices = price_frame(sorted({1, dimension, *dimensions}), [ell for ell in exact_lengths if ell < INFINITE])
    gaps = gap_frame(flows, gap_times)
    return Result(
        tables={
            "finite_training": training_table(flows, runs),
            "final_risk": final_table(scene, flows, runs, prices),
            "trajectory_gap": gap_table(gaps),
        },
        claims=(
            loss_claim(runs),
            gain_claim(runs),
            limit_claim(scene, flows, prices),
            price_claim(prices),
            gap_claim(gaps),
        ),
    )


# --- exact ------------------------------------------------------------------------------------------------


class Isotropic(eqx.Module):
    """The block head with `A = size · I/√d`, so that ‖A‖_F is its size: the flow in (size, gain) is that in (A, b)."""

    size: Float[Array, "*rows"]
    gain: Float[Array, "*rows"]

    def blocks(self, d: int) -> Blocks:
        """A and b."""
        return Blocks(self.size * jnp.eye(d) / d**0.5, self.gain)


@dataclass(frozen=True)
class Scene:
    """An isotropic task, and the scale of a balanced start."""

    task: LinearRegression
    alpha: float

    @property
    def start(self) -> Isotropic:
        """`‖A‖ = b = α`."""
        return Isotropic(jnp.asarray(self.alpha), jnp.asarray(self.alpha))

    def risk(self, params: Isotropic, scores: ScoreTable) -> Float[Array, ""]:
        """The exact risk: everything is a function of the query's length alone."""
        d = self.task.dimension
        return block_risk(self.task, params.blocks(d), scores, radial_average(d))


def stacked_tables(log_lengths: list[float]) -> ScoreTable:
    """Score tables with a leading axis of lengths."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(score_table, log_lengths))


@dataclass(frozen=True)
class Flows:
    """Exact gradient flows from one start, a row a length; the last length stands for the infinite prompt."""

    log_lengths: list[float]
    times: Float[np.ndarray, " times"]
    size: Float[np.ndarray, "lengths times"]
    gain: Float[np.ndarray, "lengths times"]
    risk: Float[np.ndarray, "lengths times"]

    @classmethod
    def of(cls, scene: Scene, log_lengths: list[float], times: Float[np.ndarray, " times"]) -> "Flows":
        """All lengths together, under one compilation."""

        def follow(scores):
            def risk(params):
                return scene.risk(params, scores)

            path = gradient_flow(risk, scene.start, times, rtol=RTOL, atol=RTOL / 100).params
            return path, jax.vmap(risk)(path)

        path, risk = jax.jit(jax.vmap(follow))(stacked_tables(log_lengths))
        return cls(log_lengths, times, np.asarray(path.size), np.asarray(path.gain), np.asarray(risk))


# --- stochastic -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """How long descents are, how they are averaged, and what they may cost."""

    step: float
    steps: int
    every: int
    seeds: int
    tokens: int

    def batch(self, length: int) -> int:
        """Prompts a step and seed."""
        return int(np.clip(self.tokens // (length * self.seeds), SMALLEST_BATCH, LARGEST_BATCH))

    @property
    def gain_times(self) -> Float[np.ndarray, " rows"]:
        """Ends of the windows of steps."""
        return self.every * self.step * np.arange(1, self.steps // self.every + 1)

    @property
    def loss_times(self) -> Float[np.ndarray, " rows"]:
        """Their middles: a step's loss is that before the step."""
        return self.gain_times - self.step * (self.every + 1) / 2


@dataclass(frozen=True)
class Descent:
    """Gradient descent on an exact risk: mean risk over each window of steps, and gain at its end.

    In the mean over prompts a stochastic step is a step of this, not of the flow: they differ by order `step`.
    """

    loss: Float[np.ndarray, " rows"]
    gain: Float[np.ndarray, " rows"]

    @classmethod
    def all(cls, scene: Scene, log_lengths: list[float], stretch: list[float], plan: Plan) -> "list[Descent]":
        """One a length, its step `stretch` times the plan's; together, under one compilation."""

        def descent(scores, step):
            def move(params, _):
                risk, slope = jax.value_and_grad(scene.risk)(params, scores)
                params = jax.tree.map(lambda value, slope: value - step * slope, params, slope)
                return params, (risk, params.gain)

            return jax.lax.scan(move, scene.start, length=plan.steps)[1]

        risks, gains = jax.jit(jax.vmap(descent))(stacked_tables(log_lengths), plan.step * jnp.asarray(stretch))
        windows = np.asarray(risks).reshape(len(stretch), -1, plan.every)
        ends = np.asarray(gains)[:, plan.every - 1 :: plan.every]
        return [cls(*rows) for rows in zip(windows.mean(axis=2), ends, strict=True)]


@dataclass(frozen=True)
class Run:
    """Stochastic descents at one length, a row a seed, beside the exact descent they should follow in the mean.

    And beside two that they should not: that of the infinite prompt, and one of longer steps.
    """

    length: int
    sampling: str
    plan: Plan
    loss: Float[np.ndarray, "seeds rows"]
    gain: Float[np.ndarray, "seeds rows"]
    exact: Descent
    infinite: Descent
    hasty: Descent


def trained(scene: Scene, chosen: list[tuple[str, int]], plan: Plan, *, key: PRNGKeyArray) -> list[Run]:
    """A run for each (sampling, length)."""
    ells = [float(np.log(length)) for _, length in chosen]
    descents = Descent.all(scene, [*ells, *ells, INFINITE], [1.0] * len(ells) + [LONGER] * len(ells) + [1.0], plan)
    runs = []
    for i, (sampling, length) in enumerate(chosen):
        run_key = jr.fold_in(jr.fold_in(key, length), sampling == "plain")
        loss, gain = stochastic(scene, length, sampling, plan, key=run_key)
        runs.append(Run(length, sampling, plan, loss, gain, descents[i], descents[-1], descents[len(ells) + i]))
    return runs


def stochastic(
    scene: Scene, length: int, sampling: str, plan: Plan, *, key: PRNGKeyArray
) -> tuple[Float[np.ndarray, "seeds rows"], Float[np.ndarray, "seeds rows"]]:
    """Losses and gains of descents on sampled prompts, in float32: the noise of a batch is far above its rounding."""
    start = balanced_start(np.eye(scene.task.dimension), scene.alpha)
    start = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), start)
    loss = prompt_loss(scene.task, length, batch=plan.batch(length), head=block_head, sampling=SAMPLINGS[sampling])

    @jax.jit
    @jax.vmap
    def train(key):
        return sgd(loss, start, optimiser=optax.sgd(plan.step), steps=plan.steps, every=plan.every, key=key)

    history = train(jr.split(key, plan.seeds))
    return np.asarray(history.loss, np.float64), np.asarray(history.params.gain, np.float64)


def deviations(
    samples: Float[np.ndarray, "seeds rows"], expected: Float[np.ndarray, " rows"]
) -> Float[np.ndarray, " rows"]:
    """Of the mean over seeds, in its own standard errors."""
    return np.abs(samples.mean(axis=0) - expected) / standard_error(samples)


def student_quantile(comparisons: int, seeds: int) -> float:
    """`comparison_quantile` where the standard error is measured on few seeds: same chance, by Student's law."""
    from scipy.stats import norm, t  # a second to import, and only claims need it

    return float(t.isf(norm.sf(comparison_quantile(comparisons)), seeds - 1))


def _label(log_length: float) -> str:
    return "infinite" if log_length == INFINITE else f"{np.exp(log_length):.0f}"


def training_table(flows: Flows, runs: list[Run]) -> Table:
    """Curves of the flows at the lengths of the runs, and points of the runs."""
    shown = {_label(np.log(run.length)) for run in runs} | {"infinite"}
    frames = [
        pd.DataFrame({"prompt": _label(ell), "kind": "flow", "quantity": quantity, "time": flows.times, "value": row})
        for quantity, rows in (("risk", flows.risk), ("gain", flows.gain))
        for ell, row in zip(flows.log_lengths, rows, strict=True)
        if _label(ell) in shown
    ]
    for run in runs:
        common = {"prompt": str(run.length), "kind": run.sampling}
        for quantity, times, samples, exact in (
            ("risk", run.plan.loss_times, run.loss, run.exact.loss),
            ("gain", run.plan.gain_times, run.gain, run.exact.gain),
        ):
            measured = {"value": samples.mean(axis=0), "std_error": standard_error(samples), "descent": exact}
            frames.append(pd.DataFrame({**common, "quantity": quantity, "time": times, **measured}))
    columns = {
        "prompt": Column("Number of tokens L", "name"),
        "kind": Column("Exact flow, or stochastic descent on prompts drawn in the collapsed or the plain way", "name"),
        "quantity": Column("Risk, ½ the mean square error; or gain b", "name"),
        "time": Column("Time of the flow; step size times number of steps; middle of the steps averaged, for risks"),
        "value": Column("Exact value, or mean over seeds", std_error="std_error", absolute=1e-9),
        "std_error": Column("Standard error of that mean over seeds", std_error="std_error"),
        "descent": Column("The same of gradient descent on the exact risk, with the same step", absolute=1e-9),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def loss_claim(runs: list[Run]) -> Claim:
    """Training losses against the exact descent, at all lengths, all along."""
    comparisons = sum(run.exact.loss.size for run in runs)
    return Claim(
        id="icl-finite-training",
        statement=(
            f"Stochastic descent follows the exact risk of its own length all along, at L = {_lengths(runs)}: the "
            f"worst of {comparisons} deviations of the mean loss over seeds, in standard errors."
        ),
        source="derived here",
        figure="finite_training",
        measured=max(deviations(run.loss, run.exact.loss).max() for run in runs),
        expected=0.0,
        tolerance=student_quantile(comparisons, len(runs[0].loss)),
        relation="≤",
        alternative=Alternative(
            "it follows the infinite prompt's", max(deviations(run.loss, run.infinite.loss).max() for run in runs)
        ),
    )


def gain_claim(runs: list[Run]) -> Claim:
    """Parameters against the exact descent; and against one with longer steps."""
    comparisons = sum(run.exact.gain.size for run in runs)
    return Claim(
        id="icl-finite-gain",
        statement=(
            f"So do the parameters: the worst of {comparisons} deviations of the mean gain over seeds from the exact "
            "descent, in standard errors."
        ),
        source="derived here",
        figure="finite_training",
        measured=max(deviations(run.gain, run.exact.gain).max() for run in runs),
        expected=0.0,
        tolerance=student_quantile(comparisons, len(runs[0].gain)),
        relation="≤",
        alternative=Alternative(
            f"a descent with steps {LONGER - 1:.0%} longer",
            max(deviations(run.gain, run.hasty.gain).max() for run in runs),
        ),
    )


def _lengths(runs: list[Run]) -> str:
    return ", ".join(str(length) for length in sorted({run.length for run in runs}))


# --- what length buys -------------------------------------------------------------------------------------


def price_frame(dimensions: list[int], log_lengths: list[float]) -> pd.DataFrame:
    """Risk after training to the end, and at the limit (A*, b*) of the infinite flow, for Σ = I."""
    rows = []
    for d in dimensions:
        task = LinearRegression(np.eye(d))
        limit = float(jnp.log(infinite_limit(task).matrix[0, 0]))
        risks = _risks_on_the_valley(task)
        for log_length in log_lengths:
            scores = score_table(log_length)
            least = minimize_scalar(
                lambda log_u, scores=scores, risks=risks: float(jnp.log(risks(log_u, scores)[0])),
                bounds=(np.log(0.02), np.log(2.0)),
                method="bounded",
                options={"xatol": 1e-8},
            )
            log_u = least.x  # pyright: ignore
            rows.append((d, log_length, float(risks(log_u, scores)[0]), float(risks(limit, scores)[1])))
    return pd.DataFrame(rows, columns=["dimension", "log_length", "trained", "at_limit"])


def _risks_on_the_valley(task: LinearRegression) -> Callable:
    """`(ln u, scores) ↦` the risks at A = uI: the least over b, exact because it is quadratic in b, and at b = 1/u."""
    queries = radial_average(task.dimension)

    def risks(log_u, scores):
        u = jnp.exp(log_u)

        def risk(shift):
            return block_risk(task, Blocks(u * jnp.eye(task.dimension), (1 + shift) / u), scores, queries)

        (here, _), (slope, further) = jax.vmap(jax.value_and_grad(risk))(jnp.asarray([0.0, 1.0]))
        return here - slope**2 / (2 * (further - slope)), here

    return jax.jit(risks)


def final_table(scene: Scene, flows: Flows, runs: list[Run], prices: pd.DataFrame) -> Table:
    """Final risks at the lengths of the runs, and the price curves."""
    d = scene.task.dimension
    mine = prices[prices["dimension"] == d]
    lengths = np.exp(np.asarray(mine["log_length"]))
    linear = [float(scene.task.linear_attention_risk(length)) for length in lengths]
    finished = runs[0].plan.loss_times[-1]
    at_end = [np.exp(np.interp(np.log(finished), np.log(flows.times), np.log(row))) for row in flows.risk[:-1]]
    parts = [
        ("trained", prices, prices["trained"]),
        ("infinite limit", prices, prices["at_limit"]),
        ("linear attention", mine, linear),
        ("stopped", mine, at_end),
    ]
    frames = [
        pd.DataFrame({"kind": kind, "dimension": of["dimension"], "log_length": of["log_length"], "risk": risk})
        for kind, of, risk in parts
    ]
    last = pd.DataFrame(
        [
            (run.sampling, d, np.log(run.length), run.loss[:, -1].mean(), standard_error(run.loss[:, -1]))
            for run in runs
        ],
        columns=["kind", "dimension", "log_length", "risk", "std_error"],
    )
    columns = {
        "kind": Column(
            "Exact: the flow after infinite time, the head (A*, b*) where the infinite prompt's flow ends, the flow "
            "stopped when the descents stop, best linear attention; stochastic descent, collapsed or plain",
            "name",
        ),
        "dimension": Column("d, for Σ = I"),
        "log_length": Column("ln L"),
        "risk": Column("Risk; of descents, mean loss of the last steps", std_error="std_error"),
        "std_error": Column("Standard error over seeds", std_error="std_error"),
    }
    return Table(pd.concat([*frames, last], ignore_index=True).reindex(columns=list(columns)), columns)


def limit_claim(scene: Scene, flows: Flows, prices: pd.DataFrame) -> Claim:
    """The flow's risk at the horizon against the least one, where the horizon is long compared to L."""
    mine = prices[prices["dimension"] == scene.task.dimension].set_index("log_length")
    reached = [ell for ell in flows.log_lengths if np.exp(ell) <= flows.times[-1] / 4]
    excess = [flows.risk[flows.log_lengths.index(ell), -1] / mine.loc[ell, "trained"] - 1 for ell in reached]
    elsewhere = mine.loc[reached, "at_limit"] / mine.loc[reached, "trained"] - 1
    return Claim(
        id="icl-finite-limit",
        statement=(
            f"The finite-prompt flow ends at the least risk of all heads A = uI: its largest relative excess at time "
            f"{flows.times[-1]:g}, for L = {', '.join(map(_label, reached))}."
        ),
        source="derived here",
        figure="final_risk",
        measured=float(np.max(np.abs(excess))),
        expected=0.0,
        tolerance=1e-3,
        relation="≤",
        alternative=Alternative("it ends where the infinite-prompt flow does", float(np.max(elsewhere))),
    )


def price_claim(prices: pd.DataFrame) -> Claim:
    """Slope of `ln L` in `ln 1/ε` at the longest prompts."""

    def slopes(column: str) -> np.ndarray:
        longest = prices.groupby("dimension").tail(2)
        steps = longest.groupby("dimension")[["log_length", column]].agg(["first", "last"])
        run = steps["log_length"]["last"] - steps["log_length"]["first"]
        return np.asarray(run / np.log(steps[column]["first"] / steps[column]["last"]))

    return Claim(
        id="icl-finite-price",
        statement=(
            f"L(ε) grows like 1/ε: the exponent at the longest prompts, in dimensions "
            f"{', '.join(str(d) for d in prices['dimension'].unique())}: the largest distance from 1."
        ),
        source="derived here",
        figure="final_risk",
        measured=float(np.max(np.abs(slopes("trained") - 1))),
        expected=0.0,
        tolerance=0.01,
        relation="≤",
        alternative=Alternative(
            "the head is left where the infinite flow ends", float(np.max(np.abs(slopes("at_limit") - 1)))
        ),
    )


# --- trajectories -----------------------------------------------------------------------------------------


def gap_frame(flows: Flows, gap_times: list[float]) -> pd.DataFrame:
    """Distance of finite and infinite flow at fixed times."""
    gaps = np.hypot(flows.size - flows.size[-1], flows.gain - flows.gain[-1])
    rows = [
        (time, ell, gaps[i, np.searchsorted(flows.times, time)])
        for time in sorted(gap_times)
        for i, ell in enumerate(flows.log_lengths)
        if ell <= LONGEST_GAP
    ]
    return pd.DataFrame(rows, columns=["time", "log_length", "gap"])


def gap_table(frame: pd.DataFrame) -> Table:
    """Gaps against length."""
    columns = {
        "time": Column("Time of both flows"),
        "log_length": Column("ln L"),
        "gap": Column("Distance of (A, b) between the flows of L and of infinitely many tokens", absolute=1e-10),
    }
    return Table(frame, columns)


def gap_claim(frame: pd.DataFrame) -> Claim:
    """Local slope at the longest prompts and the earliest time."""
    early = frame[frame["time"] == frame["time"].min()].tail(2)
    slope = float(np.diff(np.log(early["gap"]))[0] / np.diff(early["log_length"])[0])
    return Claim(
        id="icl-finite-gap",
        statement=(
            f"At a fixed time the trajectories of finite and infinite prompts differ by a multiple of 1/L: the slope "
            f"of the gap at time {frame['time'].min():g}, for the longest prompts."
        ),
        source="derived here",
        figure="trajectory_gap",
        measured=slope,
        expected=-1.0,
        tolerance=0.02,
        alternative=Alternative("like the fluctuations of one prompt's output, 1/√L", -0.5),
    )
