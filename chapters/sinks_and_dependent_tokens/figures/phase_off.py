r"""A small sink does not move freezing; a large one adds a phase in which the head is off.

Colour: exact participation of the tokens at one long prompt. Below the solid curve, $\kappa=1+a^2$ up to $a=1$ and
$\kappa=2a$ beyond, the sink has no weight in the limit, and participation is that of a prompt without a sink. Above it
(hatched) the sink has all the weight.

Alt: Heat map over the size of the query and the score of the sink. A solid curve rises from one at the left edge.
Above it the map is dark. Below it participation is small up to a vertical dashed line at a equal to one and grows to
the right of it, by the same amount at every height.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.sinks_and_dependent_tokens.sinks import SinkPlane, boundary
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN
from lib.finite_prompt import LARGEST_TAU, participation


def numbers(plane: SinkPlane, beside: tuple[SinkPlane, SinkPlane], margin: float) -> Numbers:
    """Return the plane, and the claims on both sides of the boundary."""
    names = ("ratio", "height", "participation", "sink_weight")
    frame = pd.DataFrame({name: getattr(plane, name) for name in names}).assign(boundary=boundary(plane.ratio))
    columns = {
        "ratio": Column("$a = τ/√(2 ln L)$"),
        "height": Column("$κ = b/ln L$, the score of the sink in units of $ln L$"),
        "participation": Column("Exact $P = 𝔼 Σp²$ over tokens", absolute=1e-12),
        "sink_weight": Column("Exact mean weight of the sink, $𝔼p_0$", absolute=1e-11),
        "boundary": Column("κ above which the sink has all the weight in the limit"),
    }
    below, above = beside
    claim = Claims("sinks", source="derived here", box="phase-off")
    log_length = below.log_length
    taus = np.minimum(below.ratio * np.sqrt(2 * log_length), LARGEST_TAU)
    without = np.asarray(participation(taus, log_length))
    longer = np.minimum(log_length * np.maximum(below.height, 1), 330.0)  # the longest prompt of `participation`
    more = np.asarray(participation(taus, longer))
    bound = np.exp(-margin * log_length / 2)
    because = (
        f"a score {margin:g}·ln L from the boundary makes the sink's weight, or one minus it, a power "
        f"$L^{{-{margin:g}}}$ up to factors that grow more slowly; $L^{{-{margin / 2:g}}}$ leaves room for these"
    )
    claim.at_most(
        "freezing-stays",
        f"Below the boundary, at $κ = f(a) - {margin:g}$ and $ln L = {log_length:g}$, a sink does not change "
        f"participation, before and beyond freezing (largest relative change at {taus.size} query sizes).",
        np.max(np.abs(below.participation / without - 1)),
        bound,
        because=because,
        rejects=(
            "a sink of score b counts as e^b more tokens, and moves freezing to τ = √(2b)",
            np.max(np.abs(more / without - 1)),
        ),
    )
    height, ratio, weight = (
        np.concatenate([getattr(below, name), getattr(above, name)]) for name in ("height", "ratio", "sink_weight")
    )
    limit = height > boundary(ratio)
    claim.at_most(
        "off",
        f"At $κ = f(a) ± {margin:g}$ and $ln L = {log_length:g}$ the weight of the sink is 0 below the boundary and 1 "
        f"above it (largest distance from these limits at {weight.size} points).",
        np.max(np.abs(weight - limit)),
        bound,
        because=because,
        rejects=(
            "the head is off where the score of the sink exceeds the largest score, κ > 2a",
            np.max(np.abs(1.0 * (height > 2 * ratio) - limit)),
        ),
    )
    return Numbers(Table(frame, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the heat map of participation, the boundary and the freezing line."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.8))
    grid = table.pivot(index="height", columns="ratio", values="participation")
    ratios, heights = np.asarray(grid.columns, float), np.asarray(grid.index, float)
    mesh = axes.pcolormesh(ratios, heights, grid, cmap="viridis", vmin=0, vmax=0.6, shading="gouraud", rasterized=True)
    figure.colorbar(mesh, ax=axes, label="participation $P$")
    line = table.drop_duplicates("ratio").sort_values("ratio")
    axes.plot(line["ratio"], line["boundary"], color="w", linewidth=2)
    axes.plot([1, 1], [heights.min(), 2], color="w", linestyle="--", linewidth=1.5)
    look = {"facecolor": "none", "edgecolor": "w", "alpha": 0.25, "linewidth": 0}
    axes.fill_between(line["ratio"], line["boundary"], heights.max(), hatch="//", **look)
    for x, y, text in (
        (0.6, 3.2, "off: the sink has\nall the weight"),
        (0.45, 0.6, "many tokens\nshare the weight"),
        (1.5, 0.6, "a few tokens\nshare the weight"),
        (1.32, 1.4, "freezing at $a=1$\nfor $κ<2$"),
    ):
        axes.text(x, y, text, color="w", ha="center", va="center", fontsize=11)
    axes.set(xlim=(ratios.min(), ratios.max()), ylim=(heights.min(), heights.max()))
    axes.set(xlabel=r"size of the query, $a=\tau/\sqrt{2\,\ln L}$", ylabel=r"score of the sink, $\kappa=b/\ln L$")
    axes.grid(False)
    return figure
