r"""All three flows of the infinite-prompt risk end at the limit of the theorem, the ill-conditioned one last.

Against time: the risk, divided by that of predicting 0, and the distance of $(A,b)$ to the limit $(A^*,b^*)$,
relative to its size, for three covariances $\Sigma$. Distances stop at the precision of the integration.

Alt: Two log-log panels over time. Risk and distance stay near one and then drop to the bottom, in order: the
identity, the Toeplitz matrix, and ten times later the ill-conditioned matrix. The risk of the latter two falls slowly
before it drops.
"""

import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

from chapters.icl_infinite.block_flows import (
    REACHED,
    RTOL,
    Flow,
    bounds,
    clock,
    decay_rates,
    distance_between,
    follow,
    slowest_rate,
    toeplitz,
)
from chapters.icl_infinite.style import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import few_decades, headline
from lib.icl import Blocks, LinearRegression, balanced_start

# What the flow's invariant may still be off, after up to 10⁵ steps.
KEPT = 1e3 * RTOL
# Relative error of an eigenvalue that is a thousandth of the largest, with room: rounding is 1e-16 of the largest.
ROUNDING = 1e-9
DASHES = ("-", "--", "-.")


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


def numbers(flows: dict[str, Flow]) -> Numbers:
    """Return risk and distance by time; where the flows end, what they keep, and how fast they arrive."""
    return Numbers(_table(flows), (_limit_claim(flows), _invariant_claim(flows), _slowest_claim(flows)))


def _table(flows: dict[str, Flow]) -> Table:
    """Risk, distance and invariant along each flow."""
    frames = [
        pd.DataFrame({"covariance": name, "time": flow.times, "risk": flow.relative_risk}).assign(
            distance=flow.distance
        )
        for name, flow in flows.items()
    ]
    columns = {
        "covariance": Column("Σ, the covariance of the covariates", "name"),
        "time": Column("Time of the gradient flow"),
        "risk": Column("Risk, divided by that of predicting 0", absolute=1e-12),
        "distance": Column("Distance of (A, b) to (A*, b*), divided by the size of the latter", absolute=1e-8),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _limit_claim(flows: dict[str, Flow]) -> Claim:
    """The end of each flow against (A*, b*); the other zeros of the risk are far from it."""

    def other(flow: Flow) -> float:
        """The zero of the risk with gain 1: also Bayes, but not balanced."""
        head = Blocks(np.linalg.inv(flow.task.cov), 1.0)
        return float(distance_between(head, flow.limit)) / flow.size

    return Claim(
        id="icl-infinite-limit",
        statement=(
            f"The flow of the infinite-prompt risk ends at A* = tr(Σ⁻²)^(-1/4) Σ⁻¹, b* = tr(Σ⁻²)^(1/4), for Σ "
            f"{', '.join(flows)}: the largest distance, relative to the limit's size."
        ),
        source="[BB26, Thm 5.1]",
        box="bb26-thm-5-1",
        measured=max(flow.distance[-1] for flow in flows.values()),
        expected=0.0,
        tolerance=REACHED,
        relation="≤",
        alternative=Alternative(
            "it ends at another head of risk zero, A = Σ⁻¹ and b = 1", max(map(other, flows.values()))
        ),
    )


def _invariant_claim(flows: dict[str, Flow]) -> Claim:
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
        box="bb26-thm-5-1",
        measured=max(flow.drift.max() for flow in flows.values()),
        expected=0.0,
        tolerance=KEPT,
        relation="≤",
        alternative=Alternative("the gain learns twice as fast as the matrix", max(map(twice_as_fast, flows.values()))),
    )


def _slowest_claim(flows: dict[str, Flow]) -> Claim:
    """Compare the slowest rate of the linearised flow, by automatic differentiation, with the closed form."""
    name, flow = [*flows.items()][-1]
    eigenvalues = np.linalg.eigvalsh(np.asarray(flow.task.cov))
    unit = float(flow.limit.gain) ** 2 * eigenvalues[0] ** 3
    expected = slowest_rate(eigenvalues) / unit
    return Claim(
        id="icl-infinite-slowest-rate",
        statement=(
            f"At the limit (A*, b*) with {name} the slowest rate of the flow is between one and two times b*²σ_min³, "
            "because the diagonal of A and b decay together: the smallest nonzero eigenvalue of the Hessian of the "
            "risk on the block heads, over b*²σ_min³."
        ),
        source="derived here",
        box="rates-at-the-limit",
        measured=float(decay_rates(flow.task)[1]) / unit,
        expected=expected,
        tolerance=ROUNDING * expected,
        alternative=Alternative("an entry of A between the two weakest directions decays alone, at b*²σ_min³", 1.0),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per quantity and one curve per covariance."""
    figure, panels = plt.subplots(1, 2, figsize=SIZE, sharex=True)
    columns = {"risk": "risk, relative", "distance": r"distance to $(A^*,b^*)$, relative"}
    floors = {"risk": 1e-12, "distance": 1e-9}
    frame = table[table["time"] > 0]
    for panel, (column, title) in zip(panels, columns.items(), strict=True):
        for name, dash in zip(dict.fromkeys(frame["covariance"]), DASHES, strict=False):
            curve = frame[frame["covariance"] == name]
            shown = np.maximum(curve[column], floors[column] / 100)
            panel.plot(curve["time"], shown, dash, linewidth=2, label=name)
        panel.set(xscale="log", yscale="log", title=title, xlabel="time", ylim=(floors[column], 3))
        few_decades(panel)
    panels[1].legend(loc="lower left", fontsize=9, handlelength=1.6)
    headline(figure, "All flows end at the theorem's limit; the ill-conditioned covariance takes longest")
    return figure
