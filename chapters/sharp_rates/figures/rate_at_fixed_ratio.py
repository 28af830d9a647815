r"""The exponent of the error when the query grows with the prompt.

Local exponent $-\,d\ln Q/d\ln L$ along $\tau=a\sqrt{2\ln L}$, against the fixed ratio $a$. Lines: exact, from
short to astronomically long prompts. Dashed: the heuristic limit $r(a)$. Vertical lines: $a=1/\sqrt3$, where rare
large scores take over the mean square, and $a=1$, where the prompt freezes and length stops helping.

Alt: Line chart of an exponent against a. A dashed curve falls from one, bends at 0.58, and reaches zero at one,
where it stays. Exact curves approach it as the length grows; the longest is indistinguishable from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.sharp_rates.parameters import READ_AT
from chapters.sharp_rates.query_averages import statistics_along
from chapters.sharp_rates.style import SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, sequence
from lib.finite_prompt import LARGEST_TAU


@dataclass(frozen=True)
class LocalExponents:
    """Of one length: `-d ln Q / d ln L` at each fixed ratio a, as far as the guaranteed domain goes."""

    ratio: Float[np.ndarray, " n"]
    slope: Float[np.ndarray, " n"]


def local_exponents(ratios: int, log_lengths: list[float]) -> dict[float, LocalExponents]:
    """By ln L: local exponent of Q along τ = a √(2 ln L), at fixed a; READ_AT is added to the lengths."""
    ratio = np.linspace(0.0, 1.2, ratios)
    exponents = {}
    for log_length in sorted({*log_lengths, READ_AT}):
        here = ratio[ratio**2 * 2 * log_length <= LARGEST_TAU**2]
        values, slopes = statistics_along(2 * here**2 * log_length, 2 * here**2, log_length)
        exponents[log_length] = LocalExponents(here, -slopes.score_error / values.score_error)
    return exponents


def ratio_exponent(ratio: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """`r(a)`: 1 - 2a² up to a = 1/√3, then (1 - a²)²/(4a²) up to a = 1, then 0 [heuristic]."""
    squared = np.maximum(ratio, 1e-12) ** 2
    frozen_soon = (1 - squared) ** 2 / (4 * squared)
    return np.where(squared <= 1 / 3, 1 - 2 * squared, np.where(squared <= 1, frozen_soon, 0.0))


def numbers(exponents: Mapping[float, LocalExponents]) -> Numbers:
    """Local exponents beside their limit; at the length where exponents are read the two agree."""
    table = _table(exponents)
    return Numbers(table, (_ratio_claim(table.frame),))


def _table(exponents: Mapping[float, LocalExponents]) -> Table:
    """Exponents at fixed ratio."""
    frames = [
        pd.DataFrame(
            {
                "log_length": log_length,
                "ratio": these.ratio,
                "slope": these.slope,
                "exponent": ratio_exponent(these.ratio),
            }
        )
        for log_length, these in exponents.items()
    ]
    columns = {
        "log_length": Column("ln L"),
        "ratio": Column("a = τ/√(2 ln L), held fixed while L grows"),
        "slope": Column("-d ln Q / d ln L along fixed a, exact", absolute=1e-9),
        "exponent": Column("r(a), its limit by the heuristic"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _ratio_claim(frame: pd.DataFrame) -> Claim:
    """Local exponents at ln L = READ_AT against r(a); beyond freezing the error grows like ln L, a slope of -1/ln L."""
    read = frame[(frame["log_length"] == READ_AT) & (frame["ratio"] > 0)]
    annealed = 1 - 2 * read["ratio"] ** 2

    def worst(exponents) -> float:
        return float(np.max(np.abs(read["slope"] - exponents)))

    return Claim(
        id="sharp-rates-fixed-ratio",
        statement=(
            f"At a query that grows with the prompt, τ = a√(2 ln L), the error falls with exponent r(a): the largest "
            f"distance of the local exponents at ln L = {READ_AT:g}, over {len(read)} ratios a up to "
            f"{read['ratio'].max():.2g}."
        ),
        source="heuristic",
        box="fixed-ratio-exponent",
        measured=worst(read["exponent"]),
        expected=0.0,
        # powers of ln L stand before the powers of L: their local exponent is a multiple of 1/ln L, here up to two
        tolerance=2 / READ_AT,
        relation="≤",
        alternative=Alternative("no freezing: the exponent 1 - 2a² at every a", worst(annealed)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """An exact curve a length, the limit, and the two ratios at which it bends."""
    figure, axes = plt.subplots(figsize=SIZE)
    lengths = sorted(table["log_length"].unique().tolist())
    for log_length, colour in zip(lengths, sequence(len(lengths)), strict=True):
        curve = table[table["log_length"] == log_length]
        axes.plot(curve["ratio"], curve["slope"], color=colour, linewidth=2, label=rf"exact, $\ln L={log_length:g}$")
    limit = table.drop_duplicates("ratio").sort_values("ratio")
    axes.plot(limit["ratio"], limit["exponent"], color=ink(), linestyle="--", linewidth=1.5, label="$r(a)$, heuristic")
    for ratio, label in ((1 / np.sqrt(3), r"$a=1/\sqrt{3}$"), (1.0, "$a=1$")):
        axes.axvline(ratio, color=ink(), linewidth=0.8, linestyle=":")
        axes.annotate(label, (ratio, 1.02), xytext=(4, 0), textcoords="offset points", va="top", color=ink())
    axes.set(xlim=(0, table["ratio"].max()), ylim=(min(-0.12, table["slope"].min()), 1.05))
    axes.set(xlabel=r"$a=\tau/\sqrt{2\,\ln L}$", ylabel="exponent of the error")
    axes.legend(loc="lower left")
    headline(figure, "The faster the query grows, the slower the error falls")
    return figure
