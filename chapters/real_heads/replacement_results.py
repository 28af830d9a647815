"""Results of the tracked runs with replaced heads."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from chapters.real_heads import tracked_tables
from chapters.real_heads.head_replacement import LENGTH, SENTENCES
from chapters.real_heads.regimes import LINEAR


@dataclass(frozen=True)
class Replacement:
    """The tracked tables, and numbers from them with all `linear` heads of the small-spread regime replaced.

    The change of an embedding is 1 - cosine. `order_ratio` and `layer_ratio` are ratios of the change between two
    orders of replacement, by spread and by layer. `restored` and `restored_by_own` are the parts of the difference
    between mean value and Gaussian prediction that the fitted maps and the Gaussian prediction restore. `partners`
    counts sentences whose nearest other sentence is their partner; `partners_before` without replacement, and
    `partners_of_means` with the mean value in all heads. The last four are rank correlations over heads that are
    replaced alone by the Gaussian prediction: of the spread with the change, and with its ratio to the change by the
    mean value; of the explained share with this ratio, and with the change.
    """

    together: pd.DataFrame
    alone: pd.DataFrame
    linear: int
    sentences: int
    order_ratio: float
    layer_ratio: float
    restored: float
    restored_by_own: float
    partners: int
    partners_before: int
    partners_of_means: int
    alone_ranks: float
    relative_ranks: float
    share_ranks: float
    share_change_ranks: float


def read_replacements() -> Replacement:
    """Return the results of the tables of `data/make.py`, which takes too long for a notebook."""
    together, alone = tracked_tables.table("replaced"), tracked_tables.table("alone")
    linear = int(np.sum(alone["ratio"] < LINEAR))

    sentences = len(SENTENCES.read_text(encoding="utf-8").splitlines())

    def value(order: str, replacement: str, count: int, column: str = "stretches") -> float:
        rows = together[together["order"] == order]
        rows = rows[(rows["answer"] == replacement) & (rows["count"] == count)]
        return float(rows[column].iloc[0])

    def change(order: str) -> float:
        return 1 - value(order, "own", linear)

    with_means = value("ascending", "mean", linear)

    def restored(replacement: str) -> float:
        return (value("ascending", replacement, linear) - with_means) / (value("ascending", "own", linear) - with_means)

    def partners(replacement: str, count: int) -> int:
        return round(sentences * value("ascending", replacement, count, "partners"))

    def ranks(first, second) -> float:
        return float(spearmanr(first, second).statistic)

    relative, share = alone["own"] / alone["mean"], tracked_tables.head_statistics("text", LENGTH).share.ravel()
    return Replacement(
        together=together,
        alone=alone,
        linear=linear,
        sentences=sentences,
        order_ratio=change("ascending") / change("descending"),
        layer_ratio=change("first") / change("last"),
        restored=restored("fitted"),
        restored_by_own=restored("own"),
        partners=partners("own", linear),
        partners_before=partners("own", 0),
        partners_of_means=partners("mean", len(alone)),
        alone_ranks=ranks(alone["ratio"], alone["own"]),
        relative_ranks=ranks(alone["ratio"], relative),
        share_ranks=ranks(share, relative),
        share_change_ranks=ranks(share, alone["own"]),
    )
