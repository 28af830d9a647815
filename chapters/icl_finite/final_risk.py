r"""What length buys: the risk at the end of training, and the length that an accuracy costs.

Left, for one dimension: the risk of the exact flow after infinite time (solid), where the descents stopped
(dashed), at the head $(A^*,b^*)$ where the infinite flow ends (dotted), and that of the best linear attention
(grey); points are the descents' last losses with the standard error over seeds. Right: the least length
$L(\varepsilon)$ at which the risk after infinite time is below $\varepsilon$ (solid), and the same for the head
$(A^*,b^*)$ (dotted), in several dimensions, up to $10^{24}$ tokens. Dashed: slope $-1$.

Alt: Left, log-log chart of risk against length. Solid, dashed and dotted lines fall with length, the solid one
lowest of the three, a grey one below all; points lie on the dashed line. Right, length against accuracy, over
twenty decades: solid lines of slope minus one, and dotted lines above them, far above and steeper in dimension one.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.optimize import minimize_scalar

from chapters.icl_finite.descents import Run
from chapters.icl_finite.exact_flows import Flows, Scene, prompt_name
from chapters.icl_finite.marks import MARKERS, SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink, sequence
from lib.icl import Blocks, LinearRegression, block_risk, infinite_limit, radial_average, score_table
from lib.statistics import standard_error


class Price(NamedTuple):
    """What one length buys in one dimension: the risk after training to the end, and that at (A*, b*)."""

    dimension: int
    log_length: float
    trained: float
    at_limit: float


def search_the_valley(dimensions: list[int], log_lengths: list[float]) -> list[Price]:
    """Risk after training to the end, and at the limit (A*, b*) of the infinite flow, for Σ = I."""
    prices = []
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
            prices.append(Price(d, log_length, float(risks(log_u, scores)[0]), float(risks(limit, scores)[1])))
    return prices


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


def numbers(scene: Scene, flows: Flows, runs: list[Run], prices: list[Price]) -> Numbers:
    """Risks at the end by length and dimension; where the flow ends, and the exponent of L(ε)."""
    frame = pd.DataFrame(prices)
    return Numbers(_table(scene, flows, runs, frame), (_limit_claim(scene, flows, frame), _price_claim(frame)))


def _table(scene: Scene, flows: Flows, runs: list[Run], prices: pd.DataFrame) -> Table:
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


def _limit_claim(scene: Scene, flows: Flows, prices: pd.DataFrame) -> Claim:
    """The flow's risk at the horizon against the least one, where the horizon is long compared to L."""
    mine = prices[prices["dimension"] == scene.task.dimension].set_index("log_length")
    reached = [ell for ell in flows.log_lengths if np.exp(ell) <= flows.times[-1] / 4]
    excess = [flows.risk[flows.log_lengths.index(ell), -1] / mine.loc[ell, "trained"] - 1 for ell in reached]
    elsewhere = mine.loc[reached, "at_limit"] / mine.loc[reached, "trained"] - 1
    return Claim(
        id="icl-finite-limit",
        statement=(
            f"The finite-prompt flow ends at the least risk of all heads A = uI: its largest relative excess at time "
            f"{flows.times[-1]:g}, for L = {', '.join(map(prompt_name, reached))}."
        ),
        source="derived here",
        measured=float(np.max(np.abs(excess))),
        expected=0.0,
        tolerance=1e-3,
        relation="≤",
        alternative=Alternative("it ends where the infinite-prompt flow does", float(np.max(elsewhere))),
    )


def _price_claim(prices: pd.DataFrame) -> Claim:
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
        measured=float(np.max(np.abs(slopes("trained") - 1))),
        expected=0.0,
        tolerance=0.01,
        relation="≤",
        alternative=Alternative(
            "the head is left where the infinite flow ends", float(np.max(np.abs(slopes("at_limit") - 1)))
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Risk against length in one dimension; length against accuracy in several."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE)
    descents = table[table["kind"].isin(list(MARKERS))]
    dimension, end = descents["dimension"].max(), descents["log_length"].max() + 2.5
    curves = {
        "trained": ("-", "C0", r"$t\to\infty$"),
        "stopped": ("--", "C1", "flow, stopped"),
        "infinite limit": (":", "C2", "$(A^*,b^*)$"),
        "linear attention": ("-", "0.6", "best linear"),
    }
    mine = table[(table["dimension"] == dimension) & (table["log_length"] <= end)]
    for kind, (dash, colour, label) in curves.items():
        curve = mine[mine["kind"] == kind]
        left.plot(np.exp(curve["log_length"]), curve["risk"], dash, color=colour, linewidth=2, label=label)
    for kind, points in descents.groupby("kind", sort=False):
        left.errorbar(
            np.exp(points["log_length"]),
            points["risk"],
            points["std_error"],
            fmt=MARKERS[kind],
            color=ink(),
            markersize=6,
            elinewidth=1.5,
            label=f"descent, {kind}",
        )
    left.set(xscale="log", yscale="log", xlabel="$L$", ylabel="risk", title=f"$d={dimension}$")
    left.legend(loc="lower left", fontsize="small")
    dimensions = sorted(table[table["kind"] == "trained"]["dimension"].unique())
    for d, colour in zip(dimensions, sequence(len(dimensions)), strict=True):
        for kind, dash in (("trained", "-"), ("infinite limit", ":")):
            curve = table[(table["kind"] == kind) & (table["dimension"] == d)]
            label = f"$d={d}$" if kind == "trained" else None
            right.plot(curve["risk"], np.exp(curve["log_length"]), dash, color=colour, linewidth=2, label=label)
    reference = table[(table["kind"] == "trained") & (table["dimension"] == dimensions[0])]
    risk = np.asarray([reference["risk"].max(), reference["risk"].min()])
    right.plot(risk, 0.1 * np.exp(reference["log_length"].min()) * risk[0] / risk, "--", color=ink(), linewidth=1.3)
    right.set(xscale="log", yscale="log", xlabel=r"accuracy $\varepsilon$", ylabel=r"$L(\varepsilon)$")
    right.legend(loc="lower left")
    return figure
