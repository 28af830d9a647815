r"""Runs that start on the manifold stay on it; from other starts, some flat erf heads end with exchanged roles.

The distance is the norm of the three cross overlaps, which are zero on the manifold: $\langle k,v^\star\rangle=\langle
v,k^\star\rangle=\langle k,v\rangle=0$. Erf is flat for a small sharpness $\lambda$. Curves are medians over random
starts, and bands contain the central 80 %. Dotted: exactly exchanged roles, $k=v^\star$ and $v=k^\star$, at the
distance $\sqrt2$. The lowest lines are rounding errors.

Alt: Four columns with a curve and a band on a logarithmic axis, one per head, below a dotted line named "roles of key
and value exchanged". With the flat erf and the decreasing schedule the bands widen, from far below the start up to one,
and the curve ends near one end of the band. With the sharp erf and with softmax they end near their start. Below a
break of the axis are flat lines at the size of rounding errors: the starts on the manifold.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.single_location_training.descents import BAND, FLAT, SOFT, Runs, band, described
from chapters.single_location_training.names import in_sentence
from chapters.single_location_training.sphere_descent import manifold_distance
from chapters.single_location_training.style import COLOURS, draw_band
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, ticks_at

# The two strokes at a break of an axis.
BREAK = {"marker": [(-1, -0.5), (1, 0.5)], "markersize": 9, "linestyle": "none", "markeredgewidth": 1.2}

# Distances above this one are near that of exchanged roles.
EXCHANGED = 1.0


def numbers(runs: Runs) -> Numbers:
    """Return the distances to the manifold along training, with the claims on both kinds of start."""
    groups = [
        {
            "head": name,
            "start": start,
            "step": run.steps,
            **band(np.maximum(manifold_distance(run.overlaps), np.finfo(float).eps)),
        }
        for (name, start), run in runs.items()
    ]
    columns = {
        "head": Column("Activation and sharpness $λ$", "name"),
        "start": Column("Place of the random starts: `on the manifold` or `anywhere` on the spheres", "name"),
        "step": Column("Steps of projected gradient descent", "steps"),
        **BAND,
    }
    claim = Claims("single-location-training")
    inside, outside = (manifold_distance(runs[FLAT, start].overlaps) for start in ("on the manifold", "anywhere"))
    claim.equal(
        "manifold",
        f"Descent that starts with zero cross overlaps keeps them at zero ({in_sentence(FLAT)}; measured: the "
        "largest distance from the manifold).",
        inside.max(),
        0,
        within=1e-6,
        because="rounding errors of the descent",
        source="[M24]",
        box="invariant-manifold",
        rejects=("the starts were anywhere on the spheres", outside.max()),
    )
    exchanged = runs[FLAT, "anywhere"].exchanged
    claim.at_least(
        "exchange",
        f"From random starts anywhere, more than a tenth of the runs of erf attention ({in_sentence(FLAT)}) end "
        "with the roles exchanged, $k$ turned to $v*$ and $v$ to $k*$ (measured: the fraction of runs).",
        exchanged.mean(),
        0.1,
        because="a tenth, as stated",
        count=(exchanged.sum(), exchanged.size),
        source="heuristic",
        box="where-and-what",
        rejects=("erf attention exchanges roles as rarely as softmax", runs[SOFT, "anywhere"].exchanged.mean()),
        requires=described(runs, FLAT, SOFT),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the distances in one column per head: above from starts anywhere, below from starts on the manifold."""
    heads = list(dict.fromkeys(table["head"]))
    figure, panels = plt.subplots(2, 4, figsize=(WIDE, 4.8), sharex=True, sharey="row", height_ratios=(4, 1))
    anywhere = table["start"] == "anywhere"
    names = ("flat erf", "sharp erf", "erf, ever flatter", "softmax")
    for (above, below), head, name, colour in zip(panels.T, heads, names, COLOURS, strict=True):
        for panel, rows in ((above, table[anywhere]), (below, table[~anywhere])):
            draw_band(panel, rows[rows["head"] == head], colour)
        above.axhline(np.sqrt(2), color=ink(), linestyle=":", linewidth=1.5)
        last = table[anywhere & (table["head"] == head)].iloc[-1]
        if last["high"] > EXCHANGED:
            most = "most" if last["median"] > EXCHANGED else "some"
            label(above, 1, 1, f"{most} runs\nexchanged", colour, xytext=(-3, -24), ha="right")
        above.set_title(name + "\n" + head.split(", ")[1].replace("λ", "$\\lambda$"), color=colour)
        above.spines["bottom"].set_visible(False)
        above.tick_params(bottom=False)
        for panel, edge in ((above, 0), (below, 1)):  # the break of the axis
            panel.plot(0, edge, transform=panel.transAxes, clip_on=False, **BREAK, color=ink())
    (first, *_), (lowest, *_) = panels
    on_it = table[~anywhere]
    first.set(yscale="log", ylim=(table[anywhere]["low"].min() / 4, 4.0), xlim=(0, 1))
    lowest.set(yscale="log", ylim=(on_it["low"].min() / 50, 50 * on_it["high"].max()))
    lowest.set(yticks=[10.0 ** np.round(np.log10(on_it["median"].median()))])
    ticks_at(lowest.xaxis, [0, 0.5, 1])
    for panel in (first, lowest):
        panel.minorticks_off()
    figure.supxlabel("training time, as a part of the whole")
    first.set_ylabel("size of the cross overlaps\n(distance to the manifold)")
    label(panels[0, -1], 1, np.sqrt(2), "roles of key and\nvalue exchanged", ink())
    label(panels[0, -1], 1, 0.05, "starts\nanywhere", ink())
    label(panels[1, -1], 1, on_it["median"].iloc[-1], "starts on\nthe manifold", ink())
    return figure
