r"""The exact flows from a balanced start: the path is hardest to follow on the way, not at its end.

For normal tasks, and Gaussian covariates of three different variances, against time. Left: the squared tilt $H^2$ of
the infinite flow, which passes well above $\frac12$ (line) and ends below. Middle: the distance of the flow on
prompts of $L$ tokens from the infinite one. It opens where the tilt is large, and by a power of $L$ that is far from
$1/L$; later it drifts. Right: the risk of both. At the end it is small in spite of the distance.

Alt: Three panels over a logarithmic time axis. A single hump crosses a horizontal line and comes back below it. Curves
of distance, lower for longer prompts, jump up at the time of the hump and then stay level or rise slowly. Curves of
risk fall together, in steps, and then level off, each at a height of its own, while a dashed curve falls on.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.trajectory_stability.balanced_flows import LONG, BalancedFlows
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label, sequence
from lib.finite_prompt import rate_exponent

# H² up to which the mean over queries falls like the error at one query.
CRITICAL = 0.5


def numbers(flows: BalancedFlows) -> Numbers:
    """Tilt, distance and risk by time; where the tilt passes, at which rate gradients converge there, and the end."""
    return Numbers(_table(flows), (_tilt_claim(flows), _passage_claim(flows), _risk_claim(flows)))


def _table(flows: BalancedFlows) -> Table:
    """A row a length and time, from the first time after zero."""
    frames = [
        pd.DataFrame(
            {
                "log10_length": decade,
                "time": flows.times,
                "tilt": flows.tilts,
                "distance": distances,
                "risk": risks,
                "infinite_risk": flows.infinite_risks,
            }
        ).iloc[1:]
        for decade, distances, risks in zip(flows.decades, flows.distances, flows.risks, strict=True)
    ]
    # what steps of the integrator leave: absolute, because distances start and risks end at nothing
    columns = {
        "log10_length": Column("log₁₀ L, of prompts of L tokens"),
        "time": Column("Time of the gradient flow"),
        "tilt": Column("H² = ‖Σ^{1/2} A Σ^{1/2}‖² along the infinite flow", absolute=1e-6),
        "distance": Column("‖θ_L(t) - θ_∞(t)‖", absolute=1e-6),
        "risk": Column("R_L(θ_L(t))", absolute=1e-8),
        "infinite_risk": Column("R_∞(θ_∞(t))", absolute=1e-8),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _tilt_claim(flows: BalancedFlows) -> Claim:
    """The largest H² on the way, against that of the end."""
    return Claim(
        id="trajectory-stability-balanced-tilt",
        statement=(
            "From a balanced start the infinite flow passes heads with H² above ½, where the mean error of long "
            "prompts falls more slowly than 1/L, although it ends at one below: the largest H² on the way."
        ),
        source="derived here",
        box="tilts-on-the-way",
        measured=float(flows.tilts.max()),
        expected=CRITICAL,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("H² is largest at the end, at (A*, b*)", flows.limit_tilt),
    )


def _passage_claim(flows: BalancedFlows) -> Claim:
    """The exponent of the gradient's gap at the head of largest tilt, against the heuristic β(H)."""
    middle = float(np.mean(LONG))
    return Claim(
        id="trajectory-stability-passage",
        statement=(
            "Where H² is largest the gap of the exact gradients falls like L^(-β(H)), up to logarithms: its exponent "
            f"near ln L = {middle:g}. Two powers of ln L, as in the bound of Prop. 3.4, would move it by the tolerance."
        ),
        source="derived here",
        box="tilts-on-the-way",
        measured=flows.peak_exponent,
        expected=float(rate_exponent(np.sqrt(flows.tilts.max()))),
        tolerance=2 / middle,
        alternative=Alternative("the gap at (A*, b*), where the infinite flow ends", flows.limit_exponent),
    )


def _risk_claim(flows: BalancedFlows) -> Claim:
    """What is left above lim R_∞ = 0 at the longest prompts over that at the shortest, in units of L^{-1/2}."""
    unit = 10 ** ((flows.decades[-1] - flows.decades[0]) / 2)
    ends, apart = flows.risks[:, -1], flows.distances[:, -1]
    return Claim(
        id="trajectory-stability-balanced-risk",
        statement=(
            "For normal tasks and a balanced start the risk at the end of training on prompts of L tokens falls to the "
            f"infinite one's, from L = 10^{flows.decades[0]} to 10^{flows.decades[-1]} at least like L^(-1/2): the "
            "ratio to it."
        ),
        source="[BB26, Thm 4.3]",
        box="bb26-thm-4-3",
        measured=float(unit * ends[-1] / ends[0]),
        expected=1.0,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("the risk is as far off as the parameters are", float(unit * apart[-1] / apart[0])),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Tilt, distance and risk over one time axis."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9.0, 4.0), sharex=True)
    decades = sorted(table["log10_length"].unique().tolist())
    for decade, colour in zip(decades, sequence(len(decades)), strict=True):
        mine = table[table["log10_length"] == decade]
        middle.plot(mine["time"], mine["distance"], color=colour, linewidth=2)
        right.plot(mine["time"], mine["risk"], color=colour, linewidth=2)
        label(right, mine["time"].max(), mine["risk"].iloc[-1], f"$L=10^{{{decade}}}$", colour)
    left.plot(mine["time"], mine["tilt"], color=ink(), linewidth=2)
    left.axhline(CRITICAL, color="C1", linewidth=1.3, linestyle="--")
    left.annotate(r"$\frac{1}{2}$", (mine["time"].min(), CRITICAL), xytext=(2, 5), textcoords="offset points")
    right.plot(mine["time"], mine["infinite_risk"], color=ink(), linestyle="--", linewidth=1.6)
    left.set(xscale="log", xlabel="time", title="squared tilt $H^2$, $L=\\infty$", ylim=(0, None))
    middle.set(yscale="log", xlabel="time", title=r"distance $\|\theta_L-\theta_\infty\|$")
    middle.set_ylim(bottom=max(1e-7, table["distance"].min()))
    lowest = table["risk"].min() / 10
    right.set(yscale="log", xlabel="time", title="risk", ylim=(lowest, None))
    gone = mine[mine["infinite_risk"] < 2 * lowest]
    if len(gone):
        label(right, gone["time"].iloc[0], 2 * lowest, r"$\infty$", ink(), xytext=(8, 0))
    headline(figure, "Trajectories stay close although the tilt passes one half")
    return figure
