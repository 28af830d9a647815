r"""Starts of every scale tried converge to the limit, inside the published bounds on the scale $\alpha$ and beyond.

Each point is a start of the flow: filled if $(A,b)$ comes to stay within a thousandth of its limit, hollow if not. Most
starts have a random $\Theta$; three have $\Theta$ along the first axis of $\Sigma$, at the bounds. The bars are the
intervals of $\alpha$ in [BB26] and in [ZFB24], and the sharp one, in which every start is better than predicting 0.
The two rows have the same $\Sigma$ at two scales. The table also has the time until the limit, which shows no change at
the bounds.

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
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label

# Relative distance to the limit at which a flow has arrived.
NEAR = 1e-3
# Bound on the rounding of an exact 1, because risks of starts are sums of products of 5×5 matrices.
ROUNDING = 1e-12
# Largest relative risk of a start that is drawn as no worse than predicting 0.
SAME = 1 + 1e-6


def numbers(runs: list[ScaledStart]) -> Numbers:
    """Return the time that each start takes, and the claims on convergence and on the intervals."""
    table = _table(runs)
    claims = (_every_scale_claim(table.frame), _sharp_claim(table.frame), _intervals_differ_claim(table.frame))
    return Numbers(table, claims)


def _table(runs: list[ScaledStart]) -> Table:
    """Return the table with one row per run."""
    rows = [
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
    return Table(pd.DataFrame(rows), columns)


def _every_scale_claim(frame: pd.DataFrame) -> Claim:
    """Claim that every run ends at its limit; at the saddle A = 0, b = 0 the relative distance is 1 by definition."""
    return Claim(
        id="icl-infinite-every-alpha",
        statement=(
            f"From {len(frame)} starts inside, at and outside the interval for $α$, with $α$ up to "
            f"{(frame['alpha'] / frame['paper']).max():.0f} times the bound, the flow ends at $(A*, b*)$ "
            "(measured: the largest relative distance at the end)."
        ),
        source="derived here",
        box="infinite-flow-converges",
        measured=float(np.max(frame["distance"])),
        expected=0.0,
        tolerance=REACHED,
        reason="steps have relative errors of 10⁻¹⁰, which do not add up because the flow contracts to its limit",
        relation="≤",
        alternative=Alternative("one of the runs ends at the saddle $A = 0$, $b = 0$", 1.0),
    )


def _worst(frame: pd.DataFrame, bound: str) -> float:
    """Return the largest risk of a start with α up to the bound, relative to predicting 0."""
    return float(frame.loc[frame["alpha"] <= frame[bound], "start_risk"].max())


def _sharp_claim(frame: pd.DataFrame) -> Claim:
    """Claim that starts inside the sharp interval are no worse than predicting 0, for both covariances."""
    small = frame[frame["paper"] > frame["sharp"]]
    return Claim(
        id="icl-infinite-sharp-interval",
        statement=(
            "With $α ≤ √(2/‖Σ‖)$ no start is worse than predicting 0, for any $Θ$, and at the end of this "
            "interval the start along the first axis is equally bad (measured: the largest risk of such a start, "
            "divided by the risk of predicting 0)."
        ),
        source="derived here",
        box="intervals-for-the-start",
        measured=_worst(frame, "sharp"),
        expected=1.0,
        tolerance=ROUNDING,
        reason="rounding of sums of products of 5×5 matrices",
        alternative=Alternative(
            "the condition $α < √2/(d^{1/4}‖Σ‖)$ of [BB26] ensures the same", _worst(small, "paper")
        ),
    )


def _intervals_differ_claim(frame: pd.DataFrame) -> Claim:
    """Claim that for ‖Σ‖ < d^{-1/2} the interval of [BB26] contains starts that are worse than predicting 0.

    It uses starts along the first axis at the ends of both intervals, because random starts would need luck.
    """
    small = frame[(frame["paper"] > frame["sharp"]) & (frame["direction"] == AXIS)]
    return Claim(
        id="icl-infinite-two-conditions",
        statement=(
            "For $‖Σ‖ < d^{-1/2}$ the condition $α < √2/(d^{1/4}‖Σ‖)$ of [BB26] allows starts that are worse "
            "than predicting 0 (measured: the risk at its end with $Θ$ along the first axis, divided by the risk "
            "of predicting 0)."
        ),
        source="derived here",
        box="intervals-for-the-start",
        measured=_worst(small, "paper"),
        expected=1.0,
        tolerance=0.0,
        reason="the risk of predicting 0 is the bound; the risk of this start is exact",
        relation="≥",
        # at α = 0 the risk is the risk of predicting 0, so the other interval is also compared at its end
        alternative=Alternative(
            "the condition is $α < √2/(d^{1/4}‖Σ‖^{1/2})$, as in [ZFB24]",
            float(small.loc[small["alpha"] == small["earlier"], "start_risk"].max()),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one strip of starts per covariance, in units of the sharp bound, below the three intervals."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    bounds = {
        "paper": ("[BB26]", "C1"),
        "earlier": ("[ZFB24]", ink()),
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
