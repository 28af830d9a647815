r"""All three flows of the infinite-prompt risk end at the limit of the theorem, the ill-conditioned one last.

Left: the risk, divided by the risk of predicting 0. Right: the distance of $(A,b)$ to the limit $(A^*,b^*)$, relative
to the size of the limit. The covariances $\Sigma$ are the identity, the Toeplitz matrix $2^{-|i-j|}$ and an
ill-conditioned one; each flow starts at a random balanced head in the middle of the published interval.

Alt: Two log-log panels over time. Risk and distance stay near one and then drop to the bottom, in order: the
identity, the Toeplitz matrix, and more than ten times later the ill-conditioned matrix. The risk of the latter two
falls slowly before it drops.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.icl_infinite.block_flows import REACHED, RTOL, Flow, decay_rates, distance_between, slowest_rate
from chapters.wording import listing
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, few_decades, label
from lib.icl import Blocks

# Largest relative change of the invariant, after up to 10⁵ steps.
INVARIANT_TOLERANCE = 1e3 * RTOL
# Bound on the relative error of an eigenvalue that is a thousandth of the largest: rounding is 1e-16 of the largest.
ROUNDING = 1e-9
# The names of the curves are at this multiple of the lowest value that is shown.
LABELLED = 30.0


def numbers(flows: dict[str, Flow]) -> Numbers:
    """Return risk and distance by time, and the claims on the limit, the invariant and the slowest rate."""
    groups = [
        {"covariance": name, "time": flow.times, "risk": flow.relative_risk, "distance": flow.distance}
        for name, flow in flows.items()
    ]
    columns = {
        "covariance": Column("$Σ$, the covariance of the covariates", "name"),
        "time": Column("Time of the gradient flow"),
        "risk": Column("Risk, divided by the risk of predicting 0", absolute=1e-12),
        "distance": Column("Distance of $(A, b)$ to $(A*, b*)$, divided by the norm of $(A*, b*)$", absolute=1e-8),
    }
    return Numbers(Table.of(groups, columns), _claims(flows))


def _claims(flows: dict[str, Flow]) -> Claims:
    claim = Claims("icl-infinite", source="[BB26, Thm 5.1]", box="bb26-thm-5-1")
    claim.at_most(
        "limit",
        "The flow of the infinite-prompt risk ends at $A* = tr(Σ⁻²)^{-1/4} Σ⁻¹$, $b* = tr(Σ⁻²)^{1/4}$, for $Σ$ "
        f"{listing(flows)} (measured: the largest distance at the end, relative to the size of the limit).",
        max(flow.distance[-1] for flow in flows.values()),
        0,
        within=REACHED,
        because="steps have relative errors of 10⁻¹⁰, which do not add up because the flow contracts to its limit",
        rejects=(
            "it ends at another head of risk zero, $A = Σ⁻¹$ and $b = 1$",
            max(map(_distance_of_unit_gain, flows.values())),
        ),
    )
    claim.at_most(
        "invariant",
        f"Along the flow $‖A‖² - b²$ does not change, within {INVARIANT_TOLERANCE / RTOL:,g} times the tolerance of "
        "one integration step (measured: the largest change, divided by $b*²$).",
        max(flow.drift.max() for flow in flows.values()),
        0,
        within=INVARIANT_TOLERANCE,
        because="independent errors of up to 10⁵ steps add up to about 300 times the tolerance of one step",
        rejects=("the gain learns twice as fast as the matrix", max(map(_drift_of_fast_gain, flows.values()))),
    )
    name, flow = [*flows.items()][-1]
    eigenvalues = np.linalg.eigvalsh(np.asarray(flow.task.cov))
    unit = float(flow.limit.gain) ** 2 * eigenvalues[0] ** 3
    expected = slowest_rate(eigenvalues) / unit
    claim.equal(
        "slowest-rate",
        f"At the limit $(A*, b*)$ with {name} the slowest rate of the flow is between one and two times "
        "$b*²σ_{min}³$, because the diagonal of $A$ and $b$ decay together (measured: the smallest nonzero eigenvalue "
        "of the Hessian of the risk on block heads, divided by $b*²σ_{min}³$).",
        decay_rates(flow.task)[1] / unit,
        expected,
        within=ROUNDING * expected,
        because="bound on the rounding of an eigenvalue that is a thousandth of the largest",
        source="derived here",
        box="rates-at-the-limit",
        rejects=("an entry of $A$ between the two weakest directions decays alone, at $b*²σ_{min}³$", 1),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per quantity and one curve per covariance."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.5), sharex=True)
    quantities = (("risk", "risk, relative", 1e-12), ("distance", r"distance to $(A^{*},b^{*})$, relative", 1e-9))
    frame = table[table["time"] > 0]
    for panel, (column, title, floor) in zip(panels, quantities, strict=True):
        for (name, curve), dash in zip(frame.groupby("covariance", sort=False), ("-", "--", "-."), strict=True):
            shown = np.maximum(curve[column], floor / 100)
            (line,) = panel.plot(curve["time"], shown, dash, linewidth=2)
            low = np.interp(-np.log(LABELLED * floor), -np.log(shown), curve["time"])
            words = name.replace("condition number", "condition\nnumber")
            label(panel, low, LABELLED * floor, words, line.get_color(), xytext=(-5, 0), ha="right", fontsize=10)
        panel.set(xscale="log", yscale="log", title=title, xlabel="time", ylim=(floor, 3))
        panel.set_xlim(0.3 * frame[frame["risk"] < 0.5]["time"].min(), frame["time"].max())
        few_decades(panel)
    return figure


def _distance_of_unit_gain(flow: Flow) -> float:
    """Return the relative distance from the limit of the head of risk zero with gain 1, which is not balanced."""
    return float(distance_between(Blocks(np.linalg.inv(flow.task.cov), 1.0), flow.limit)) / flow.size


def _drift_of_fast_gain(flow: Flow) -> float:
    """Return the change of ‖A‖² - b² at the end if a gain that learns twice as fast conserves ‖A‖² - b²/2 = α²/2.

    It has a closed form, with bA = Σ⁻¹.
    """
    power, alpha = np.sum(np.linalg.inv(flow.task.cov) ** 2), float(flow.start.gain)
    square = np.sqrt(alpha**4 / 4 + 2 * power) - alpha**2 / 2
    return abs(power / square - square) / float(flow.limit.gain) ** 2
