r"""How far the trajectories of finite and infinite prompts are apart: at fixed times, and for ever.

Distance of $(A,b)$ between the exact flows of $L$ and of infinitely many tokens, from the same start. Left: against
$L$, at fixed times; dashed, slope $-1$. The later the time, the longer the prompt at which the gap begins to fall
like $1/L$. Right: against time, at fixed lengths; dashed, slope 1; at the curves, their $L$. Once the
infinite flow has arrived the gap grows in proportion to time, no faster, and stops where the finite flow ends.

Alt: Two log-log charts. Left, gap against length, a curve a time: the earliest is the lowest and soon parallel to a
dashed line of slope minus one; later ones bend down later. Right, gap against time, a curve a length: a steep rise,
then a long stretch parallel to a dashed line of slope one, and for shorter prompts a plateau.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.icl_finite.exact_flows import Flow, Flows, prompt_name
from chapters.icl_finite.parameters import LONGEST_GAP, WAITED
from chapters.icl_finite.style import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label, sequence

# The infinite flow has arrived; and until when the growth of the gap is measured.
ARRIVED, MEASURED = 100.0, 300.0
# An exponent is that of an asymptotic law: at the longest prompts it is off by less.
KNOWN = 0.02


def numbers(flows: Flows, gap_times: list[float]) -> Numbers:
    """Gaps by length, falling like 1/L at the earliest time, and by time: in proportion to it, then no more."""
    compared = [flow for flow in flows.finite if flow.log_length <= LONGEST_GAP]
    table = _table(flows, compared, gap_times)
    stopped = [flow for flow in compared if WAITED * np.exp(flow.log_length) <= flow.times[-1]]
    claims = (_gap_claim(table.frame), _growth_claim(flows, compared[-1]), _stop_claim(flows, stopped))
    return Numbers(table, claims)


def _table(flows: Flows, compared: list[Flow], gap_times: list[float]) -> Table:
    """Distance of finite and infinite flow at fixed times, and along time."""
    rows = []
    for flow in compared:
        gaps = _gap(flow, flows.infinite)
        rows += [("at", time, flow.log_length, np.interp(time, flow.times, gaps)) for time in sorted(gap_times)]
        rows += [("along", time, flow.log_length, gap) for time, gap in zip(flow.times, gaps, strict=True)]
    columns = {
        "shown": Column("At the times compared, or along the flow", "name"),
        "time": Column("Time of both flows"),
        "log_length": Column("ln L"),
        "gap": Column("Distance of (A, b) between the flows of L and of infinitely many tokens", absolute=1e-9),
    }
    return Table(pd.DataFrame(rows, columns=list(columns)), columns)


def _gap(one: Flow, other: Flow) -> Float[np.ndarray, " times"]:
    return np.hypot(one.size - other.size, one.gain - other.gain)


def _gap_claim(frame: pd.DataFrame) -> Claim:
    """Local slope at the longest prompts and the earliest time."""
    at = frame[frame["shown"] == "at"]
    early = at[at["time"] == at["time"].min()].tail(2)
    slope = float(np.diff(np.log(early["gap"]))[0] / np.diff(early["log_length"])[0])
    return Claim(
        id="icl-finite-gap",
        statement=(
            f"At a fixed time the trajectories of finite and infinite prompts differ by a multiple of 1/L: the slope "
            f"of the gap at time {at['time'].min():g}, for the longest prompts."
        ),
        source="heuristic",
        box="gap-of-the-trajectories",
        measured=slope,
        expected=-1.0,
        tolerance=KNOWN,
        alternative=Alternative("like the fluctuations of one prompt's output, 1/√L", -0.5),
    )


def _growth_claim(flows: Flows, longest: Flow) -> Claim:
    """Growth of the gap after the infinite flow has arrived, against what t e^{βt} would do."""
    early, late = (int(np.searchsorted(longest.times, time)) for time in (ARRIVED, MEASURED))
    gaps, (start, end) = _gap(longest, flows.infinite), longest.times[[early, late]]
    # R_∞ = ½ (b‖A‖ - √d)² in one direction of the plane (‖A‖, b): on its valley the curvature is ‖A‖² + b²
    curvature = float(flows.infinite.size[-1] ** 2 + flows.infinite.gain[-1] ** 2)
    return Claim(
        id="icl-finite-growth",
        statement=(
            f"After the infinite flow has arrived the gap grows in proportion to time: its local exponent between "
            f"times {ARRIVED:g} and {MEASURED:g}, at L = {longest.prompt}."
        ),
        source="heuristic",
        box="growth-of-the-gap",
        measured=float(np.log(gaps[late] / gaps[early]) / np.log(end / start)),
        expected=1.0,
        tolerance=KNOWN,
        alternative=Alternative(
            "like t e^{βt}, β the curvature of the infinite risk where its flow ends",
            1 + curvature * (end - start) / float(np.log(end / start)),
        ),
    )


def _stop_claim(flows: Flows, stopped: list[Flow]) -> Claim:
    """The last gap, against that some time before it: the flow has ended, at the best head of its length."""
    last, before = stopped[-1].times[-1], stopped[-1].times[-1] / 2
    index = int(np.searchsorted(flows.infinite.times, before))
    gaps = np.asarray([_gap(flow, flows.infinite)[[index, -1]] for flow in stopped])
    names = ", ".join(prompt_name(flow.log_length) for flow in stopped)
    return Claim(
        id="icl-finite-stop",
        statement=(
            f"Then it stops: the largest relative growth of the gap between time {flows.infinite.times[index]:.0f} and "
            f"{last:g}, for L = {names}."
        ),
        source="measured here",
        box="growth-of-the-gap",
        measured=float(np.max(gaps[:, 1] / gaps[:, 0] - 1)),
        expected=0.0,
        tolerance=1e-3,
        relation="≤",
        alternative=Alternative("it goes on in proportion to time", float(last / flows.infinite.times[index] - 1)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A curve a time, beside slope -1; a curve a length, beside slope 1."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE)
    at, along = table[table["shown"] == "at"], table[table["shown"] == "along"]
    times = sorted(at["time"].unique())
    for time, colour in zip(times, sequence(len(times)), strict=True):
        curve = at[at["time"] == time]
        length = np.exp(curve["log_length"])
        left.plot(length, curve["gap"], "o-", color=colour, markersize=5, linewidth=2)
        label(left, length.iloc[-1], curve["gap"].iloc[-1], f"$t={time:g}$", colour, xytext=(7, 0))
    first = at[at["time"] == times[0]].iloc[-1]
    length = np.exp(at["log_length"].max() - np.asarray([8.0, 0.0]))
    left.plot(length, 0.3 * first["gap"] * length[-1] / length, "--", color=ink(), linewidth=1.3, label="slope $-1$")
    left.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel=r"$\|(A,b)_L-(A,b)_\infty\|$")
    left.legend(loc="lower left")
    lengths = sorted(along["log_length"].unique())
    for ell, colour in zip(lengths, sequence(len(lengths)), strict=True):
        curve = along[along["log_length"] == ell]
        right.plot(curve["time"], curve["gap"], color=colour, linewidth=2)
        begins, place = curve.iloc[0], {"xytext": (-4, 0), "ha": "right", "fontsize": 10}
        label(right, begins["time"], begins["gap"], _rounded(float(np.exp(ell))), colour, **place)
    longest = along[along["log_length"] == lengths[-1]]
    end = longest["time"].max() * np.asarray([1e-3, 1.0])
    right.plot(end, 0.2 * longest["gap"].iloc[-1] * end / end[-1], "--", color=ink(), linewidth=1.3, label="slope 1")
    right.set(xscale="log", yscale="log", xlabel="time", xlim=(along["time"].min() / 25, None))
    right.legend(loc="lower right")
    headline(figure, "On long prompts the two flows part in proportion to time")
    return figure


def _rounded(length: float) -> str:
    """One digit times a power of ten, from ten thousand on."""
    if length < 10**4:
        return f"{length:.0f}"
    digit, power = f"{length:.0e}".split("e")
    return rf"${digit}\cdot10^{int(power)}$"
