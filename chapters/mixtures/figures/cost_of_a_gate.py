r"""With the best affine part, the logistic risk is least exactly where the gate is off, by its height or by its slope.

The excess risk over the Bayes risk at a given height $r$ and slope of the gate, with the best affine part; it is zero
on both axes only. The slope of the gate is a multiple of $w^\star/\|w^\star\|$.

Alt: A map over the height and the slope of the gate, with a dark cross along both axes and corners that get lighter
away from it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN

# Sums of a few hundred terms of size one, squared differences included.
ROUNDING = 1e-12
# Lowest excess in the picture.
FLOOR = 1e-6
# The relative correction at R = 100 is of order 1/R; times ten for its constant, over one decade of R.
SEQUENCE = 10 / 100 / np.log(10)


def numbers(cross: pd.DataFrame, sequence: dict[str, float]) -> Numbers:
    """Return the excess at each gate, and the claims."""
    columns = {
        "height": Column("Height $r$ of the gate"),
        "gate_slope": Column("Slope of the gate along $w*$"),
        "excess": Column("Least excess risk over $w$ and $b$", "nat", absolute=1e-14),
    }
    claim = Claims("mixture-discrimination")
    on_axes = (cross["height"] == 0) | (cross["gate_slope"] == 0)
    claim.at_least(
        "cross",
        "A gate with $r ≠ 0$ and $s ≠ 0$ has more than the Bayes risk, whatever the affine part (least excess in "
        "nats over a square of $r$ and $s$).",
        cross.loc[~on_axes, "excess"].min(),
        ROUNDING,
        because="rounding of sums in double precision",
        source="[GBB26, Thm 3.1]",
        box="gbb26-thm-3-1",
        rejects=("an affine part makes up for every gate", cross.loc[on_axes, "excess"].max()),
    )
    claim.equal(
        "diverging",
        "Along heads with $r = R$, $s = w*/R$ and matching $w$ and $b$, the excess risk falls like $R⁻²$ for "
        "unequal weights (exponent between $R = 100$ and 1,000).",
        sequence["unequal"],
        -2.0,
        within=SEQUENCE,
        because="corrections are of relative order $1/R$, with a constant of at most ten, over one decade",
        source="[GBB26, Prop. 3.4]",
        box="gbb26-prop-3-4",
        rejects=("it falls like $R⁻⁴$, as for equal weights", sequence["equal"]),
    )
    return Numbers(Table(cross, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the map of the excess."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    grid = table.pivot_table(index="gate_slope", columns="height", values="excess")
    values = np.maximum(grid.to_numpy(), FLOOR)
    look = {"cmap": "cividis", "norm": LogNorm(FLOOR, values.max()), "shading": "nearest", "rasterized": True}
    image = axes.pcolormesh(grid.columns, grid.index, values, **look)
    axes.grid(visible=False)
    axes.set(xlabel="height of the gate, $r$", ylabel=r"slope of the gate, $\langle s, w^{\star}\rangle/\|w^{\star}\|$")
    for place, text, angle in (((-2.3, 0), "gate off: slope 0", 0), ((0, 2.4), "gate off: height 0", 90)):
        axes.text(*place, text, color="w", ha="center", va="center", rotation=angle, fontsize=11)
    figure.colorbar(image, ax=axes, label="least excess risk")
    return figure
