r"""With weak ridges the start decides at which minimum L-BFGS ends, and with strong ridges it does not.

Each point is one set of prompts, on which softmax attention was trained twice: from the hidden directions (informed)
and from random ones. The horizontal axis shows the ridge, equal for keys and values. Left: the relative excess of the
objective after the random start over that after the informed start; the axis is linear in the shaded band, up to one
part in ten thousand, and logarithmic outside. Right: the risks of both minima, joined by a line for each set of
prompts. The figure shows no theory, because the replica-symmetric equations assume one minimum.

Alt: Two panels of points in five columns, one per ridge from 0.01 to 1. Left, points are in a shaded band around zero
for the largest ridge and far above zero, at up to a fifth, for the smallest. Right, both risks coincide for large
ridges, and for small ones the run from the random start is much worse than the informed one.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.finite_samples.style import DIFFERENT
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label


def numbers(weak: pd.DataFrame) -> Numbers:
    """Return both minima of every set of prompts by ridge; claim one minimum at strong ridges and several at weak "
    "ones."""
    frame = weak.pivot_table(index=["ridge_k", "seed"], columns="start", values=["objective", "risk"]).reset_index()
    frame.columns = ["_".join(filter(None, names)) for names in frame.columns]
    frame = frame.rename(columns={"ridge_k": "ridge"})
    frame["excess"] = frame["objective_uninformed"] / frame["objective_informed"] - 1.0
    return Numbers(_table(frame), _claims(frame))


def _table(frame: pd.DataFrame) -> Table:
    """Return one row per ridge and seed: objective and risk from both starts, on the same prompts."""
    columns = {
        "ridge": Column("Ridge of keys and of values"),
        "seed": Column("Seed of the prompts", "name"),
        "objective_informed": Column("Minimised objective over D, from the hidden directions"),
        "objective_uninformed": Column("Minimised objective over D, from random directions"),
        "excess": Column("Relative excess of the objective from random directions"),
        "risk_informed": Column("Excess risk of the minimum from the hidden directions"),
        "risk_uninformed": Column("Excess risk of the minimum from random directions"),
    }
    return Table(frame.reindex(columns=list(columns)), columns)


def _claims(frame: pd.DataFrame) -> tuple[Claim, Claim]:
    """Claim how often the two starts end at different objectives, at strong and at weak ridges."""
    groups = (frame["excess"].abs() > DIFFERENT).groupby(frame["ridge"])
    differ, counts, seeds = groups.mean(), groups.sum(), groups.size()
    smallest, largest = differ.index.min(), differ.index.max()
    weakest, strong = differ[smallest], differ[largest]
    return (
        Claim(
            id="finite-samples-one-minimum",
            statement=(
                f"At ridges of {largest:g}, training of softmax by L-BFGS ends at the same objective from the hidden "
                "directions and from random ones (fraction of seeds where it does not)."
            ),
            source="measured here",
            measured=strong,
            expected=0.0,
            tolerance=0.1,
            relation="≤",
            alternative=Alternative("the same at the smallest ridge", weakest),
            successes=counts[largest],
            trials=seeds[largest],
        ),
        Claim(
            id="finite-samples-several-minima",
            statement=(
                f"At a ridge of {smallest:g}, training of softmax by L-BFGS ends at different objectives from the "
                "hidden directions and from random ones on most seeds (fraction of seeds)."
            ),
            source="measured here",
            measured=weakest,
            expected=0.5,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("the same at the largest ridge", strong),
            successes=counts[smallest],
            trials=seeds[smallest],
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw the excess of the objective on the left and the risks of both minima on the right."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 4.4))
    spread = np.exp(0.4 * ((table["seed"] * (5**0.5 - 1) / 2) % 1 - 0.5))
    left.axhspan(-DIFFERENT, DIFFERENT, color=ink(), alpha=0.1, linewidth=0)
    left.plot(table["ridge"] * spread, table["excess"], "o", color="C0", markersize=5, alpha=0.7, markeredgewidth=0)
    left.set_yscale("symlog", linthresh=DIFFERENT)
    lowest = table["ridge"].min() * spread.min()
    label(left, lowest, 0, "the same minimum", ink(), xytext=(0, 0))
    left.set_title("excess of the objective from a random start")
    right.vlines(table["ridge"] * spread, table["risk_informed"], table["risk_uninformed"], color="C0", linewidth=0.6)
    names = {"informed": "informed", "uninformed": "random"}
    for start, fill in (("informed", "full"), ("uninformed", "none")):
        look = {"color": "C0", "markersize": 4.5, "fillstyle": fill}
        right.plot(table["ridge"] * spread, table[f"risk_{start}"], "o", **look, label=f"{names[start]} start")
    right.set(ylim=(0, None), title="excess risk; a line joins the same prompts")
    right.axhline(1, color=ink(), linestyle="--", linewidth=1)
    label(right, table["ridge"].max() * spread.max(), 1, "output 0", ink(), xytext=(0, 7), ha="right")
    right.legend(loc="upper right")
    ridges = sorted(table["ridge"].unique())
    for panel in (left, right):
        panel.set(xscale="log", xlabel=r"ridge, $r_k=r_v$")
        panel.set_xticks(ridges, [f"{ridge:g}" for ridge in ridges])
        panel.minorticks_off()
    headline(figure, "With weak ridges the start decides where training ends")
    return figure
