r"""The distance of the flows opens by decades where the squared tilt is above one half; the risk forgets it.

Exact flows from a balanced start, for normal tasks and Gaussian covariates of three different variances, against time.
Shaded: the passage, the time in which the squared tilt $H^2$ of the infinite flow is above $\frac12$. Left: $H^2$.
Middle: the distance of the flow on prompts of $L$ tokens from the infinite one. In the passage it grows by one decade
on the shortest prompts and by more than three on the longest; afterwards it grows little.
Right: the risk of both. At the end it is small in spite of the distance.

Alt: Three panels over a logarithmic time axis, the same stretch of time shaded in each. A single hump crosses a
horizontal line and comes back below it at the ends of the stretch. Curves of distance, lower for longer prompts, rise
by one to more than three decades in it and then stay level or rise slowly. Curves of risk fall together and then level
off, each at a height of its own, while a dashed curve falls on.
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
    """Return tilt, distance and risk by time; the claims are on the passage and on the end."""
    claims = (_tilt_claim(flows), _rate_claim(flows), _passage_claim(flows), _opening_claim(flows), _risk_claim(flows))
    return Numbers(_table(flows), claims)


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


def _heuristic_rate(squared_tilt: float) -> float:
    """Return the exponent β(H) of `sharp_rates`."""
    return float(rate_exponent(np.sqrt(squared_tilt)))


def _rate_claim(flows: BalancedFlows) -> Claim:
    """State the exponent that the heuristic gives where the tilt is largest, far from the one of the end."""
    return Claim(
        id="trajectory-stability-passage-rate",
        statement=(
            "Where H² is largest the heuristic exponent β(H) of the gradient's gap differs from 1, the exponent at "
            f"the end, by more than two powers of ln L would move a slope near ln L = {np.mean(LONG):g}: β(H) there."
        ),
        source="heuristic",
        box="tilts-on-the-way",
        measured=_heuristic_rate(float(flows.tilts.max())),
        expected=1 - 2 / float(np.mean(LONG)),
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("β(H) at (A*, b*), where the infinite flow ends", _heuristic_rate(flows.limit_tilt)),
    )


def _passage_claim(flows: BalancedFlows) -> Claim:
    """Compare the exponent of the gradient's gap at the head of largest tilt with the heuristic β(H)."""
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
        expected=_heuristic_rate(float(flows.tilts.max())),
        tolerance=2 / middle,
        alternative=Alternative("the gap at (A*, b*), where the infinite flow ends", flows.limit_exponent),
    )


def _opening_claim(flows: BalancedFlows) -> Claim:
    """Compare the growth of the distance during the passage with the growth after it."""
    passage = np.flatnonzero(flows.tilts > CRITICAL)
    first, last = passage[0], passage[-1]
    return Claim(
        id="trajectory-stability-opening",
        statement=(
            f"While H² is above ½ the distance of the flow on prompts of L = 10^{flows.decades[-1]} tokens from the "
            "infinite one grows by decades, that is by two or more: the factor. The times recorded lie inside the "
            "passage, so it is not overstated."
        ),
        source="measured here",
        box="tilts-on-the-way",
        measured=float(flows.distances[-1, last] / flows.distances[-1, first]),
        expected=100.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative(
            "it grows as it does after the passage", float(np.max(flows.distances[:, -1] / flows.distances[:, last]))
        ),
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
    """Draw tilt, distance and risk over one time axis, the passage shaded in each panel."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9.0, 4.0), sharex=True)
    decades = sorted(table["log10_length"].unique().tolist())
    for decade, colour in zip(decades, sequence(len(decades)), strict=True):
        mine = table[table["log10_length"] == decade]
        middle.plot(mine["time"], mine["distance"], color=colour, linewidth=2)
        right.plot(mine["time"], mine["risk"], color=colour, linewidth=2)
        label(right, mine["time"].max(), mine["risk"].iloc[-1], f"$L=10^{{{decade}}}$", colour)
    passage = table["time"][table["tilt"] > CRITICAL]
    for panel in (left, middle, right):
        panel.axvspan(passage.min(), passage.max(), color=ink(), alpha=0.08, linewidth=0)
    left.plot(mine["time"], mine["tilt"], color=ink(), linewidth=2)
    left.axhline(CRITICAL, color="C1", linewidth=1.3, linestyle="--")
    label(left, mine["time"].min(), CRITICAL, "½", ink(), xytext=(2, 8))
    right.plot(mine["time"], mine["infinite_risk"], color=ink(), linestyle="--", linewidth=1.6)
    left.set(xscale="log", xlabel="time", title="squared tilt $H^2$, $L=\\infty$", ylim=(0, None))
    middle.set(yscale="log", xlabel="time", title=r"distance $\|\theta_L-\theta_\infty\|$")
    middle.set_ylim(bottom=max(1e-7, table["distance"].min()))
    lowest = table["risk"].min() / 10
    right.set(yscale="log", xlabel="time", title="risk", ylim=(lowest, None))
    gone = mine[mine["infinite_risk"] < 2 * lowest]
    if len(gone):
        label(right, gone["time"].iloc[0], 2 * lowest, r"$\infty$", ink(), xytext=(8, 0))
    headline(figure, "The distance opens by decades where the tilt is above one half; the risk forgets it")
    return figure
