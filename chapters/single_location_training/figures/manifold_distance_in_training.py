r"""Runs that start on the manifold stay on it; from other starts, some flat erf heads end with exchanged roles.

The manifold is $\langle k,v^\star\rangle=\langle v,k^\star\rangle=\langle k,v\rangle=0$. The distance is the norm of
these three cross overlaps, against the steps of projected gradient descent. Curves are medians over random starts
anywhere on the spheres, and bands contain the central 80 %. Below the break of the axis: random starts on the manifold,
up to rounding. Erf attention with a small last $\lambda$ comes close to the manifold in a part of its runs, and ends
far from it in the others, with the roles of $k$ and $v$ exchanged. The sharp erf and softmax end about as far from it
as they started.

Alt: Four panels with a logarithmic axis, one per head. With the flat erf and the decreasing schedule the bands widen,
from far below the start up to one, and the curve ends near one end of the band. With the sharp erf and with softmax
they end near their start. Below a break of the axis are flat lines at the size of rounding errors: the starts on the
manifold.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from chapters.single_location_training.descents import BAND, FLAT, SOFT, Runs, band, described
from chapters.single_location_training.style import colours, draw_band
from companion import Alternative, Claim, Column, Numbers, Table, WithheldClaim
from companion.figures.style import headline, ink
from lib.single_location import manifold_distance

# The two strokes at a break of an axis.
BREAK = {"marker": [(-1, -0.5), (1, 0.5)], "markersize": 9, "linestyle": "none", "markeredgewidth": 1.2}


def numbers(runs: Runs) -> Numbers:
    """Return the distances to the manifold along training, with the claims on both kinds of start."""
    return Numbers(_table(runs), (_invariance_claim(runs), _exchange_claim(runs)))


def _table(runs: Runs) -> Table:
    """Return the bands of the distance to the manifold, for both kinds of start."""
    frames = [
        pd.DataFrame(
            {
                "head": name,
                "start": start,
                "step": run.steps,
                **band(np.maximum(manifold_distance(run.overlaps), np.finfo(float).eps)),
            }
        )
        for (name, start), run in runs.items()
    ]
    columns = {
        "head": Column("Activation and sharpness λ", "name"),
        "start": Column("Place of the random starts: `on the manifold` or `anywhere` on the spheres", "name"),
        "step": Column("Steps of projected gradient descent", "steps"),
        **BAND,
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _invariance_claim(runs: Runs) -> Claim:
    """Return the claim on the largest distance that runs from the manifold reach, at λ = 0.1."""
    inside = manifold_distance(runs[FLAT, "on the manifold"].overlaps)
    outside = manifold_distance(runs[FLAT, "anywhere"].overlaps)
    return Claim(
        id="single-location-training-manifold",
        statement=(
            f"Descent that starts with zero cross overlaps keeps them at zero ({FLAT}; measured: the largest distance "
            "from the manifold)."
        ),
        source="[M24]",
        box="invariant-manifold",
        measured=float(inside.max()),
        expected=0.0,
        tolerance=1e-6,
        alternative=Alternative("the starts were anywhere on the spheres", float(outside.max())),
    )


def _exchange_claim(runs: Runs) -> Claim | WithheldClaim:
    """Return the claim on the fraction of erf runs from anywhere that end with the roles of k and v exchanged."""
    exchanged = runs[FLAT, "anywhere"].exchanged
    claim = Claim(
        id="single-location-training-exchange",
        statement=(
            f"From random starts anywhere, more than a tenth of the runs of erf attention ({FLAT}) end with the roles "
            "exchanged, k along v* and v along k* (measured: the fraction of runs)."
        ),
        source="heuristic",
        box="where-and-what",
        measured=exchanged.mean(),
        successes=int(exchanged.sum()),
        trials=exchanged.size,
        expected=0.1,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative(
            "erf attention exchanges roles as rarely as softmax", runs[SOFT, "anywhere"].exchanged.mean()
        ),
    )
    return described(claim, runs, FLAT, SOFT)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the distance from starts anywhere, one column per head; below a break of the axis, from the manifold."""
    heads = list(dict.fromkeys(table["head"]))
    figure, panels = plt.subplots(2, len(heads), figsize=(9.0, 4.6), sharex="col", sharey="row", height_ratios=(4, 1))
    anywhere = table["start"] == "anywhere"
    for column, (head, colour) in enumerate(zip(heads, colours(heads), strict=True)):
        above, below = panels[:, column]
        for panel, mine in ((above, table[anywhere]), (below, table[~anywhere])):
            draw_band(panel, mine[mine["head"] == head], colour, "-")
            panel.set_yscale("log")
            panel.yaxis.set_minor_locator(NullLocator())
        above.set_title(head.replace("λ", "$\\lambda$"))
        above.spines["bottom"].set_visible(False)
        above.tick_params(bottom=False)
        below.set_xlabel("steps")
        below.xaxis.set_major_locator(MaxNLocator(2))
        for panel, edge in ((above, 0), (below, 1)):  # the break of the axis
            panel.plot(0, edge, transform=panel.transAxes, clip_on=False, **BREAK, color=ink())
    panels[0, 0].set(ylim=(table[anywhere]["low"].min() / 4, 2), ylabel="distance to the manifold")
    on_it = table[~anywhere]
    panels[1, 0].set(ylim=(on_it["low"].min() / 50, 50 * on_it["high"].max()))
    panels[1, 0].set_yticks([10.0 ** np.round(np.log10(on_it["median"].median()))])
    for panel, words in ((panels[0, 0], "from anywhere"), (panels[1, 0], "from the manifold")):
        panel.annotate(words, (0.05, 0.06), xycoords="axes fraction", fontsize=10)
    headline(figure, "Runs that start on the manifold stay on it; others may never reach it")
    return figure
