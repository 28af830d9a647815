r"""Distance to the manifold on which $\langle k,v^\star\rangle=\langle v,k^\star\rangle=\langle k,v\rangle=0$.

Across: steps of projected gradient descent. Up, on a logarithmic axis: the norm of the three cross overlaps, from
random starts anywhere on the spheres; medians over the starts, bands their central four fifths. Random starts on the
manifold stay on it, far below the picture. From anywhere, erf-attention whose $\lambda$ is small in the end mostly
comes closer to the manifold, but some of its runs end far away from it, where k and v have exchanged their roles. The
sharp erf and softmax end about as far from it as they began.

Alt: Four panels, one a head, with a logarithmic axis. With the flat erf and the falling schedule the curves fall at
last, while their bands open and reach one; with the sharp erf and with softmax they end near where they began. A line
of text says how far below the picture the starts on the manifold stay.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from chapters.single_location_training.descents import BAND, FLAT, SOFT, Runs, band
from chapters.single_location_training.marks import colours, draw_band
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import headline
from lib.single_location.training import manifold_distance


def numbers(runs: Runs) -> Numbers:
    """Distances to the manifold along training, from both kinds of start; who stays on it, and who ends off it."""
    return Numbers(_table(runs), (_invariance_claim(runs), _exchange_claim(runs)))


def _table(runs: Runs) -> Table:
    """Bands of the distance to the manifold, from both kinds of start."""
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
        "start": Column("Where the random starts are: `on the manifold` or `anywhere` on the spheres", "name"),
        "step": Column("Steps of projected gradient descent", "steps"),
        **BAND,
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _invariance_claim(runs: Runs) -> Claim:
    """The largest distance ever reached from a start on the manifold, at λ = 0.1."""
    inside = manifold_distance(runs[FLAT, "on the manifold"].overlaps)
    outside = manifold_distance(runs[FLAT, "anywhere"].overlaps)
    return Claim(
        id="single-location-training-manifold",
        statement=f"Descent that starts with zero cross overlaps keeps them ({FLAT}): the largest distance met.",
        source="[M24]",
        box="invariant-manifold",
        measured=float(inside.max()),
        expected=0.0,
        tolerance=1e-6,
        alternative=Alternative("the start had been anywhere", float(outside.max())),
    )


def _exchange_claim(runs: Runs) -> Claim:
    """The share of erf runs from anywhere that end with the roles of the two vectors exchanged."""
    return Claim(
        id="single-location-training-exchange",
        statement=(
            f"From random starts anywhere, some runs of erf-attention ({FLAT}) end with the roles exchanged, k along "
            "v* and v along k*: the share that does is above a tenth."
        ),
        source="heuristic",
        box="where-and-what",
        measured=runs[FLAT, "anywhere"].exchanged.mean(),
        expected=0.1,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("softmax did it as rarely", runs[SOFT, "anywhere"].exchanged.mean()),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a head: the distance of starts anywhere; of those on the manifold, that they stay below the picture."""
    heads = list(dict.fromkeys(table["head"]))
    figure, panels = plt.subplots(1, len(heads), figsize=(9.0, 3.6), sharey=True)
    least = table[table["start"] == "anywhere"]["low"].min()
    for panel, head, colour in zip(panels, heads, colours(heads), strict=True):
        mine = table[(table["head"] == head) & (table["start"] == "anywhere")]
        draw_band(panel, mine, colour, "-")
        panel.set(xlabel="steps", yscale="log", ylim=(least / 4, 2))
        panel.set_title(head.replace("λ", "$\\lambda$"))
        panel.xaxis.set_major_locator(MaxNLocator(2))
    panels[0].set_ylabel("distance to the manifold")
    on_it = table[table["start"] != "anywhere"]["high"].max()
    words = f"starts on the manifold stay on it: below $10^{{{np.ceil(np.log10(on_it)):.0f}}}$"
    figure.supxlabel(words, fontsize=11)
    headline(figure, "Who starts on the manifold stays; who starts elsewhere may never reach it")
    return figure
