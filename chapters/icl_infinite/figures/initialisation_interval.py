r"""Starts of every scale tried converge to the limit, inside the published bounds on the scale $\alpha$ and beyond.

Each point is a start of the flow, filled if $(A,b)$ comes to stay within a thousandth of its limit. Most starts have a
random $\Theta$; three, at the bounds, have $\Theta$ along the first axis of $\Sigma$. In the sharp interval of $\alpha$
every start is better than predicting 0. Both rows have the same $\Sigma$, at two scales.

Alt: Two rows of filled dots over a logarithmic axis of the scale of the start, all marked as arriving. Above each row
three horizontal bars, the intervals, end far left of the last dots.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.icl_infinite.block_flows import REACHED, first_below
from chapters.icl_infinite.scaled_starts import ScaledStart
from chapters.icl_infinite.style import AXIS
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label

# Relative distance to the limit at which a flow has arrived.
NEAR = 1e-3
# Bound on the rounding of an exact 1, because risks of starts are sums of products of 5×5 matrices.
ROUNDING = 1e-12


def numbers(runs: list[ScaledStart]) -> Numbers:
    """Return the time that each start takes, and the claims on convergence and on the intervals."""
    groups = [
        {
            "covariance": run.covariance,
            "direction": run.direction,
            "alpha": run.alpha,
            "paper": run.paper,
            "earlier": run.earlier,
            "sharp": run.sharp,
            "start_risk": run.flow.relative_risk[0],
            "time": first_below(run.flow.times, run.flow.distance, NEAR),
            "distance": run.flow.distance[-1],
        }
        for run in runs
    ]
    columns = {
        "covariance": Column("$Σ$, by its norm", "name"),
        "direction": Column("$Θ$ of the start: random, or the first axis of $Σ$", "name"),
        "alpha": Column("Scale $α$ of the start"),
        "paper": Column("$√2/(d^{1/4}‖Σ‖)$, the bound on $α$ of [BB26, Thm 5.1]"),
        "earlier": Column("$√2/(d^{1/4}‖Σ‖^{1/2})$, the bound on $α$ of [ZFB24]"),
        "sharp": Column("$√(2/‖Σ‖)$, the bound on $α$ below which every start is better than predicting 0"),
        "start_risk": Column("Risk of the start, divided by the risk of predicting 0"),
        "time": Column(f"Time after which $(A, b)$ stays within {NEAR:g} of its limit, relative to its size"),
        "distance": Column("Distance to the limit at the end of the run, relative to its size", absolute=1e-8),
    }
    table = Table.of(groups, columns)
    return Numbers(table, _claims(table.frame))


def _claims(starts: pd.DataFrame) -> Claims:
    claim = Claims("icl-infinite", source="derived here", box="intervals-for-the-start")
    claim.at_most(
        "every-alpha",
        f"From {len(starts)} starts inside, at and outside the interval for $α$, with $α$ up to "
        f"{(starts['alpha'] / starts['paper']).max():.0f} times the bound, the flow ends at $(A*, b*)$ (measured: the "
        "largest relative distance at the end).",
        starts["distance"].max(),
        0,
        within=REACHED,
        because="steps have relative errors of 10⁻¹⁰, which do not add up because the flow contracts to its limit",
        box="infinite-flow-converges",
        rejects=("one of the runs ends at the saddle $A = 0$, $b = 0$", 1),  # its relative distance is 1 by definition
    )
    small = starts[starts["paper"] > starts["sharp"]]
    claim.equal(
        "sharp-interval",
        "With $α ≤ √(2/‖Σ‖)$ no start is worse than predicting 0, for any $Θ$, and at the end of this interval the "
        "start along the first axis is equally bad (measured: the largest risk of such a start, divided by the risk of "
        "predicting 0).",
        starts.loc[starts["alpha"] <= starts["sharp"], "start_risk"].max(),
        1,
        within=ROUNDING,
        because="rounding of sums of products of 5×5 matrices",
        rejects=(
            "the condition $α < √2/(d^{1/4}‖Σ‖)$ of [BB26] ensures the same",
            small.loc[small["alpha"] <= small["paper"], "start_risk"].max(),
        ),
    )
    # both intervals are compared by starts along the first axis at their ends, because random starts would need luck
    # and at α = 0 the risk is that of predicting 0
    small = small[small["direction"] == AXIS]
    claim.at_least(
        "two-conditions",
        "For $‖Σ‖ < d^{-1/2}$ the condition $α < √2/(d^{1/4}‖Σ‖)$ of [BB26] allows starts that are worse than "
        "predicting 0 (measured: the risk at its end with $Θ$ along the first axis, divided by the risk of predicting "
        "0).",
        small.loc[small["alpha"] <= small["paper"], "start_risk"].max(),
        1,
        because="the risk of predicting 0 is the bound; the risk of this start is exact",
        rejects=(
            "the condition is $α < √2/(d^{1/4}‖Σ‖^{1/2})$, as in [ZFB24]",
            small.loc[small["alpha"] == small["earlier"], "start_risk"].max(),
        ),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one strip of starts per covariance, in units of the sharp bound, below the three intervals."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    bounds = {
        "paper": ("interval of [BB26]", "C1"),
        "earlier": ("interval of [ZFB24]", ink()),
        "sharp": ("sharp: no start is worse than predicting 0", "C2"),
    }
    least, most = (extreme(table["alpha"] / table["sharp"]) for extreme in (np.min, np.max))
    ticks = []
    for row, name in enumerate(dict.fromkeys(table["covariance"])):
        runs, foot = table[table["covariance"] == name], -1.6 * row
        starts, arrived = runs["alpha"] / runs["sharp"], runs["time"].notna()
        for shown, fill in ((arrived, "full"), (~arrived, "none")):
            axes.plot(starts[shown], np.full(shown.sum(), foot), "o", color="C0", markersize=9, fillstyle=fill)
        label(axes, 1.4 * most, foot, f"{arrived.sum()} of {len(runs)}\narrive", "C0", fontsize=12)
        for step, (column, (words, colour)) in enumerate(bounds.items(), start=1):
            height, end = foot + 0.28 * step, runs[column].max() / runs["sharp"].max()
            axes.plot([0.6 * least, end], [height, height], color=colour, linewidth=5, solid_capstyle="butt")
            label(axes, end, height, words, colour, fontsize=10.5)
        ticks.append((foot, name.replace("‖Σ‖", r"$\|\Sigma\|$")))
    axes.set(xscale="log", xlim=(0.6 * least, 1.4 * most), ylim=(-2.0, 1.2))
    axes.set_xlabel(r"scale $\alpha$ of the start, in units of the sharp bound $\sqrt{2/\|\Sigma\|}$")
    axes.set_yticks(*zip(*ticks, strict=True))
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    return figure
