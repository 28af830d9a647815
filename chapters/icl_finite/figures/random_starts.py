r"""Theorem 5.1 at finite length: from random starts, with a covariance that is not isotropic.

Exact risk along the flow on prompts of $L$ tokens, against $L$: when training is stopped at a fixed time (dots, a line
a start, the colour is the time), and at its end (large points, all starts). Dashed: the law $C_\Sigma/(2L)$. Orange:
the best linear attention. A training that is stopped has an error that no length removes: it tends to the infinite
flow's at that time. A training to the end comes as near to Bayes' risk, 0, as the prompt is long, from wherever it
started.

Alt: Log-log chart of risk against length. Three bundles of curves first fall and then level off, the later the time
the lower. Points of the end of training fall along a dashed line of slope minus one without levelling off; an orange
line runs parallel below.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.icl_finite.random_flows import STOPPED, RandomFlows
from chapters.icl_finite.style import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label, sequence

# From ln L = 13 on, the next term of the law's expansion is below this.
KNOWN = 1e-3
# The ends are minima: a flow still on its way by 1e-4 has a risk nearer than this.
AGREE = 1e-5


def numbers(flows: RandomFlows) -> Numbers:
    """Risks when stopped and at the end; the end is the law's, and no start's own."""
    return Numbers(_table(flows), (_theorem_claim(flows), _starts_claim(flows)))


def _table(flows: RandomFlows) -> Table:
    """A row a start, a length and a time; and the two lines."""
    rows = []
    for column, ell in enumerate(flows.log_lengths):
        for start, (stopped, ended) in enumerate(zip(flows.stopped, flows.ended, strict=True), start=1):
            rows += [("stopped", start, time, ell, risk) for time, risk in zip(STOPPED, stopped[column], strict=True)]
            rows.append(("ended", start, np.inf, ell, ended[column]))
        for kind, curve in (("law", flows.law), ("linear attention", flows.linear), ("infinite limit", flows.at_limit)):
            rows.append((kind, 0, np.inf, ell, curve[column]))
    columns = {
        "kind": Column(
            "The flow stopped, or at its end; the law C/(2L); best linear attention; the head (A*, b*) where the "
            "infinite prompt's flow ends",
            "name",
        ),
        "start": Column("Which Θ, from 1 on; 0 for what has no start"),
        "time": Column("When the flow is stopped"),
        "log_length": Column("ln L"),
        "risk": Column("Exact risk on prompts of L tokens"),
    }
    return Table(pd.DataFrame(rows, columns=list(columns)), columns)


def _theorem_claim(flows: RandomFlows) -> Claim:
    """The end's risk at the longest prompts, against the law."""
    law = flows.law[-1]
    return Claim(
        id="icl-finite-theorem",
        statement=(
            f"For a Σ that is not isotropic and {len(flows.ended)} random Θ, the flow on prompts of "
            f"L = e^{flows.log_lengths[-1]:g} tokens ends at most ε above Bayes' risk, where L(ε) = C/(2ε) with the C "
            "of the valley: the largest relative excess over that ε."
        ),
        source="[BB26, Theorem 5.1]",
        box="bb26-thm-5-1",
        measured=float(np.max(flows.ended[:, -1]) / law - 1),
        expected=0.0,
        tolerance=KNOWN,
        relation="≤",
        alternative=Alternative("it ends at the head where the infinite flow does", flows.at_limit[-1] / law - 1),
    )


def _starts_claim(flows: RandomFlows) -> Claim:
    """Over starts, the spread of the risk at the end and of that at the first stop."""

    def spread(risks) -> float:
        return float(np.max(np.ptp(risks, axis=0) / np.min(risks, axis=0)))

    return Claim(
        id="icl-finite-starts",
        statement=(
            "The risk at the end does not depend on where training started: the largest relative spread over "
            f"{len(flows.ended)} random Θ, at {len(flows.log_lengths)} lengths."
        ),
        source="measured here",
        box="constant-of-the-limit",
        measured=spread(flows.ended),
        expected=0.0,
        tolerance=AGREE,
        relation="≤",
        alternative=Alternative(f"training is stopped at time {STOPPED[0]:g}", spread(flows.stopped[..., 0])),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Bundles that level off, points that do not, on a line of slope -1."""
    figure, axes = plt.subplots(figsize=SIZE)
    stopped, ended = table[table["kind"] == "stopped"], table[table["kind"] == "ended"]
    times = sorted(stopped["time"].unique())
    # the names of the first two stand close together
    nudges = [(6, 4), (6, -5), *[(6, 0)] * len(times)]
    for time, colour, nudge in zip(times, sequence(len(times)), nudges, strict=False):
        mine = stopped[stopped["time"] == time]
        for _, curve in mine.groupby("start"):
            axes.plot(np.exp(curve["log_length"]), curve["risk"], ".-", color=colour, linewidth=1.3, markersize=7)
        ends = mine[mine["log_length"] == mine["log_length"].max()]
        label(
            axes,
            np.exp(ends["log_length"].max()),
            ends["risk"].median(),
            f"stopped at $t={time:g}$",
            colour,
            xytext=nudge,
        )
    axes.plot(np.exp(ended["log_length"]), ended["risk"], "o", color=ink(), markersize=8)
    for kind, mark, name in (
        ("law", {"color": ink(), "linestyle": "--"}, "trained to the end:\n" r"$C_\Sigma/(2L)$"),
        ("linear attention", {"color": "C1"}, "best linear"),
    ):
        line = table[table["kind"] == kind]
        axes.plot(np.exp(line["log_length"]), line["risk"], linewidth=1.5, **mark)
        label(axes, np.exp(line["log_length"].iloc[-1]), line["risk"].iloc[-1], name, mark["color"], xytext=(8, 0))
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="risk")
    headline(figure, "Stopped training leaves an error that no length removes")
    return figure
