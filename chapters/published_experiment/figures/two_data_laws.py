r"""What the flaw in the published code changes.

Least plain mean squares against the length of the prompt, exact, and ridge regression, under two laws of the
data. Left: prompt and query of one covariance $C$, as in the theory. Right: as the published code draws them,
prompts of covariance $FCF^\top$ with $F$ the Cholesky factor of $C$, queries of covariance $I$.

Alt: Two log-log charts side by side of mean square against length, each with softmax highest, linear attention
below and ridge regression lowest. On the right the softmax and linear curves lie higher and fall later.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.published_experiment.optima import CURVE_COLUMNS, Optima, curves_frame
from chapters.published_experiment.ridge import BAYES_COLUMNS, Ridge, bayes_frame
from chapters.published_experiment.style import COLOURS, MEAN_SQUARE, SIZE, SYMBOLS, plain_ticks
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, label


def numbers(optima: Optima, bayes: Ridge, *, lengths: list[int]) -> Numbers:
    """The same curves under both laws; the published one is harder."""
    return Numbers(_table(curves_frame(optima, lengths), bayes_frame(bayes)), (_law_claim(optima),))


def _table(curves: pd.DataFrame, bayes: pd.DataFrame) -> Table:
    """The same curves under both laws."""
    columns = {
        "law": Column("Data law: corrected, or as the published code draws", "name"),
        **CURVE_COLUMNS,
        **BAYES_COLUMNS,
    }
    return Table(pd.concat([curves, bayes], ignore_index=True).reindex(columns=list(columns)), columns)


def _law_claim(optima: Optima) -> Claim:
    """Optima under the published law over those under the corrected one."""
    heads = [(activation, length) for law, activation, length in optima if law == "corrected"]
    ratios = [optima["as published", *head] / optima["corrected", *head] for head in heads]
    return Claim(
        id="published-experiment-flaw",
        statement=(
            "The law of the published code's prompts makes the task harder: at every length, for softmax and for "
            "linear attention, the least mean square is at least a tenth larger; the smallest ratio."
        ),
        source="measured here",
        measured=min(ratios),
        expected=1.1,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("the flaw changes nothing", 1.0),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a law: the two optima and ridge regression under their names."""
    figure, panels = plt.subplots(1, 2, figsize=SIZE, sharey=True)
    titles = {"corrected": "corrected: query like prompt", "as published": "as published: $C$ twice, query never"}
    names = {"softmax": "softmax", "linear": "linear", "bayes": "ridge (Bayes)"}
    for panel, (law, title) in zip(panels, titles.items(), strict=True):
        mine = table[table["law"] == law]
        for name, said in names.items():
            drawn = mine[mine[name].notna()]
            style = SYMBOLS["bayes"] if name == "bayes" else "-"
            panel.plot(drawn["length"], drawn[name], style, color=COLOURS[name], linewidth=2)
            if panel is panels[-1]:
                named = drawn.iloc[0 if name == "bayes" else -1]
                label(panel, named["length"], named[name], said, COLOURS[name], xytext=(8, 0))
        panel.set(xscale="log", yscale="log", xlabel="tokens in a prompt, $L$", title=title)
        plain_ticks(panel)
    panels[0].set_ylabel(MEAN_SQUARE)
    headline(figure, "The flaw in the published code raises every risk and keeps the order")
    return figure
