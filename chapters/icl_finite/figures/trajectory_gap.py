r"""After the infinite flow has arrived, the flow on long prompts separates from it in proportion to time.

The vertical axis is the distance of $(A,b)$ between the exact flows of $L$ and of infinitely many tokens, from the same
start. Left: against time. On shorter prompts the gap grows more slowly than the dashed line, and it stops where the
finite flow ends. Right: against $L$, at fixed times. At later times the curves are flatter at these lengths.

Alt: Two log-log charts. Left, gap against time, with one curve per length: a steep rise, then a part that for long
prompts is parallel to a dashed line of slope one, in a shaded range, and for shorter prompts bends to a plateau. Right,
gap against length, with one curve per time: the earliest is the lowest and soon parallel to a dashed line of slope
minus one; later ones bend down at longer prompts.
"""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure
from scipy.stats import chi2

from chapters.icl_finite.exact_flows import Flow, Flows, prompt_name
from chapters.icl_finite.parameters import LONGEST_GAP, WAITED
from chapters.style import coloured_rows
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

# Times between which the growth of the gap is measured; at the first the infinite flow has arrived.
ARRIVED, MEASURED = 100.0, 300.0
# Bound on the distance of a measured exponent from its limit, at the longest prompts.
EXPONENT_TOLERANCE = 0.02


def numbers(flows: Flows, gap_times: list[float]) -> Numbers:
    """Return the gaps by length and time, and the claims that they fall like 1/L, grow like time and then stop."""
    compared = [flow for flow in flows.finite if flow.log_length <= LONGEST_GAP]
    rows = []
    for flow in compared:
        gaps = _gap(flow, flows.infinite)
        rows += [("at", time, flow.log_length, np.interp(time, flow.times, gaps)) for time in sorted(gap_times)]
        rows += [("along", time, flow.log_length, gap) for time, gap in zip(flow.times, gaps, strict=True)]
    columns = {
        "shown": Column("`at`: at the times of the left panel; `along`: along the flow", "name"),
        "time": Column("Time of both flows"),
        "log_length": Column("$ln L$"),
        "gap": Column("Distance of $(A, b)$ between the flows of $L$ and of infinitely many tokens", absolute=1e-9),
    }
    frame = pd.DataFrame(rows, columns=list(columns))
    return Numbers(Table(frame, columns), _claims(flows, compared, frame[frame["shown"] == "at"]))


