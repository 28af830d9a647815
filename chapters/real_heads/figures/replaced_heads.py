r"""Heads of small spread can be replaced by their linear prediction, at a cost that adds up, but not by a map with the
moments of other text.

Left: mean cosine between the embeddings of 128 tokens before and after. A replaced head outputs the linear prediction
of Gaussian tokens with the moments of the prompt, an affine map with the moments of other text, or the mean value of
the prompt. Right: heads are replaced singly; the change is 1 - cosine.

Alt: Two panels. Left, curves fall from one; the one for the Gaussian prediction of the prompt falls slowest, the other
two are close together below it, and a dotted one is lower at first. Right, points mostly below the line at one on the
left, around it on the right, on logarithmic axes.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.real_heads.regimes import LINEAR
from chapters.real_heads.replacement_results import Replacement
from chapters.real_heads.style import TEXT, spread_axis
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, ticks_at
from lib.statistics import comparison_quantile

# Names of the replacements, and the points at which their curves are labelled: the number of heads and the offset.
NAMES = {"own": "linear prediction for the prompt", "fitted": "map fitted on other text", "mean": "mean value"}
PLACES = {"own": (30, (4, 8)), "fitted": (42, (-14, -24)), "mean": (72, (-8, -14))}


def numbers(replacement: Replacement) -> Numbers:
    """Return cosines by order and replacement, changes by head, and the claims on both."""
    columns = {
        "kind": Column("Heads replaced `together` or `alone`", "name"),
        "order": Column(
            "By $τ̂/√(2 ln L)$, `ascending` or `descending`; by layer, from the `first` or `last`; `alone` for one head",
            "name",
        ),
        "answer": Column(
            "Replacement: the `own` Gaussian prediction of the prompt, a `fitted` map, or the `mean` value", "name"
        ),
        "count": Column("Number of replaced heads"),
        "ratio": Column("$τ̂/√(2 ln L)$ of a head that is replaced alone; 0 for heads together"),
        "cosine": Column("Mean cosine between embeddings of stretches before and after"),
        "sentences": Column("Mean cosine between embeddings of sentences; 0 where they were not embedded"),
        "partners": Column(
            "Fraction of sentences whose nearest other sentence is their partner; 0 where they were not embedded"
        ),
    }
    together = replacement.together.rename(columns={"stretches": "cosine"}).assign(kind="together", ratio=0.0)
    alone = replacement.alone.melt(["ratio"], ["own", "fitted", "mean"], "answer", "damage")
    alone = alone.assign(kind="alone", order="alone", count=1, cosine=1 - alone["damage"], sentences=0.0, partners=0.0)
    return Numbers(Table.of([together[list(columns)], alone[list(columns)]], columns), _claims(replacement))


def _claims(replacement: Replacement) -> Claims:
    claim = Claims("real-heads", source="measured here")
    claim.at_most(
        "order",
        f"Replacing the {replacement.linear} heads of small spread by the Gaussian prediction changes the "
        "embedding less than replacing as many heads of the largest spread (measured: the ratio of "
        r"$1 - \mathrm{cosine}$).",
        replacement.order_ratio,
        0.75,
        because="a clear difference; at 1 the spread would not matter",
        rejects=("heads in the order of their layers", replacement.layer_ratio),
    )
    claim.at_most(
        "fitted",
        "At small spread, the affine map with the moments of other stretches restores only a small part of the "
        "cosine that the moments of the prompt restore over its mean value (measured: this part).",
        replacement.restored,
        0.5,
        because="half; if all prompts had the same moments, it would be 1",
        rejects=("the moments of the prompt", replacement.restored_by_own),
    )
    claim.equal(
        "partners",
        f"Of {replacement.sentences} sentences in pairs of one meaning, as many have their partner as nearest "
        "neighbour with all heads of small spread replaced by the Gaussian prediction as without replacement "
        "(measured: their fraction).",
        replacement.partners / replacement.sentences,
        replacement.partners_before / replacement.sentences,
        within=1.5 / replacement.sentences,
        because="one sentence",
        rejects=("all 72 heads replaced by the mean value", replacement.partners_of_means / replacement.sentences),
        count=(replacement.partners, replacement.sentences),
    )
    claim.equal(
        "alone",
        "The spread of a head does not show how much the head matters: the rank correlation over heads of the "
        r"spread with $1 - \mathrm{cosine}$, if one head alone is replaced by the Gaussian prediction, is as small "
        "as by chance.",
        replacement.alone_ranks,
        0,
        within=comparison_quantile(1) / (len(replacement.alone) - 1) ** 0.5,
        because="99.9 % quantile of one standard normal deviation, times $1/√(n - 1)$, the standard error of a rank "
        "correlation of $n$ independent pairs",
        rejects=(r"$1 - \mathrm{cosine}$ over its value for the mean value", replacement.relative_ranks),
    )
    claim.at_most(
        "relative",
        "The more linear a head is, the smaller is the change of the embedding by the Gaussian prediction relative "
        "to that by the mean value (measured: the rank correlation over heads of $R²$ at 128 tokens with the ratio "
        r"of $1 - \mathrm{cosine}$).",
        replacement.share_ranks,
        -0.5,
        because=r"a clear rank correlation; with $1 - \mathrm{cosine}$ itself it is weaker",
        rejects=(r"$1 - \mathrm{cosine}$ itself in place of the ratio", replacement.share_change_ranks),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw, on the left, curves of heads replaced together; on the right, points of heads replaced alone."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.5), width_ratios=(1.4, 1.0))
    together = table[table["kind"] == "together"].sort_values("count")
    for (replacement, name), colour in zip(NAMES.items(), ("C0", "C2", "C3"), strict=True):
        curve = together[(together["order"] == "ascending") & (together["answer"] == replacement)]
        left.plot(curve["count"], curve["cosine"], color=colour, linewidth=2)
        count, offset = PLACES[replacement]
        row = curve.iloc[(curve["count"] - count).abs().argmin()]
        side = "left" if offset[0] > 0 else "right"
        label(left, row["count"], row["cosine"], name, colour, xytext=offset, ha=side, fontsize=10)
    other = together[(together["order"] == "descending") & (together["answer"] == "own")]
    left.plot(other["count"], other["cosine"], color=TEXT, linestyle=":", linewidth=2)
    row = other.iloc[(other["count"] - 24).abs().argmin()]
    name = "the same,\nlargest\nspread first"
    label(left, row["count"], row["cosine"], name, TEXT, xytext=(-20, -18), ha="right", fontsize=10)
    left.set(xlim=(0, 72), ylim=(0, 1.02), ylabel="cosine with the embedding before")
    left.set_xlabel("replaced heads, smallest spread first")
    alone = table[table["kind"] == "alone"].assign(change=lambda rows: 1 - rows["cosine"])
    changes = alone.pivot_table(index="ratio", columns="answer", values="change")
    small = (changes.index < LINEAR).sum()
    left.axvline(small, ymax=0.78, color=ink(), linestyle=":", linewidth=1.2, alpha=0.7)
    label(left, small, 0.05, f"the {small} heads\nof small spread", ink(), ha="right", va="bottom", xytext=(-5, 0))
    right.plot(changes.index, changes["own"] / changes["mean"], "o", color=TEXT, markersize=5)
    right.axhline(1, color=ink(), linewidth=1.2)
    text = "no better than\nthe mean value"
    label(right, changes.index.max(), 1, text, ink(), xytext=(4, -16), ha="right", fontsize=10)
    spread_axis(right)
    right.set(yscale="log", xlabel=r"spread, $\hat\tau/\sqrt{2\,\ln L}$")
    right.set_ylabel("change by the linear prediction\nof one head, relative to the mean value")
    ticks_at(right.yaxis, [0.03, 0.1, 0.3, 1, 3])
    return figure
