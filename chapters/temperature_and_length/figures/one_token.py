r"""Scores times $\ln L$ find a token far enough above bounded hay in ever longer prompts, and above normal hay do not.

Mean weight of one token, the needle, of a score so many standard deviations above the mean of all the others, the hay,
against the length of the prompt, under three scalings of all scores. Left: hay scores uniform on an interval, with the
needle above their upper end by a margin above $\ln L_0$, where $L_0$ is the length at which the curves cross. Right:
normal hay scores of the same standard deviation. Vertical line: the length at which a largest normal score is about
the needle's. All curves are exact.

Alt: Two panels of a weight against the logarithm of the length. Left, two curves fall from near one to zero, one after
the other, and the third rises to one. Right, all three fall to zero, around the same vertical line.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.temperature_and_length.relevant_token import Weights
from chapters.temperature_and_length.style import COLOURS, LABELS, LOGARITHM, NORMAL, ROOT, SIZE, UNIFORM
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label


def numbers(weights: Sequence[Weights], height: float) -> Numbers:
    """Weights by law of the hay and scaling; what ln L does above bounded hay, and above normal hay."""
    table = _table(weights, height)
    return Numbers(table, (_bounded_claim(table.frame), _normal_claim(table.frame)))


def _table(weights: Sequence[Weights], height: float) -> Table:
    frames = [
        pd.DataFrame(
            {
                "law": one.law,
                "scaling": one.scaling,
                "log_length": one.log_lengths,
                "weight": one.weight,
                # √(2 ln L), about the largest of L normal scores, is the needle's here
                "outgrown": 0.5 * height**2,
            }
        )
        for one in weights
    ]
    columns = {
        "law": Column("Law of the scores of all other tokens", "name"),
        "scaling": Column("What all scores are multiplied by, up to a constant", "name"),
        "log_length": Column("ln L"),
        "weight": Column("Mean softmax weight of the needle", absolute=1e-9),
        "outgrown": Column("ln L at which √(2 ln L) standard deviations are the needle's score"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _last(frame: pd.DataFrame, law: str, scaling: str) -> tuple[float, float]:
    """The longest prompt, as ln L, and the needle's weight in it."""
    row = frame[(frame["law"] == law) & (frame["scaling"] == scaling)].iloc[-1]
    return float(row["log_length"]), float(row["weight"])


def _bounded_claim(frame: pd.DataFrame) -> Claim:
    log_length, weight = _last(frame, UNIFORM, LOGARITHM)
    return Claim(
        id="temperature-needle-bounded",
        statement=(
            f"With scores times ln L a needle above bounded hay takes all the weight: its mean weight at ln L = "
            f"{log_length:g}."
        ),
        source="derived here",
        box="bounded-needle",
        measured=weight,
        expected=0.99,  # the limit is 1
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("scores times √(ln L)", _last(frame, UNIFORM, ROOT)[1]),
    )


def _normal_claim(frame: pd.DataFrame) -> Claim:
    log_length, weight = _last(frame, NORMAL, LOGARITHM)
    return Claim(
        id="temperature-needle-normal",
        statement=(
            f"A needle of fixed score is lost in normal hay even with scores times ln L: its mean weight at ln L = "
            f"{log_length:g}."
        ),
        source="derived here",
        box="normal-needle",
        measured=weight,
        expected=0.01,  # the limit is 0
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("bounded hay of the same standard deviation", _last(frame, UNIFORM, LOGARITHM)[1]),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a law of hay, a curve a scaling."""
    figure, panels = plt.subplots(1, 2, figsize=SIZE, sharey=True, sharex=True)
    for panel, (law, title) in zip(panels, {UNIFORM: "in bounded hay", NORMAL: "in normal hay"}.items(), strict=True):
        mine = table[table["law"] == law]
        for scaling, colour in COLOURS.items():
            curve = mine[mine["scaling"] == scaling]
            panel.plot(curve["log_length"], curve["weight"], color=colour, linewidth=2, label=LABELS[scaling])
        if law == NORMAL:
            outgrown = mine["outgrown"].iloc[0]
            panel.axvline(outgrown, color=ink(), linewidth=1, linestyle=":")
            label(panel, outgrown, 0.9, "hay reaches\nthe needle", ink(), xytext=(8, 0))
        panel.set(title=title, xscale="log", xlabel=r"$\ln\,L$", ylim=(-0.03, 1.03))
        panel.set_xticks([3, 10, 30, 100], labels=["3", "10", "30", "100"])
        panel.minorticks_off()
    panels[0].set_ylabel("mean weight of the needle")
    panels[1].legend(loc="center right", fontsize=10, handlelength=1.2)
    headline(figure, "Scaling by ln L finds a token above bounded hay, not above normal hay")
    return figure
