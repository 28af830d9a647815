r"""Why heads of small spread are not more linear: the law of their tokens, and the first place of the prompt.

Heads of the linear regime at the longest prompts; a line is a head, the thick line their mean. Left: the explained
share on Gaussian tokens, on tokens of the text drawn independently of one another, on the prompts of the text, and on
these without their first place. Right: what leaving out the first place adds, against the weight that the head puts
on it.

Alt: Two panels. Left, lines over four steps: high for Gaussian tokens, clearly lower for independent tokens of the
text, about the same for prompts, a little higher without the first place. Right, points that rise with the weight on
the first place, most of them near zero.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

from chapters.real_heads.regimes import LINEAR
from chapters.real_heads.statistics import Control, Heads, HeadStatistics, Measured, bootstrap
from chapters.real_heads.style import GAUSSIAN, ROUNDING, SIZE, TEXT
from chapters.real_heads.tracked_tables import names_of_heads
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink
from lib.statistics import comparison_quantile

LADDER = {
    "gaussian": "Gaussian\ntokens",
    "independent": "tokens of the\ntext, one by one",
    "text": "prompts\nof the text",
    "without_first": "without\nfirst place",
}


@dataclass(frozen=True)
class Steps:
    """Where the explained share of heads in the linear regime is lost.

    `kept` is the part of the way from Gaussian tokens to prompts that independent tokens of the text go too, `other`
    where Gaussian tokens drawn once more take their place. `gain` is what R² gains when the first place is left out,
    `other` the place in the middle. `place` is the weight on the first place without special tokens over that with
    them, `other` the same if it went to all places alike. `arrays` is what there is of every head, by name.
    """

    arrays: Mapping[str, Heads]
    kept: Measured
    gain: Measured
    place: Measured


def follow_steps(
    heads: HeadStatistics,
    shuffled: HeadStatistics,
    bare: HeadStatistics,
    *,
    gaussian: Control,
    again: Control,
    independent: Control,
    key: PRNGKeyArray,
) -> Steps:
    """From Gaussian tokens to prompts of the text, and what the first place has to do with it."""
    linear = heads.ratio < LINEAR

    def mean(share: Heads) -> float:
        return float(np.mean(share[linear]))

    def kept(step: Heads):
        top = mean(gaussian.share)
        return lambda these: (top - mean(step)) / (top - mean(these.share))

    def gain(these: HeadStatistics) -> float:
        return mean(these.share_without_first - these.share)

    def place(these: HeadStatistics, without: HeadStatistics) -> float:
        return float(without.mean("first").mean() / these.mean("first").mean())

    arrays = {
        "ratio": heads.ratio,
        "gaussian": gaussian.share,
        "independent": independent.share,
        "text": heads.share,
        "text_se": bootstrap(lambda these: these.share, heads, key=key),
        "without_first": heads.share_without_first,
        "shuffled": shuffled.share,
        "bare": bare.share,
        "first": heads.mean("first"),
        "first_bare": bare.mean("first"),
        "skewness": heads.mean("skewness"),
        "tails": heads.mean("tails"),
    }
    return Steps(
        arrays=arrays,
        kept=Measured(
            kept(independent.share)(heads),
            float(bootstrap(kept(independent.share), heads, key=key)),
            kept(again.share)(heads),
        ),
        gain=Measured(
            gain(heads), float(bootstrap(gain, heads, key=key)), mean(heads.share_without_another - heads.share)
        ),
        place=Measured(
            place(heads, bare),
            float(bootstrap(place, heads, bare, key=key)),
            float(1 / (heads.length * heads.mean("first").mean())),
        ),
    )


def numbers(steps: Steps) -> Numbers:
    """The explained share step by step; three sentences about where it goes."""
    claims = (_law_claim(steps.kept), _gain_claim(steps.gain), _place_claim(steps.place))
    return Numbers(_table(steps), claims)


def _table(steps: Steps) -> Table:
    """A row a head."""
    arrays = {name: array.ravel() for name, array in steps.arrays.items()}
    columns = {
        "layer": Column("Layer, from 0"),
        "head": Column("Head of the layer, from 0"),
        "ratio": Column("τ̂/√(2 ln L) at L = 512", moves_with="text"),
        "gaussian": Column("R² on Gaussian tokens of the same mean and covariance", absolute=ROUNDING),
        "independent": Column("R² on tokens of the text drawn independently", absolute=ROUNDING),
        "text": Column("R² on the prompts of the text", std_error="text_se"),
        "text_se": Column("Its standard error over prompts", moves_with="text"),
        "without_first": Column("R² with the first place left out of what is attended to", moves_with="text"),
        "shuffled": Column("R² on prompts with their words in random order", absolute=ROUNDING),
        "bare": Column("R² on prompts without special tokens", absolute=ROUNDING),
        "first": Column("Mean weight on the first place", moves_with="text"),
        "first_bare": Column("The same on prompts without special tokens", absolute=ROUNDING),
        "skewness": Column("Mean skewness of the scores", moves_with="text"),
        "tails": Column("Mean excess kurtosis of the scores", moves_with="text"),
    }
    return Table(pd.DataFrame({**names_of_heads(), **arrays})[list(columns)], columns)


def _law_claim(kept: Measured) -> Claim:
    return Claim(
        id="real-heads-law",
        statement=(
            "What heads of the linear regime lose against Gaussian tokens is lost to the law of the tokens, not to "
            "their dependence: the part of the loss that is there when tokens of the text are drawn independently."
        ),
        source="measured here",
        measured=kept.value,
        expected=0.5,
        tolerance=0.0,
        std_error=kept.std_error,
        relation="≥",
        alternative=Alternative("Gaussian tokens drawn once more, in place of the text's", kept.other),
    )


def _gain_claim(gain: Measured) -> Claim:
    return Claim(
        id="real-heads-first-place",
        statement=(
            "The first place of a prompt takes a part of it: what R² of heads in the linear regime gains, in the "
            "mean, when that place is left out of what they attend to."
        ),
        source="measured here",
        measured=gain.value,
        # what no gain reaches by chance, as prompts go
        expected=comparison_quantile(1) * gain.std_error,
        tolerance=0.0,
        std_error=gain.std_error,
        relation="≥",
        alternative=Alternative("the place in the middle is left out", gain.other),
    )


def _place_claim(place: Measured) -> Claim:
    return Claim(
        id="real-heads-place-not-token",
        statement=(
            "It is the place that draws weight, not the special token: mean weight on the first place of prompts "
            "without special tokens, over the same with them."
        ),
        source="measured here",
        measured=place.value,
        expected=0.5,
        tolerance=0.0,
        std_error=place.std_error,
        relation="≥",
        alternative=Alternative("a first place that gets what places get on average", place.other),
    )


def draw(table: pd.DataFrame) -> Figure:
    """The ladder, and the gain against the weight on the first place."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE, width_ratios=(1.7, 1.0))
    linear = table[table["ratio"] < LINEAR]
    steps = np.arange(len(LADDER))
    for _, head in linear.iterrows():
        left.plot(steps, [head[name] for name in LADDER], color=TEXT, linewidth=0.8, alpha=0.35)
    means = linear[list(LADDER)].mean()
    left.plot(steps, means, color=ink(), linewidth=2.5)
    left.plot(steps[:1], means.iloc[:1], "o", color=GAUSSIAN, markersize=8, zorder=3)
    left.plot(steps[1:], means.iloc[1:], "o", color=TEXT, markersize=8, zorder=3)
    left.annotate("thick: mean of the heads", (0.03, 0.05), xycoords="axes fraction")
    left.set_xticks(steps, list(LADDER.values()), fontsize=10)
    left.set(ylim=(0, 1.02), ylabel="explained share, $R^2$", title="linear regime, step by step")
    right.plot(linear["first"], linear["without_first"] - linear["text"], "o", color=TEXT, markersize=5)
    right.axhline(0, color=ink(), linestyle="--", linewidth=1.2)
    right.set(xlabel="weight on the first place", ylabel="gain of $R^2$ without it", title="the sink")
    headline(figure, "It is the law of the tokens that costs linearity, more than their dependence")
    return figure
