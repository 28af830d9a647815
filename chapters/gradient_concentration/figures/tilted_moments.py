r"""What tilting does to the moments of a token, by law.

Mean of $|z'|^p$ for $z'$ of the law tilted by $\xi$, one coordinate of mean 0 and variance 1; $p$ is one of the orders
of Assumption 3.3. The first four laws are sub-Gaussian with the constant 1, and stay below the dashed ceiling that
all such laws have in common (derived here): a polynomial in the tilt. So the assumption follows from sub-Gaussian
tokens and queries. Laplace tokens are not sub-Gaussian; their tilted moments are infinite from a finite tilt on.

Alt: Two panels, logarithmic, of a tilted moment against the size of the tilt. Four curves become flat or grow slowly
under a dashed curve, the Gaussian the fastest of them. The fifth, Laplace, crosses the dashed curve and goes off
vertically at a small tilt.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import AutoLocator

from chapters.gradient_concentration.style import SIZE
from chapters.gradient_concentration.sub_gaussian_moments import ORDERS, OUTSIDER, Tilts
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import few_decades, headline, ink, label

CEILING = "ceiling"


def numbers(tilts: Tilts) -> Numbers:
    """Tilted moments by law and order, and that the sub-Gaussian ones stay below their ceiling."""
    return Numbers(_table(tilts), (_ceiling_claim(tilts),))


def _table(tilts: Tilts) -> Table:
    """Moment against tilt, where it is finite, by law and order."""
    named = tilts.moments | {(CEILING, order): values for order, values in tilts.ceilings.items()}
    frames = [
        pd.DataFrame({"law": law, "order": order, "tilt": tilts.tilts, "moment": values})[np.isfinite(values)]
        for (law, order), values in named.items()
    ]
    columns = {
        "law": Column("Law of a token; `ceiling`: of all centred 1-sub-Gaussian laws", "name"),
        "order": Column("Order p of the moment"),
        "tilt": Column("Size of the tilt, ξ"),
        "moment": Column("E |z'|^p, z' of the law tilted by ξ"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _ceiling_claim(tilts: Tilts) -> Claim:
    """The largest ratio of a tilted moment to the ceiling, over sub-Gaussian laws, orders and tilts."""

    def largest(chosen):
        return max(
            float(np.max(values / tilts.ceilings[order]))
            for (law, order), values in tilts.moments.items()
            if chosen(law)
        )

    return Claim(
        id="gradient-concentration-tilts",
        statement=(
            f"Up to the tilt {tilts.tilts[-1]:g} and for the orders {ORDERS[0]} and {ORDERS[1]}, the tilted moments of "
            "four laws that are sub-Gaussian with the constant 1 stay below E(2|ξ| + Y)^p, P(Y > y) = "
            "min(1, 2e^{-y²/2}): the largest ratio of the two."
        ),
        source="derived here",
        box="sub-gaussian-tilts",
        measured=largest(lambda law: law != OUTSIDER),
        expected=1.0,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative(
            "a finite variance were enough: Laplace tokens of variance 1, at the last tilt where theirs are finite",
            max(
                float(np.max((values / tilts.ceilings[order])[np.isfinite(values)]))
                for (law, order), values in tilts.moments.items()
                if law == OUTSIDER
            ),
        ),
    )


# By how many points the names of two laws that end close together are moved.
NUDGES = {"mixture": 6, "uniform": -6}


def draw(table: pd.DataFrame) -> Figure:
    """A panel an order: moments by law, under their ceiling; names at the right ends of the last panel."""
    orders = sorted(table["order"].unique())
    figure, panels = plt.subplots(1, len(orders), figsize=SIZE)
    for panel, order in zip(panels, orders, strict=True):
        part = table[table["order"] == order]
        top = part[part["law"] == CEILING]
        highest = 3 * top["moment"].max()
        laws = [law for law in dict.fromkeys(part["law"]) if law != CEILING]
        for index, law in enumerate(laws):
            mine = part[part["law"] == law]
            panel.plot(mine["tilt"], mine["moment"], color=f"C{index}", linewidth=2)
            inside = mine[mine["moment"] < highest].iloc[-1]
            ends = inside["tilt"] == top["tilt"].max()
            if ends and panel is panels[-1]:
                label(panel, inside["tilt"], inside["moment"], law, f"C{index}", xytext=(6, NUDGES.get(law, 0)))
            elif not ends:
                label(panel, inside["tilt"], highest / 3, law, f"C{index}", xytext=(8, 0))
        panel.plot(top["tilt"], top["moment"], color=ink(), linestyle="--", linewidth=1.4)
        if panel is panels[-1]:
            label(panel, top["tilt"].iloc[-1], top["moment"].iloc[-1], CEILING, ink())
        panel.set(yscale="log", xlim=(0, top["tilt"].max()), ylim=(0.4, highest))
        panel.set(xlabel=r"size of the tilt, $\xi$", title=f"order $p={order}$")
        few_decades(panel)
        panel.xaxis.set_major_locator(AutoLocator())
    panels[0].set_ylabel(r"tilted moment $\mathrm{E}\,|z'|^p$")
    headline(figure, "Sub-Gaussian tokens stay below the ceiling; Laplace tokens do not")
    return figure