def _claims(flows: Flows, compared: list[Flow], at: pd.DataFrame) -> Claims:
    claim = Claims("icl-finite", source="heuristic", box="growth-of-the-gap")
    first, infinite = at["time"].min(), flows.infinite
    early = at[at["time"] == first].tail(2)
    fraction = beyond(infinite.size[infinite.times <= first].max(), flows.dimension, early["log_length"].iloc[0])
    claim.equal(
        "gap",
        f"At time {first:g} the trajectories of finite and infinite prompts differ by a multiple of "
        "$1/L$ (measured: the slope of the gap for the longest prompts).",
        np.diff(np.log(early["gap"]))[0] / np.diff(early["log_length"])[0],
        -1,
        within=EXPONENT_TOLERANCE,
        because="corrections to the asymptotic slope at the longest prompts",
        rejects=("the gap falls like the fluctuations of the output of one prompt, $1/√L$", -0.5),
        requires=(
            fraction <= EXPONENT_TOLERANCE,
            f"by the time {first:g} the head is so large that queries with $τ² > ½ ln L$, whose outputs "
            f"do not have an error of order $1/L$, contribute the fraction {fraction:.2g} of the gradient; at most "
            f"{EXPONENT_TOLERANCE:g} is allowed",
        ),
        box="gap-of-the-trajectories",
    )
    longest = compared[-1]
    index = np.searchsorted(longest.times, (ARRIVED, MEASURED))
    gaps, times = _gap(longest, infinite)[index], longest.times[index]
    # R_∞ = ½ (b‖A‖ - √d)² in one direction of the plane (‖A‖, b): on its valley the curvature is ‖A‖² + b²
    curvature = infinite.size[-1] ** 2 + infinite.gain[-1] ** 2
    claim.equal(
        "growth",
        f"After the infinite flow has arrived, the gap of the longest prompts, $L = {int(longest.prompt):,}$, "
        f"grows in proportion to time (measured: its local exponent between times {ARRIVED:g} and {MEASURED:g}).",
        np.log(gaps[1] / gaps[0]) / np.log(times[1] / times[0]),
        1,
        within=EXPONENT_TOLERANCE,
        because="corrections from the arrival time, which is short compared with these times",
        rejects=(
            "the gap grows like $t e^{βt}$, with $β$ the curvature of the infinite risk where its flow ends",
            1 + curvature * (times[1] - times[0]) / np.log(times[1] / times[0]),
        ),
    )
    # the second half of the time of the flows that have ended
    stopped = [flow for flow in compared if WAITED * np.exp(flow.log_length) <= flow.times[-1]]
    last = stopped[-1].times[-1]
    half = np.searchsorted(infinite.times, last / 2)
    gaps = np.asarray([_gap(flow, infinite)[[half, -1]] for flow in stopped])
    names = ", ".join(prompt_name(flow.log_length) for flow in stopped)
    claim.at_most(
        "stop",
        "The gap stops growing where the finite flow ends (measured: the largest relative growth between "
        f"times {infinite.times[half]:,.0f} and {last:,g}, for $L = {names}$).",
        np.max(gaps[:, 1] / gaps[:, 0] - 1),
        0,
        within=1e-3,
        because="what may remain of the exponential approach of the finite flow to its end",
        rejects=("it continues to grow in proportion to time", last / infinite.times[half] - 1),
        source="measured here",
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one curve per length with a line of slope 1, and one curve per time with a line of slope -1."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.6), sharey=True, width_ratios=(1.2, 1))
    at, along = table[table["shown"] == "at"], table[table["shown"] == "along"]
    for ell, curve, colour in coloured_rows(along, "log_length"):
        left.plot(curve["time"], curve["gap"], color=colour, linewidth=2)
        start, place = curve.iloc[0], {"xytext": (-4, 0), "ha": "right", "fontsize": 10}
        name = ("$L=$" if ell == along["log_length"].min() else "") + _rounded(np.exp(ell))
        label(left, start["time"], start["gap"], name, colour, **place)
    # below the last curve, which is that of the longest prompts
    end = np.asarray([ARRIVED, curve["time"].max()])
    line = 0.2 * curve["gap"].iloc[-1] * end / end[-1]
    left.plot(end, line, "--", color=ink(), linewidth=1.3)
    label(left, end[0], line[0], "in proportion\nto time", ink(), xytext=(0, -4), va="top", ha="center")
    left.axvspan(ARRIVED, end[-1], color=ink(), alpha=0.07, linewidth=0)
    left.text(ARRIVED, 0.03, "the infinite flow\nhas arrived → ", transform=left.get_xaxis_transform(), ha="right")
    left.set(xscale="log", yscale="log", xlabel="time $t$", xlim=(along["time"].min() / 30, end[-1]))
    left.set_ylabel(r"distance of the flows, $\|(A,b)_L-(A,b)_\infty\|$")
    # other colours than those of the lengths on the left
    reds = mpl.colormaps["autumn"](np.linspace(0.55, 0.0, at["time"].nunique()))
    for (time, curve), colour in zip(at.groupby("time"), reds, strict=True):
        length = np.exp(curve["log_length"])
        right.plot(length, curve["gap"], "o-", color=colour, markersize=5, linewidth=2)
        label(right, length.iloc[-1], curve["gap"].iloc[-1], f"$t={time:g}$", colour, xytext=(7, 0))
    length = np.exp(at["log_length"].max() - np.asarray([8.0, 0.0]))
    line = 0.3 * at[at["time"] == at["time"].min()]["gap"].iloc[-1] * length[-1] / length
    right.plot(length, line, "--", color=ink(), linewidth=1.3)
    label(right, length[0], line[0], "slope $-1$", ink(), xytext=(-4, -6), ha="right")
    right.set(xscale="log", xlabel="prompt length $L$")
    return figure


def _gap(finite: Flow, infinite: Flow) -> Float[np.ndarray, " times"]:
    """Return the distance of (A, b) between two flows."""
    return np.hypot(finite.size - infinite.size, finite.gain - infinite.gain)


def beyond(size: float, dimension: int, log_length: float) -> float:
    """Return the fraction of E τ² e^{τ²} over queries z ~ N(0, I) that comes from τ² > ½ ln L, τ = size · ‖z‖/√d.

    The variance of an output is (1 + τ²) e^{τ²}/L only for τ² < ½ ln L; beyond, a few tokens carry the weight and it
    falls more slowly. So the gradients of finite and infinite prompts differ by a multiple of 1/L up to this fraction.
    With κ = 2 size²/d, E τ² e^{τ²} is finite for κ < 1, and the fraction is P(χ²_{d+2} > (1/κ - 1) ln L).
    """
    spread = 2 * size**2 / dimension
    return float(chi2.sf((1 / spread - 1) * log_length, dimension + 2)) if spread < 1 else 1.0


def _rounded(length: float) -> str:
    """Return a length with one digit times a power of ten if it is at least ten thousand."""
    if length < 10**4:
        return f"{length:.0f}"
    digit, power = f"{length:.0e}".split("e")
    return rf"${digit}\cdot10^{int(power)}$"
