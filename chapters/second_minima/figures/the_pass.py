r"""A low pass leads from the second minimum to the optimum.

The thick curves show the exact mean square along the lowest path found from the second minimum (left end) to the
optimum (right end), for linear attention and for softmax. The path consists of the two curves of steepest descent from
a saddle, the pass; the inset enlarges the neighbourhood of the pass. The thin curves follow the straight line between
the two minima. The dash-dotted lines show the best swapped head, also a saddle, from which descent leads to second
minima on both sides. Distance is Euclidean in the entries of $U$ and $v$, for linear attention with $\|U\|=\|v\|$.
Prompts have one length, and covariances are the corrected ones.

Alt: Two charts of mean square against the distance along a path. Each thick curve starts at the second minimum, rises
very little to a marked pass, and falls far to the optimum; a thin curve between the same ends rises much higher. A
dash-dotted line, the best swapped head, is far above the pass for linear attention and just below it for softmax.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from chapters.published_experiment.protocol import CLOSE
from chapters.published_experiment.style import COLOURS, MEAN_SQUARE
from chapters.second_minima.landscape import alignment, distance
from chapters.second_minima.parameters import SECOND_LENGTH
from chapters.second_minima.published_runs import CORRECTED
from chapters.second_minima.saddle_search import PASS, Ways
from chapters.second_minima.stationary_heads import OPTIMUM, SECOND, Landscapes
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

# Searches end at gradients of 1e-7, where curvatures are above 1e-3: smaller distances have no true digit.
RESOLUTION = 1e-4


def numbers(
    ways: Ways,
    at_passes: Mapping[str, Float[np.ndarray, " _"]],
    landscapes: Landscapes,
    curvatures: Mapping[tuple[str, str, str], float],
    searches: pd.DataFrame,
) -> Numbers:
    """Return the paths with levels of stationary heads; claim that the passes are saddles, low, and turned."""
    groups, claim = [], Claims("published-experiment", source="measured here")
    for activation, way in ways.items():
        names = {0: SECOND, way.top: PASS, len(way.along) - 1: OPTIMUM}
        place = [names.get(i, "between") for i in range(len(way.along))]
        path = {"place": place, "along": way.along, "square": way.squares, "straight": way.straight}
        groups.append({"activation": activation, "wrong_way": landscapes[activation, CORRECTED].swapped.square, **path})
        claim.at_most(
            f"pass-{activation}",
            f"For {activation} attention on {SECOND_LENGTH} tokens, under the corrected covariances, the lowest pass "
            f"that {(searches['activation'] == activation).sum()} searches found from the second minimum to the "
            "optimum is hardly higher than the second minimum (measured: the height of the pass above it, relative to "
            "its mean square).",
            way.height / way.squares[0] - 1,
            CLOSE,
            because="a rise of this size is within the distance at which a run counts as having reached a level",
            rejects=(
                "the pass is as high as the top of the straight line between the two",
                way.straight.max() / way.squares[0] - 1,
            ),
        )
        spectrum = at_passes[activation]
        claim.equal(
            f"pass-saddle-{activation}",
            f"From the pass of {activation} attention one direction leads down, on both sides: the least curvature is "
            f"{spectrum[0]:.2g} and the next {spectrum[1]:.2g} (measured: the number of negative curvatures).",
            np.sum(spectrum < 0),
            1,
            within=0,
            because="counts are exact",
            rejects=("none, as at the second minimum", curvatures[activation, CORRECTED, SECOND] < 0),
        )
    columns = {
        "activation": Column("Softmax or linear attention", "name"),
        "place": Column("Stationary head at this point of the path, or `between`", "name"),
        "along": Column("Distance along the path from the second minimum, in the entries of $U$ and $v$"),
        "square": Column(f"Exact mean square of the head, on prompts of {SECOND_LENGTH} tokens"),
        "straight": Column("Exact mean square at the same fraction of the straight line between the two minima"),
        "wrong_way": Column("Least mean square of swapped heads: scores depend on labels, values are covariates"),
    }
    _claim_both_passes(claim, ways, landscapes)
    return Numbers(Table.of(groups, columns), claim)


def _claim_both_passes(claim: Claims, ways: Ways, landscapes: Landscapes) -> None:
    """Claim where descent from the passes ends, and their directions and levels."""
    off, apart, level = [], [], {}
    for activation, way in ways.items():
        places = landscapes[activation, CORRECTED]
        for end, place in ((way.points[0], places.minimum_beyond), (way.points[-1], places.optimum)):
            off.append(distance(activation, end, place.point))
        apart.append(distance(activation, places.minimum_beyond.point, places.optimum.point))
        level[activation] = way.height / places.swapped.square
    claim.at_most(
        "pass-ends",
        "Steepest descent from the passes ends at the second minimum on one side and at the optimum on the other "
        "(measured: the largest distance from them, in the entries of $U$ and $v$; distances below 10⁻⁴ count as "
        "10⁻⁴).",
        max(*off, RESOLUTION),
        0,
        within=1e-3,
        because="searches end at gradients of 10⁻⁷, where curvatures are above 10⁻³, so that ends are 10⁻⁴ apart",
        rejects=("both sides end at the same minimum", min(apart)),
    )
    claim.at_least(
        "pass-turned",
        "At the passes the direction in which the head is swapped has turned from the first principal axis of the "
        "covariates towards the second (measured: the least cosine with the second).",
        min(alignment(way.points[way.top], axis=1) for way in ways.values()),
        0.5,
        because="a cosine of one half is a turn by a third of a right angle",
        rejects=(
            "it is the direction at the second minimum",
            min(alignment(way.points[0], axis=1) for way in ways.values()),
        ),
    )
    claim.at_most(
        "pass-below",
        "For linear attention the pass is below the best swapped head, which training passes on its path to the second "
        "minimum (measured: the ratio of mean squares).",
        level["linear"],
        1,
        because="the two levels are equal at a ratio of 1",
        rejects=("it is as high as in softmax attention", level["softmax"]),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel for each head, with an inset around its pass."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.6), sharey=True)
    for panel, activation in zip(panels, ("linear", "softmax"), strict=True):
        _way(panel, table[table["activation"] == activation], COLOURS[activation])
        panel.set(title=activation, xlabel="distance along the path")
    panels[0].set(ylabel=MEAN_SQUARE, ylim=(0.8 * table["square"].min(), 1.04 * table["straight"].max()))
    return figure


def _way(axes: Axes, path: pd.DataFrame, colour: str) -> None:
    """Draw the path, the straight line, the level of the best swapped head, and the names of stationary heads."""
    level, far = path["wrong_way"].iloc[0], path["along"].max()
    places = path[path["place"] != "between"]
    second, top, optimum = places.itertuples()
    points = {"color": colour, "linestyle": "", "marker": "o", "markersize": 6}
    axes.axhline(level, color=ink(), linestyle="-.", linewidth=1)
    label(axes, far, level, "best swapped head", ink(), xytext=(0, 10), ha="right", fontsize=10)
    axes.plot(path["along"], path["straight"], color=colour, linewidth=1)
    peak = path.loc[path["straight"].idxmax()]
    label(axes, peak["along"], peak["straight"], "straight line", colour, xytext=(0, 7), ha="center", fontsize=10)
    axes.plot(path["along"], path["square"], color=colour, linewidth=2.5)
    axes.plot(places["along"], places["square"], **points)
    axes.set_xlim(-0.04 * far, 1.04 * far)
    label(axes, optimum.along, optimum.square, optimum.place, colour, xytext=(0, -12), ha="right")

    rise = top.square - second.square
    near = path[path["along"] <= 1.25 * top.along]
    inset = axes.inset_axes((0.06, 0.1, 0.5, 0.38))
    inset.plot(near["along"], near["square"], color=colour, linewidth=2.5)
    inset.plot(places["along"].iloc[:2], places["square"].iloc[:2], **points)
    inset.set(xlim=(-0.08 * top.along, 1.25 * top.along), xticks=[], yticks=[])
    inset.set_ylim(second.square - 0.35 * rise, top.square + 0.5 * rise)
    label(inset, second.along, second.square, second.place, colour, xytext=(8, -5), fontsize=10)
    name = f"{top.place}, {rise / second.square:+.1%}"
    label(inset, top.along, top.square, name, colour, xytext=(0, 10), ha="center", fontsize=10)
    axes.indicate_inset_zoom(inset, edgecolor=ink())
