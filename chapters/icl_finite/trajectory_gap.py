r"""How far the trajectories of finite and infinite prompts are apart, at fixed times.

Distance of $(A,b)$ between the exact flows of $L$ and of infinitely many tokens, from the same start, against $L$.
Dashed: slope $-1$. The later the time, the longer the prompt at which the gap begins to fall like $1/L$: at late
times the head is large, and the average over queries lives on rare ones.

Alt: Log-log chart of gap against length, one curve a time. The earliest is the lowest and soon parallel to a
dashed line of slope minus one; later ones start flat, and bend down later and later.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.icl_finite.exact_flows import Flow, Flows
from chapters.icl_finite.marks import SIZE
from chapters.icl_finite.parameters import LONGEST_GAP
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink, sequence


def numbers(flows: Flows, gap_times: list[float]) -> Numbers:
    """Gaps by time and length; at the earliest time they fall like 1/L."""
    table = _table(flows, gap_times)
    return Numbers(table, (_gap_claim(table.frame),))


def _table(flows: Flows, gap_times: list[float]) -> Table:
    """Distance of finite and infinite flow at fixed times."""
    rows = [
        (time, flow.log_length, np.interp(time, flow.times, _gap(flow, flows.infinite)))
        for time in sorted(gap_times)
        for flow in flows.finite
        if flow.log_length <= LONGEST_GAP
    ]
    columns = {
        "time": Column("Time of both flows"),
        "log_length": Column("ln L"),
        "gap": Column("Distance of (A, b) between the flows of L and of infinitely many tokens", absolute=1e-10),
    }
    return Table(pd.DataFrame(rows, columns=list(columns)), columns)


def _gap(one: Flow, other: Flow) -> Float[np.ndarray, " times"]:
    return np.hypot(one.size - other.size, one.gain - other.gain)


def _gap_claim(frame: pd.DataFrame) -> Claim:
    """Local slope at the longest prompts and the earliest time."""
    early = frame[frame["time"] == frame["time"].min()].tail(2)
    slope = float(np.diff(np.log(early["gap"]))[0] / np.diff(early["log_length"])[0])
    return Claim(
        id="icl-finite-gap",
        statement=(
            f"At a fixed time the trajectories of finite and infinite prompts differ by a multiple of 1/L: the slope "
            f"of the gap at time {frame['time'].min():g}, for the longest prompts."
        ),
        source="heuristic",
        box="gap-of-the-trajectories",
        measured=slope,
        expected=-1.0,
        tolerance=0.02,
        alternative=Alternative("like the fluctuations of one prompt's output, 1/√L", -0.5),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A curve a time, beside slope -1."""
    figure, axes = plt.subplots(figsize=SIZE)
    times = sorted(table["time"].unique())
    for time, colour in zip(times, sequence(len(times)), strict=True):
        curve = table[table["time"] == time]
        length = np.exp(curve["log_length"])
        axes.plot(length, curve["gap"], "o-", color=colour, markersize=5, linewidth=2, label=f"$t={time:g}$")
    first = table[table["time"] == times[0]].iloc[-1]
    length = np.exp(table["log_length"].max() - np.asarray([8.0, 0.0]))
    axes.plot(length, 0.3 * first["gap"] * length[-1] / length, "--", color=ink(), linewidth=1.3, label="slope $-1$")
    axes.set(xscale="log", yscale="log", xlabel="$L$", ylabel=r"$\|(A,b)_L-(A,b)_\infty\|$")
    axes.legend(loc="lower left")
    return figure
