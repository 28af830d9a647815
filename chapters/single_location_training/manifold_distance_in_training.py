r"""Distance to the manifold on which $\langle k,v^\star\rangle=\langle v,k^\star\rangle=\langle k,v\rangle=0$.

Across: steps of projected gradient descent. Up, on a logarithmic axis: the norm of the three cross overlaps, from
random starts on the manifold (dashed) and anywhere on the spheres (solid); medians over the starts, bands their
central four fifths. Values below the spacing of floating-point numbers are drawn there. Starts on the manifold
stay on it. From anywhere, erf-attention whose $\lambda$ is small in the end mostly comes closer to the manifold,
but some of its runs end far away from it, where k and v have exchanged their roles. The sharp erf and softmax
end about as far from it as they began.

Alt: Four panels, one a head, with a logarithmic axis from ten to the minus seventeen to one. Solid curves start
far above rounding errors in all of them. With the flat erf and the falling schedule they fall at last, while their
bands open and reach one; with the sharp erf and with softmax they end near where they began. Dashed curves lie flat
at rounding errors in all panels.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.single_location_training.descents import BAND, FLAT, SOFT, Runs, band
from chapters.single_location_training.marks import colours, draw_band
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import legend_line
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
    """A panel a head: the distance from both kinds of start."""
    heads = list(dict.fromkeys(table["head"]))
    figure, panels = plt.subplots(1, len(heads), figsize=(9.0, 3.4), sharey=True)
    for panel, head, colour in zip(panels, heads, colours(heads), strict=True):
        mine = table[table["head"] == head]
        draw_band(panel, mine[mine["start"] == "anywhere"], colour, "-")
        draw_band(panel, mine[mine["start"] != "anywhere"], colour, "--")
        panel.set(xlabel="steps", yscale="log", ylim=(1e-17, 5))
        panel.set_title(head.replace("λ", "$\\lambda$"), fontsize="small")
        panel.tick_params(axis="x", labelrotation=30)
    panels[0].set_ylabel("distance to the manifold")
    handles = [legend_line(line, 1.5) for line in ("-", "--")]
    figure.legend(handles, ["starts anywhere", "starts on the manifold"], loc="outside upper center", ncols=2)
    return figure
