"""What tracked replacements of heads come to: which can go, and by what."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from chapters.real_heads import tracked_tables
from chapters.real_heads.head_replacement import LENGTH, SENTENCES
from chapters.real_heads.regimes import LINEAR


@dataclass(frozen=True)
class Replacement:
    """The tracked tables, and their numbers with the `linear` heads of that regime replaced.

    Of heads alone rank correlations: of spread with the damage that the prompt's Gaussian answer does, and with this
    relative to that of the mean value; of the explained share with this ratio, and with the damage.
    """

    together: pd.DataFrame
    alone: pd.DataFrame
    linear: int
    sentences: int
    order_ratio: float
    layer_ratio: float
    restored: float
    restored_by_own: float
    partners: float
    partners_before: float
    partners_of_means: float
    alone_ranks: float
    relative_ranks: float
    share_ranks: float
    share_damage_ranks: float


def read() -> Replacement:
    """Numbers of the tables that `data/make.py` made: too long for a page, whether weights are installed or not."""
    together, alone = tracked_tables.table("replaced"), tracked_tables.table("alone")
    linear = int(np.sum(alone["ratio"] < LINEAR))

    def at(order: str, answer: str, count: int, column: str = "stretches") -> float:
        rows = together[(together["order"] == order) & (together["answer"] == answer) & (together["count"] == count)]
        return float(rows[column].iloc[0])

    def damage(order: str) -> float:
        return 1 - at(order, "own", linear)

    lost = at("ascending", "mean", linear)

    def restored(answer: str) -> float:
        return (at("ascending", answer, linear) - lost) / (at("ascending", "own", linear) - lost)

    def ranks(one, other) -> float:
        return float(spearmanr(one, other).statistic)

    relative, share = alone["own"] / alone["mean"], tracked_tables.of_kind("text", LENGTH).share.ravel()
    return Replacement(
        together=together,
        alone=alone,
        linear=linear,
        sentences=len(SENTENCES.read_text(encoding="utf-8").splitlines()),
        order_ratio=damage("ascending") / damage("descending"),
        layer_ratio=damage("first") / damage("last"),
        restored=restored("fitted"),
        restored_by_own=restored("own"),
        partners=at("ascending", "own", linear, "partners"),
        partners_before=at("ascending", "own", 0, "partners"),
        partners_of_means=at("ascending", "mean", len(alone), "partners"),
        alone_ranks=ranks(alone["ratio"], alone["own"]),
        relative_ranks=ranks(alone["ratio"], relative),
        share_ranks=ranks(share, relative),
        share_damage_ranks=ranks(share, alone["own"]),
    )
