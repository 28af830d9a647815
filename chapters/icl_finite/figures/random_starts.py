r"""Stopped training leaves an error that no prompt length removes; training to the end has a risk of order $1/L$.

The exact risk along the flow on prompts of $L$ tokens, from random starts and with a covariance that is not isotropic.
If training is stopped (one line per start), the risk tends to that of the infinite flow at this time. Large points are
the end of training, for all starts; all approach the dashed line.

Alt: Log-log chart of risk against length. Three bundles of curves first fall and then level off, at lower levels for
later times. Points of the end of training fall along a dashed line of slope minus one without levelling off; an orange
line runs parallel below.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.icl_finite.random_flows import STOPPED, RandomFlows
from chapters.style import coloured_rows
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

# Bound on the relative size of the next term after C_Σ/(2L), for ln L ≥ 13.
NEXT_TERM = 1e-3
# Bound on the relative spread of final risks: they are minima, so a distance of 10⁻⁴ from the end changes them by less.
SPREAD = 1e-5


def numbers(flows: RandomFlows) -> Numbers:
    """Return stopped and final risks, and the claims that final risks are C_Σ/(2L) and do not depend on the start."""
    rows = []
    for column, ell in enumerate(flows.log_lengths):
        for start, (stopped, ended) in enumerate(zip(flows.stopped, flows.ended, strict=True), start=1):
            rows += [("stopped", start, time, ell, risk) for time, risk in zip(STOPPED, stopped[column], strict=True)]
            rows.append(("ended", start, np.inf, ell, ended[column]))
        lines = {"law": flows.valley_limit, "linear attention": flows.linear, "infinite limit": flows.at_limit}
        rows += [(kind, 0, np.inf, ell, curve[column]) for kind, curve in lines.items()]
    columns = {
        "kind": Column(
            "`stopped`, `ended`: the flow stopped or at its end; `law`: $C/(2L)$; `linear attention`: the best "
            "one; `infinite limit`: the head $(A*, b*)$ where the infinite flow ends",
            "name",
        ),
        "start": Column("Number of the start $Θ$; 0 for lines without a start"),
        "time": Column("Time at which the flow is stopped"),
        "log_length": Column("$ln L$"),
        "risk": Column("Exact risk on prompts of $L$ tokens"),
    }
    claim = Claims("icl-finite", source="[BB26, Theorem 5.1]")
    accuracy = flows.valley_limit[-1]
    claim.at_most(
        "theorem",
        f"For a $Σ$ that is not isotropic and {len(flows.ended)} random $Θ$, the flow on prompts of $L = "
        f"e^{{{flows.log_lengths[-1]:g}}}$ tokens ends at most $ε$ above Bayes' risk, where $L(ε) = C/(2ε)$ "
        "and $C/(2L)$ is the least risk in the valley (measured: the largest relative excess over this $ε$).",
        np.max(flows.ended[:, -1]) / accuracy - 1,
        0,
        within=NEXT_TERM,
        because="bound on the next term of the expansion for $ln L ≥ 13$",
        rejects=("it ends at the head of the infinite flow", flows.at_limit[-1] / accuracy - 1),
        box="bb26-thm-5-1",
    )
    ended, early = (np.ptp(risks, axis=0) / np.min(risks, axis=0) for risks in (flows.ended, flows.stopped[..., 0]))
    claim.at_most(
        "starts",
        "The risk at the end of training does not depend on the start (measured: the largest relative spread "
        f"over {len(flows.ended)} random $Θ$, at {len(flows.log_lengths)} lengths).",
        ended.max(),
        0,
        within=SPREAD,
        because="the ends are minima, so a relative distance of 10⁻⁴ from the end changes the risk by much less",
        rejects=(f"training is stopped at time {STOPPED[0]:g}", early.max()),
        source="measured here",
        box="constant-of-the-limit",
    )
    return Numbers(Table(pd.DataFrame(rows, columns=list(columns)), columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the stopped and the final risks, and the lines with which they are compared."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.5))
    stopped, ended = table[table["kind"] == "stopped"], table[table["kind"] == "ended"]
    times = sorted(stopped["time"].unique())
    for time, rows, colour in coloured_rows(stopped, "time"):
        for _, curve in rows.groupby("start"):
            axes.plot(np.exp(curve["log_length"]), curve["risk"], ".-", color=colour, linewidth=1.3, markersize=7)
        last = rows["log_length"].max()
        middle = rows.loc[rows["log_length"] == last, "risk"].median()
        words = f"stopped at $t={time:g}$" + (f",\n{rows['start'].nunique()} starts" if time == times[-1] else "")
        up = {times[0]: 4, times[1]: -5}.get(time, 0)  # the labels of the first two curves are close together
        label(axes, np.exp(last), middle, words, colour, xytext=(6, up))
    axes.plot(np.exp(ended["log_length"]), ended["risk"], "o", color=ink(), markersize=8)
    for kind, look, name in (
        ("law", {"color": ink(), "linestyle": "--"}, "to the end:\n" r"$C_\Sigma/(2L)$"),
        ("linear attention", {"color": "C1"}, "best linear"),
    ):
        line = table[table["kind"] == kind]
        axes.plot(np.exp(line["log_length"]), line["risk"], linewidth=1.5, **look)
        label(axes, np.exp(line["log_length"].iloc[-1]), line["risk"].iloc[-1], name, look["color"], xytext=(8, 0))
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="risk")
    return figure
