r"""Heads of small spread can be replaced by their linear answer, at a price that adds up; by a map fitted elsewhere,
no.

Left: heads are replaced in the order of their spread, the least first; up, the mean cosine between a text's embedding
before and after, on stretches of 128 tokens. A replaced head gives the Gaussian answer of the prompt in hand, the
affine map that is the Gaussian answer of other stretches of the text, or the mean value. Dotted: the Gaussian answer
of the prompt, in the opposite order. Right: one head alone gives the Gaussian answer; 1 - cosine, over the same when
that head gives the mean value. Vertical lines: where the linear regime ends and where softmax freezes.

Alt: Two panels. Left, curves fall from one; the one for the prompt's own Gaussian answer falls slowest, the other two
lie close together below it, and a dotted one starts lower. Right, points below the line at one on the left, around it
on the right, on logarithmic axes.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.real_heads.regimes import FROZEN, LINEAR
from chapters.real_heads.replacement_results import Replacement
from chapters.real_heads.style import SIZE, TEXT, borders
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label
from lib.statistics import comparison_quantile

WORDS = {"own": "Gaussian answer of the prompt", "fitted": "map fitted elsewhere", "mean": "mean value"}


def numbers(found: Replacement) -> Numbers:
    """Cosines by order and answer; damage by head."""
    together = (_order_claim(found), _fitted_claim(found), _partners_claim(found))
    return Numbers(_table(found), (*together, _alone_claim(found), _relative_claim(found)))


def _table(found: Replacement) -> Table:
    """First heads together, then heads alone."""
    columns = {
        "kind": Column("Heads replaced `together` or `alone`", "name"),
        "order": Column("By τ̂/√(2 ln L), `ascending` or `descending`, or by layer, from the `first` or `last`", "name"),
        "answer": Column("What replaces them: `own`, `fitted` or `mean`", "name"),
        "count": Column("How many heads are replaced"),
        "ratio": Column("τ̂/√(2 ln L) of the head that is replaced alone; 0 for heads together"),
        "cosine": Column("Mean cosine between embeddings of stretches before and after"),
        "sentences": Column("The same of sentences; 0 where they were not embedded"),
        "partners": Column("Share of sentences whose nearest other one is their partner; 0 where not embedded"),
    }
    together = found.together.rename(columns={"stretches": "cosine"}).assign(kind="together", ratio=0.0)
    alone = found.alone.melt(["ratio"], ["own", "fitted", "mean"], "answer", "damage")
    alone = alone.assign(kind="alone", order="alone", count=1, cosine=1 - alone["damage"], sentences=0.0, partners=0.0)
    return Table(pd.concat([these[list(columns)] for these in (together, alone)], ignore_index=True), columns)


def _order_claim(found: Replacement) -> Claim:
    return Claim(
        id="real-heads-order",
        statement=(
            f"Spread tells which heads can go: 1 - cosine when the {found.linear} heads of the linear regime give the "
            "Gaussian answer of their prompt, over the same for as many heads from the other end."
        ),
        source="measured here",
        measured=found.order_ratio,
        expected=0.75,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("heads in the order of their layers", found.layer_ratio),
    )


def _fitted_claim(found: Replacement) -> Claim:
    return Claim(
        id="real-heads-fitted",
        statement=(
            "The linear map belongs to the prompt: of what its own moments restore of the cosine that answering with "
            "the mean value loses, the part that moments of other stretches restore, in the linear regime."
        ),
        source="measured here",
        measured=found.restored,
        expected=0.5,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("the prompt's own moments", found.restored_by_own),
    )


def _partners_claim(found: Replacement) -> Claim:
    return Claim(
        id="real-heads-partners",
        statement=(
            f"Of {found.sentences} sentences, pairs of one meaning, the share that still finds its partner as nearest "
            "neighbour when all heads of the linear regime give the Gaussian answer of their prompt."
        ),
        source="measured here",
        measured=found.partners,
        expected=found.partners_before,
        tolerance=1.5 / found.sentences,  # one sentence
        alternative=Alternative("all 72 heads giving the mean value", found.partners_of_means),
    )


def _alone_claim(found: Replacement) -> Claim:
    return Claim(
        id="real-heads-alone",
        statement=(
            "How much one head matters its spread does not say: the rank correlation with 1 - cosine when that head "
            "alone gives the Gaussian answer of its prompt, which is no more than chance would make of 72 heads."
        ),
        source="measured here",
        measured=found.alone_ranks,
        expected=0.0,
        # of n independent pairs a rank correlation has the standard error 1/√(n - 1)
        tolerance=comparison_quantile(1) / (len(found.alone) - 1) ** 0.5,
        alternative=Alternative(
            "1 - cosine over that with the mean value in place of the answer", found.relative_ranks
        ),
    )


def _relative_claim(found: Replacement) -> Claim:
    return Claim(
        id="real-heads-relative",
        statement=(
            "What a linear answer leaves of the damage is what is not explained: the rank correlation, over heads, of "
            "R² at 128 tokens with 1 - cosine over that with the mean value in place of the answer."
        ),
        source="measured here",
        measured=found.share_ranks,
        expected=-0.5,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("1 - cosine itself, not over that with the mean value", found.share_damage_ranks),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Curves of heads together, points of heads alone."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE, width_ratios=(1.4, 1.0))
    together = table[table["kind"] == "together"]
    for (answer, words), colour in zip(WORDS.items(), ("C0", "C2", "C3"), strict=True):
        curve = together[(together["order"] == "ascending") & (together["answer"] == answer)].sort_values("count")
        left.plot(curve["count"], curve["cosine"], color=colour, linewidth=2, label=words)
    other = together[(together["order"] == "descending") & (together["answer"] == "own")].sort_values("count")
    said = "Gaussian answer, widest spread first"
    left.plot(other["count"], other["cosine"], color=TEXT, linestyle=":", linewidth=2, label=said)
    left.set(xlim=(0, 72), ylim=(0, 1.02), xlabel="heads replaced", ylabel="cosine with the embedding before")
    left.legend(loc="lower left", fontsize=10, title="replaced by")
    alone = table[table["kind"] == "alone"].assign(damage=lambda rows: 1 - rows["cosine"])
    by_answer = alone.pivot_table(index="ratio", columns="answer", values="damage")
    right.plot(by_answer.index, by_answer["own"] / by_answer["mean"], "o", color=TEXT, markersize=5)
    right.axhline(1, color=ink(), linewidth=1.2)
    label(
        right,
        by_answer.index.max(),
        1,
        "no better than\nthe mean value",
        ink(),
        xytext=(4, -16),
        ha="right",
        fontsize=10,
    )
    borders(right)
    for border, says, side in ((LINEAR, "linear", "right"), (FROZEN, "freezes", "left")):
        place = {"xytext": (-4 if side == "right" else 4, 3), "ha": side, "fontsize": 10}
        right.annotate(says, (border, 1.0), xycoords=("data", "axes fraction"), textcoords="offset points", **place)
    right.set(xscale="log", yscale="log", xlabel=r"spread, $\hat\tau/\sqrt{2\,\ln L}$")
    right.set(ylabel="damage alone, over that of the mean value")
    right.set_xticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    right.set_yticks([0.03, 0.1, 0.3, 1, 3], ["0.03", "0.1", "0.3", "1", "3"])
    right.minorticks_off()
    headline(figure, "Heads of small spread can be given their linear answer, at a price that adds up")
    return figure
