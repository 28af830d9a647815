"""Colours, markers and lines that the figures of this chapter share."""

import pandas as pd
from matplotlib.axes import Axes

# As in the chapter on finite samples: the best estimator, and the two trained heads.
COLOURS = {"softmax": "C0", "linear": "C1", "Bayes-optimal": "C2"}
COLOUR = COLOURS["Bayes-optimal"]
START_MARKERS = {"uninformed": "o", "informed": "s"}


def draw_ends(axes: Axes, lines: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Draw both ends of the state evolution with the hard phase shaded; return their risks by sample ratio.

    The upper line, from an uninformed start, is broken where its branch ends, not drawn through the jump.
    """
    lines = lines.sort_values("alpha")
    upper, lower = (lines[lines["start"] == start].set_index("alpha")["risk"] for start in START_MARKERS)
    two, hard = lines.loc[lines["two"], "alpha"], lines.loc[lines["hard"], "alpha"].unique()
    axes.fill_between(hard, lower[hard], upper[hard], color=COLOUR, alpha=0.15, linewidth=0)
    branch = upper.index <= two.max()
    for piece in (upper[branch], upper[~branch]):
        axes.plot(piece.index, piece, color=COLOUR, linewidth=2)
    beyond = lower[lower.index >= two.min()]
    axes.plot(beyond.index, beyond, color=COLOUR, linewidth=2, linestyle="--")
    return upper, lower
