r"""Weak regularisation: where L-BFGS ends depends on where it began.

Each point is one set of prompts, on which softmax attention was trained twice: from the hidden directions and from
random ones. Across, logarithmic: the ridge, equal for keys and values. Left: how much higher the objective of the
uninformed run ended, relative to the informed one, on an axis that is linear in the shaded band, up to one part in ten
thousand, and logarithmic outside. Right: the risks of both minima, joined for each set of prompts. No theory is drawn:
the replica-symmetric equations assume one minimum.

Alt: Two panels of points in five columns, one a ridge from 0.01 to 1. Left, points lie in a shaded band around zero
for the largest ridge and far above zero, at up to a fifth, for the smallest. Right, both risks coincide for large
ridges, and for small ones the uninformed run is much worse than the informed one.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.finite_samples.style import DIFFERENT
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label


def numbers(weak: pd.DataFrame) -> Numbers:
    """Both minima of every set of prompts, by ridge; at strong ridges there is one, at weak ones the start decides."""
    frame = weak.pivot_table(index=["ridge_k", "seed"], columns="start", values=["objective", "risk"]).reset_index()
    frame.columns = ["_".join(filter(None, names)) for names in frame.columns]
    frame = frame.rename(columns={"ridge_k": "ridge"})
    frame["excess"] = frame["objective_uninformed"] / frame["objective_informed"] - 1.0
    return Numbers(_table(frame), _claims(frame))


def _table(frame: pd.DataFrame) -> Table:
    """One row a ridge and seed: the objective and the risk from both starts, on the same prompts."""
    columns = {
        "ridge": Column("Ridge of keys and of values"),
        "seed": Column("Of the prompts", "name"),
        "objective_informed": Column("Minimised objective over D, from the hidden directions"),
        "objective_uninformed": Column("The same from random directions"),
        "excess": Column("How much higher the second objective is, relative to the first"),
        "risk_informed": Column("Excess risk of the first minimum"),
        "risk_uninformed": Column("Excess risk of the second"),
    }
    return Table(frame.reindex(columns=list(columns)), columns)


def _claims(frame: pd.DataFrame) -> tuple[Claim, Claim]:
    """The share of seeds whose two starts end at different objectives, at strong and at weak ridges."""
    differ = (frame["excess"].abs() > DIFFERENT).groupby(frame["ridge"]).mean()
    smallest, largest = differ.index.min(), differ.index.max()
    weakest, strong = differ[smallest], differ[largest]
    return (
        Claim(
            id="finite-samples-one-minimum",
            statement=(
                f"At ridges of {largest:g}, L-BFGS ends at the same objective from the hidden directions and "
                "from random ones: the share of seeds where it does not."
            ),
            source="measured here",
            measured=strong,
            expected=0.0,
            tolerance=0.1,
            relation="≤",
            alternative=Alternative("strong ridges behaved like the weakest", weakest),
        ),
        Claim(
            id="finite-samples-several-minima",
            statement=(
                f"At a ridge of {smallest:g} the start decides where L-BFGS ends: the share of seeds whose two "
                "starts find different objectives."
            ),
            source="measured here",
            measured=weakest,
            expected=0.5,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("the weakest ridge behaved like strong ones", strong),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Left, how much higher the second minimum is; right, the risks of both."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.4))
    spread = np.exp(0.4 * ((table["seed"] * (5**0.5 - 1) / 2) % 1 - 0.5))
    left.axhspan(-DIFFERENT, DIFFERENT, color=ink(), alpha=0.1, linewidth=0)
    left.plot(table["ridge"] * spread, table["excess"], "o", color="C0", markersize=5, alpha=0.7, markeredgewidth=0)
    left.set_yscale("symlog", linthresh=DIFFERENT)
    lowest = table["ridge"].min() * spread.min()
    label(left, lowest, 0, "the same minimum", ink(), xytext=(0, 0))
    left.set_title("objective: uninformed above informed")
    right.vlines(table["ridge"] * spread, table["risk_informed"], table["risk_uninformed"], color="C0", linewidth=0.6)
    for start, fill in (("informed", "full"), ("uninformed", "none")):
        look = {"color": "C0", "markersize": 4.5, "fillstyle": fill}
        right.plot(table["ridge"] * spread, table[f"risk_{start}"], "o", **look, label=f"{start} start")
    right.set(ylim=(0, None), title="excess risk; a line joins the same prompts")
    right.axhline(1, color=ink(), linestyle="--", linewidth=1)
    label(right, table["ridge"].max() * spread.max(), 1, "answering 0", ink(), xytext=(0, 7), ha="right")
    right.legend(loc="upper right")
    ridges = sorted(table["ridge"].unique())
    for panel in (left, right):
        panel.set(xscale="log", xlabel=r"ridge, $r_k=r_v$")
        panel.set_xticks(ridges, [f"{ridge:g}" for ridge in ridges])
        panel.minorticks_off()
    headline(figure, "With too little ridge, where training ends depends on where it began")
    return figure
