r"""Heads of small spread are less linear on the text mainly because of the distribution of its tokens.

The figure shows heads of small spread at the longest prompts; each line is a head, and the thick line is their mean.
Left: the explained share on Gaussian tokens, on tokens of the text drawn independently, on the prompts of the text, and
on these without their first position. Dependence of the tokens adds only the step from the second to the third. Right:
the gain of $R^2$ if the first position is left out, against the weight that the head gives to it.

Alt: Two panels. Left, lines over four steps: high for Gaussian tokens, clearly lower for independent tokens of the
text, about the same for prompts, a little higher without the first position. Right, points that rise with the weight on
the first position, most of them near zero.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.real_heads.regimes import LINEAR
from chapters.real_heads.share_steps import ShareSteps
from chapters.real_heads.style import GAUSSIAN, ROUNDING, TEXT
from chapters.real_heads.tracked_tables import HEAD_COLUMNS, by_head
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink
from lib.statistics import comparison_quantile

LADDER = {
    "gaussian": "Gaussian\ntokens",
    "independent": "independent tokens\nof the text",
    "text": "prompts\nof the text",
    "without_first": "without\nfirst position",
}


def numbers(steps: ShareSteps) -> Numbers:
    """Return the explained share step by step, and the claims on the distribution and on the first position."""
    columns = {
        **HEAD_COLUMNS,
        "ratio": Column("$τ̂/√(2 ln L)$ at $L = 512$", moves_with="text"),
        "gaussian": Column("$R²$ on Gaussian tokens with the same mean and covariance", absolute=ROUNDING),
        "independent": Column("$R²$ on tokens of the text drawn independently", absolute=ROUNDING),
        "text": Column("$R²$ on the prompts of the text", std_error="text_se"),
        "text_se": Column("Standard error of $R²$ on the prompts, over prompts", moves_with="text"),
        "without_first": Column("$R²$ without the token at the first position", moves_with="text"),
        "shuffled": Column("$R²$ on prompts with their words in random order", absolute=ROUNDING),
        "bare": Column("$R²$ on prompts without special tokens", absolute=ROUNDING),
        "first": Column("Mean weight on the first position", moves_with="text"),
        "first_bare": Column("Mean weight on the first position of prompts without special tokens", absolute=ROUNDING),
        "skewness": Column("Mean skewness of the scores", moves_with="text"),
        "tails": Column("Mean excess kurtosis of the scores", moves_with="text"),
    }
    claim = Claims("real-heads", source="measured here")
    part, gain, position = steps.independent, steps.gain, steps.position
    claim.at_least(
        "law",
        "Heads of small spread are less linear on the text than on Gaussian tokens, mostly because of the "
        "distribution of the tokens and not their dependence (measured: the part of the loss of $R²$ that occurs "
        "on tokens of the text drawn independently).",
        part.value,
        0.5,
        because="half of the loss; if dependence were the reason, it would be 0",
        rejects=("other Gaussian tokens in place of tokens of the text", part.alternative),
        std_error=part.std_error,
    )
    claim.at_least(
        "first-place",
        "The first position of a prompt accounts for a part of the loss (measured: the mean gain of $R²$ in "
        "heads of small spread if the token at this position is left out).",
        gain.value,
        comparison_quantile(1) * gain.std_error,
        because="without a gain, chance alone would exceed this value with a probability below 0.1 %",
        rejects=("the middle position is left out", gain.alternative),
        std_error=gain.std_error,
    )
    claim.at_least(
        "place-not-token",
        "The first position draws weight even without its special token (measured: the mean weight on the first "
        "position of prompts without special tokens, over that of prompts with them).",
        position.value,
        0.5,
        because="half of the weight; if the special token drew it, only the average weight of a position would be left",
        rejects=("an equal weight on all positions", position.alternative),
        std_error=position.std_error,
    )
    return Numbers(Table.of([by_head(**steps.arrays)], columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw R² step by step, and the gain of R² against the weight on the first position."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.5), width_ratios=(1.7, 1.0))
    linear = table[table["ratio"] < LINEAR]
    steps = np.arange(len(LADDER))
    left.plot(steps, linear[list(LADDER)].to_numpy().T, color=TEXT, linewidth=0.8, alpha=0.35)
    means = linear[list(LADDER)].mean()
    left.plot(steps, means, color=ink(), linewidth=2.5)
    left.plot(steps[:1], means.iloc[:1], "o", color=GAUSSIAN, markersize=8, zorder=3)
    left.plot(steps[1:], means.iloc[1:], "o", color=TEXT, markersize=8, zorder=3)
    left.annotate("thick: mean of the heads", (0.03, 0.05), xycoords="axes fraction")
    left.set_xticks(steps, list(LADDER.values()), fontsize=10)
    left.set(ylim=(0, 1.02), ylabel="explained share, $R^2$", title="heads of small spread, step by step")
    right.plot(linear["first"], linear["without_first"] - linear["text"], "o", color=TEXT, markersize=5)
    right.axhline(0, color=ink(), linestyle="--", linewidth=1.2)
    right.set(xlabel="weight on the first position", ylabel="gain of $R^2$ without it", title="first position")
    return figure
