r"""With weak ridges the start decides at which minimum L-BFGS ends, and with strong ridges it does not.

Each line is one set of prompts ($\alpha=1.5$, $D=200$), on which softmax attention was trained twice: from the hidden
directions (informed) and from random ones. It joins the excess risks of both ends. The horizontal axis shows the ridge,
equal for keys and values. The numbers count the sets of prompts for which the objectives at both ends differ by more
than one part in ten thousand; the table has their difference. The figure shows no theory: the replica-symmetric
equations describe one minimum.

Alt: Points in five columns, one per ridge from 0.01 to 1, joined by vertical lines. Both risks coincide for large
ridges, and for small ones the run from the random start is much worse than the informed one.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.finite_samples.style import DIFFERENT
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label, ticks_at


def numbers(weak: pd.DataFrame) -> Numbers:
    """Return both minima of every set of prompts by ridge; claim one minimum at strong ridges and several at weak
    ones."""
    frame = weak.pivot_table(index=["ridge_k", "seed"], columns="start", values=["objective", "risk"]).reset_index()
    frame.columns = ["_".join(filter(None, names)) for names in frame.columns]
    frame = frame.rename(columns={"ridge_k": "ridge"})
    frame["excess"] = frame["objective_uninformed"] / frame["objective_informed"] - 1.0
    columns = {
        "ridge": Column("Ridge of keys and of values"),
        "seed": Column("Seed of the prompts", "name"),
        "objective_informed": Column("Minimised objective over $D$, from the hidden directions"),
        "objective_uninformed": Column("Minimised objective over $D$, from random directions"),
        "excess": Column("Relative excess of the objective from random directions"),
        "risk_informed": Column("Excess risk of the minimum from the hidden directions"),
        "risk_uninformed": Column("Excess risk of the minimum from random directions"),
    }
    differ = (frame["excess"].abs() > DIFFERENT).groupby(frame["ridge"]).agg(["mean", "sum", "size"])
    weak_ridge, strong_ridge = differ.index.min(), differ.index.max()
    weakest, strongest = differ.loc[weak_ridge], differ.loc[strong_ridge]
    claim = Claims("finite-samples", source="measured here")
    claim.at_most(
        "one-minimum",
        f"At ridges of {strong_ridge:g}, training of softmax by L-BFGS ends at the same objective from the hidden "
        "directions and from random ones (fraction of seeds where it does not).",
        strongest["mean"],
        0,
        within=0.1,
        because="a start near the border between two minima may lead to either",
        count=(strongest["sum"], strongest["size"]),
        rejects=("the same at the smallest ridge", weakest["mean"]),
    )
    claim.at_least(
        "several-minima",
        f"At a ridge of {weak_ridge:g}, training of softmax by L-BFGS ends at different objectives from the hidden "
        "directions and from random ones on most seeds (fraction of seeds).",
        weakest["mean"],
        0.5,
        because="most seeds are more than half of them",
        count=(weakest["sum"], weakest["size"]),
        rejects=("the same at the largest ridge", strongest["mean"]),
    )
    return Numbers(Table(frame.reindex(columns=list(columns)), columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the risks of both minima, joined for each set of prompts."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    places = table["ridge"] * np.exp(0.4 * ((table["seed"] * (5**0.5 - 1) / 2) % 1 - 0.5))
    axes.vlines(places, table["risk_informed"], table["risk_uninformed"], color="C0", linewidth=0.8)
    for start, fill, name in (("informed", "full", "informed start"), ("uninformed", "none", "random start")):
        axes.plot(places, table[f"risk_{start}"], "o", color="C0", markersize=6, fillstyle=fill, label=name)
    for ridge, rows in table.groupby("ridge"):
        worse = int((rows["excess"].abs() > DIFFERENT).sum())
        label(axes, ridge, 0.25, f"{worse} of {len(rows)}\nends differ", ink(), xytext=(0, 0), ha="center")
    axes.axhline(1, color=ink(), linestyle="--", linewidth=1)
    label(axes, places.max(), 1, "output 0", ink(), xytext=(0, 7), ha="right")
    axes.set(ylim=(0, 1.15 * table["risk_uninformed"].max()), ylabel="excess risk")
    axes.set(xscale="log", xlabel=r"ridge, $r_k=r_v$")
    ticks_at(axes.xaxis, sorted(table["ridge"].unique()))
    axes.legend(loc="upper right")
    return figure
