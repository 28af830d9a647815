r"""All three flows of the infinite-prompt risk end at the limit of the theorem, the ill-conditioned one last.

Left: the risk, divided by the risk of predicting 0, as a function of time. Right: the distance of $(A,b)$ to the limit
$(A^*,b^*)$, relative to the size of the limit. There is one curve for each of three covariances $\Sigma$; each starts
at a random balanced head in the middle of the published interval. Distances fall until the precision of the
integration.

Alt: Two log-log panels over time. Risk and distance stay near one and then drop to the bottom, in order: the
identity, the Toeplitz matrix, and more than ten times later the ill-conditioned matrix. The risk of the latter two
falls slowly before it drops.
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
    decay_rates,
    distance_between,
    published_bounds,
    recording_times,
    slowest_rate,
    solve_flows,
    toeplitz,
)
from chapters.wording import listing
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, few_decades
from lib.icl import Blocks, LinearRegression

# Largest relative change of the invariant, after up to 10⁵ steps.
INVARIANT_TOLERANCE = 1e3 * RTOL
# Bound on the relative error of an eigenvalue that is a thousandth of the largest: rounding is 1e-16 of the largest.
ROUNDING = 1e-9
DASHES = ("-", "--", "-.")


def make_tasks(d: int, condition: float, *, key: PRNGKeyArray) -> dict[str, LinearRegression]:
    """Return tasks with an isotropic, a mildly correlated and an ill-conditioned covariance."""
    axes = np.linalg.qr(np.asarray(jr.normal(key, (d, d)))).Q
    ill = axes * np.geomspace(1.0, 1 / condition, d) @ axes.T
    named = {"identity": np.eye(d), "Toeplitz": toeplitz(d), f"condition number {condition:g}": (ill + ill.T) / 2}
    return {name: LinearRegression(cov) for name, cov in named.items()}


def solve_to_the_limit(tasks: dict[str, LinearRegression], points: int, *, key: PRNGKeyArray) -> dict[str, Flow]:
    """Return the flow of each task from a random balanced start, at half the smaller published bound on α."""
    starts = [
        Blocks.balanced(jr.normal(jr.fold_in(key, i), task.cov.shape), min(published_bounds(task.cov)) / 2)
        for i, task in enumerate(tasks.values())
    ]
    flows = solve_flows([*tasks.values()], starts, [recording_times(task, points) for task in tasks.values()])
    return dict(zip(tasks, flows, strict=True))


def numbers(flows: dict[str, Flow]) -> Numbers:
    """Return risk and distance by time, and the claims on the limit, the invariant and the slowest rate."""
    return Numbers(_table(flows), (_limit_claim(flows), _invariant_claim(flows), _slowest_claim(flows)))


def _table(flows: dict[str, Flow]) -> Table:
    """Return the table of risk and distance along each flow."""
    frames = [
        pd.DataFrame({"covariance": name, "time": flow.times, "risk": flow.relative_risk}).assign(
            distance=flow.distance
        )
        for name, flow in flows.items()
    ]
    columns = {
        "covariance": Column("$Σ$, the covariance of the covariates", "name"),
        "time": Column("Time of the gradient flow"),
        "risk": Column("Risk, divided by the risk of predicting 0", absolute=1e-12),
        "distance": Column("Distance of $(A, b)$ to $(A*, b*)$, divided by the norm of $(A*, b*)$", absolute=1e-8),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _limit_claim(flows: dict[str, Flow]) -> Claim:
    """Claim that each flow ends at (A*, b*); other heads of risk zero are far from it."""

    def distance_of_unit_gain(flow: Flow) -> float:
        """Return the relative distance of the head of risk zero with gain 1, which is not balanced."""
        head = Blocks(np.linalg.inv(flow.task.cov), 1.0)
        return float(distance_between(head, flow.limit)) / flow.size

    return Claim(
        id="icl-infinite-limit",
        statement=(
            "The flow of the infinite-prompt risk ends at $A* = tr(Σ⁻²)^{-1/4} Σ⁻¹$, $b* = tr(Σ⁻²)^{1/4}$, for "
            f"$Σ$ {listing(flows)} (measured: the largest distance at the end, relative to the size of the "
            "limit)."
        ),
        source="[BB26, Thm 5.1]",
        box="bb26-thm-5-1",
        measured=max(flow.distance[-1] for flow in flows.values()),
        expected=0.0,
        tolerance=REACHED,
        reason="steps have relative errors of 10⁻¹⁰, which do not add up because the flow contracts to its limit",
        relation="≤",
        alternative=Alternative(
            "it ends at another head of risk zero, $A = Σ⁻¹$ and $b = 1$",
            max(map(distance_of_unit_gain, flows.values())),
        ),
    )


def _invariant_claim(flows: dict[str, Flow]) -> Claim:
    """Claim that `‖A‖² - b²` is constant; a gain that learns twice as fast would conserve `‖A‖² - b²/2` instead."""

    def twice_as_fast(flow: Flow) -> float:
        """Return the change at the end if ‖A‖² - b²/2 = α²/2 is conserved; with bA = Σ⁻¹ it has a closed form."""
        power, alpha = np.sum(np.linalg.inv(flow.task.cov) ** 2), float(flow.start.gain)
        square = np.sqrt(alpha**4 / 4 + 2 * power) - alpha**2 / 2
        return abs(power / square - square) / float(flow.limit.gain) ** 2

    return Claim(
        id="icl-infinite-invariant",
        statement=(
            f"Along the flow $‖A‖² - b²$ does not change, within {INVARIANT_TOLERANCE / RTOL:,g} times the "
            "tolerance of one integration step (measured: the largest change, divided by $b*²$)."
        ),
        source="[BB26, Thm 5.1]",
        box="bb26-thm-5-1",
        measured=max(flow.drift.max() for flow in flows.values()),
        expected=0.0,
        tolerance=INVARIANT_TOLERANCE,
        reason="independent errors of up to 10⁵ steps add up to about 300 times the tolerance of one step",
        relation="≤",
        alternative=Alternative("the gain learns twice as fast as the matrix", max(map(twice_as_fast, flows.values()))),
    )


def _slowest_claim(flows: dict[str, Flow]) -> Claim:
    """Claim that the slowest rate of the linearised flow, by automatic differentiation, is the closed form."""
    name, flow = [*flows.items()][-1]
    eigenvalues = np.linalg.eigvalsh(np.asarray(flow.task.cov))
    unit = float(flow.limit.gain) ** 2 * eigenvalues[0] ** 3
    expected = slowest_rate(eigenvalues) / unit
    return Claim(
        id="icl-infinite-slowest-rate",
        statement=(
            f"At the limit $(A*, b*)$ with {name} the slowest rate of the flow is between one and two times "
            "$b*²σ_{min}³$, because the diagonal of $A$ and $b$ decay together (measured: the smallest nonzero "
            "eigenvalue of the Hessian of the risk on block heads, divided by $b*²σ_{min}³$)."
        ),
        source="derived here",
        box="rates-at-the-limit",
        measured=float(decay_rates(flow.task)[1]) / unit,
        expected=expected,
        tolerance=ROUNDING * expected,
        reason="bound on the rounding of an eigenvalue that is a thousandth of the largest",
        alternative=Alternative(
            "an entry of $A$ between the two weakest directions decays alone, at $b*²σ_{min}³$", 1.0
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per quantity and one curve per covariance."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.5), sharex=True)
    columns = {"risk": "risk, relative", "distance": r"distance to $(A^{*},b^{*})$, relative"}
    floors = {"risk": 1e-12, "distance": 1e-9}
    frame = table[table["time"] > 0]
    for panel, (column, title) in zip(panels, columns.items(), strict=True):
        for name, dash in zip(dict.fromkeys(frame["covariance"]), DASHES, strict=False):
            curve = frame[frame["covariance"] == name]
            shown = np.maximum(curve[column], floors[column] / 100)
            panel.plot(curve["time"], shown, dash, linewidth=2, label=name)
        panel.set(xscale="log", yscale="log", title=title, xlabel="time", ylim=(floors[column], 3))
        few_decades(panel)
    panels[1].legend(loc="lower left", fontsize=9, handlelength=3.2)
    return figure
