r"""Tilted moments of sub-Gaussian tokens stay below a common ceiling; those of Laplace tokens do not.

The vertical axis is the mean of $|z'|^p$ for $z'$ of the distribution tilted by $\xi$, for one coordinate of mean 0 and
variance 1; $p$ is one of the orders of Assumption 3.3. The ceiling holds for all distributions with the sub-Gaussian
constant 1 and is a polynomial in the tilt (derived here). The moments of Laplace tokens are infinite from a finite tilt
on.

Alt: Two panels, logarithmic, of a tilted moment against the size of the tilt. Four curves become flat or grow slowly
under a dashed curve, the Gaussian the fastest of them. The fifth, Laplace, crosses the dashed curve and goes off
vertically at a small tilt.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import AutoLocator

from chapters.concentration.sub_gaussian_moments import NOT_SUB_GAUSSIAN, ORDERS, TiltedMoments
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, few_decades, ink, label

CEILING = "ceiling"
# Vertical shifts, in points, of the labels of two curves that end close together.
NUDGES = {"mixture": 6, "uniform": -6}


def numbers(tilts: TiltedMoments) -> Numbers:
    """Return tilted moments by distribution and order, and the claim that the ceiling holds."""
    named = tilts.moments | {(CEILING, order): values for order, values in tilts.ceilings.items()}
    groups = [
        pd.DataFrame({"law": law, "order": order, "tilt": tilts.tilts, "moment": values})[np.isfinite(values)]
        for (law, order), values in named.items()
    ]
    columns = {
        "law": Column("Distribution of a token; `ceiling`: bound for all centred 1-sub-Gaussian distributions", "name"),
        "order": Column("Order $p$ of the moment"),
        "tilt": Column("Size of the tilt, $ξ$"),
        "moment": Column("$𝔼 |z'|^p$ for $z'$ of the distribution tilted by $ξ$"),
    }
    ratios = {at: values / tilts.ceilings[at[1]] for at, values in tilts.moments.items()}
    laplace = np.stack([ratio for (law, _), ratio in ratios.items() if law == NOT_SUB_GAUSSIAN])
    claim = Claims("gradient-concentration", source="derived here", box="sub-gaussian-tilts")
    claim.at_most(
        "tilts",
        f"Up to the tilt {tilts.tilts[-1]:g} and for the orders {ORDERS[0]} and {ORDERS[1]}, the tilted "
        "moments of four distributions that are sub-Gaussian with the constant 1 stay below $𝔼(2|ξ| + Y)^p$, "
        "$P(Y > y) = min(1, 2e^{-y²/2})$ (measured: the largest ratio of the two).",
        max(ratio.max() for (law, _), ratio in ratios.items() if law != NOT_SUB_GAUSSIAN),
        1,
        because="the ceiling is a proved upper bound, so the ratio is at most 1",
        rejects=(
            "a finite variance suffices: Laplace tokens of variance 1, at the last tilt with finite moments",
            laplace[np.isfinite(laplace)].max(),
        ),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per order: moments by distribution and their ceiling."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.6))
    for panel, (order, part) in zip(panels, table.groupby("order"), strict=True):
        top = part[part["law"] == CEILING]
        highest = 3 * top["moment"].max()
        for index, (name, rows) in enumerate(part[part["law"] != CEILING].groupby("law", sort=False)):
            panel.plot(rows["tilt"], rows["moment"], color=f"C{index}", linewidth=2)
            inside = rows[rows["moment"] < highest].iloc[-1]
            ends = inside["tilt"] == top["tilt"].max()
            if ends and panel is panels[-1]:
                label(panel, inside["tilt"], inside["moment"], name, f"C{index}", xytext=(6, NUDGES.get(name, 0)))
            elif not ends:
                outside = f"{name}\n(not sub-Gaussian)" if panel is panels[0] else name
                label(panel, inside["tilt"], highest / 3, outside, f"C{index}", xytext=(8, -4))
        panel.plot(top["tilt"], top["moment"], color=ink(), linestyle="--", linewidth=1.4)
        if panel is panels[-1]:
            name = f"{CEILING} for all\nsub-Gaussian tokens"
            label(panel, top["tilt"].iloc[-1], top["moment"].iloc[-1], name, ink())
        panel.set(yscale="log", xlim=(0, top["tilt"].max()), ylim=(0.4, highest))
        panel.set(xlabel=r"size of the tilt, $\xi$", title=f"order $p={order}$")
        few_decades(panel)
        panel.xaxis.set_major_locator(AutoLocator())
    panels[0].set_ylabel(r"tilted moment $\mathrm{E}\,|z'|^p$")
    return figure
