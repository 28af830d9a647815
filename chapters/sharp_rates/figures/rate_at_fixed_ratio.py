r"""The faster a query grows with the prompt, the more slowly the error falls.

The vertical axis is the local exponent $-\,d\ln Q/d\ln L$ along $\tau=a\sqrt{2\ln L}$, the horizontal axis is the fixed
ratio $a$. Solid curves are exact, one per length; the dashed curve is the heuristic limit $r(a)$. Vertical lines mark
$a=1/\sqrt3$, beyond which rare large scores dominate the mean square, and $a=1$, beyond which the prompt is frozen and
a longer prompt does not reduce the error.

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
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, sequence
from lib.finite_prompt import LARGEST_TAU


@dataclass(frozen=True)
class LocalExponents:
    """Exponents `-d ln Q / d ln L` at one length, at each fixed ratio a within the guaranteed domain."""

    ratio: Float[np.ndarray, " n"]
    slope: Float[np.ndarray, " n"]


def solve_local_exponents(ratios: int, log_lengths: list[float]) -> dict[float, LocalExponents]:
    """Return, by ln L, the local exponents of Q along τ = a √(2 ln L) at fixed a; READ_AT is added to the lengths."""
    ratio = np.linspace(0.0, 1.2, ratios)
    exponents = {}
    for log_length in sorted({*log_lengths, READ_AT}):
        covered = ratio[ratio**2 * 2 * log_length <= LARGEST_TAU**2]
        values, slopes = statistics_along(2 * covered**2 * log_length, 2 * covered**2, log_length)
        exponents[log_length] = LocalExponents(covered, -slopes.score_error / values.score_error)
    return exponents


def ratio_exponent(ratio: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return `r(a)`: 1 - 2a² for a ≤ 1/√3, (1 - a²)²/(4a²) for 1/√3 ≤ a ≤ 1, and 0 for a ≥ 1 [heuristic]."""
    squared = np.maximum(ratio, 1e-12) ** 2
    rare_prompts = (1 - squared) ** 2 / (4 * squared)
    return np.where(squared <= 1 / 3, 1 - 2 * squared, np.where(squared <= 1, rare_prompts, 0.0))


def numbers(exponents: Mapping[float, LocalExponents]) -> Numbers:
    """Return local exponents and their limit, and the claim that they agree at ln L = READ_AT."""
    table = _table(exponents)
    return Numbers(table, (_ratio_claim(table.frame),))


def _table(exponents: Mapping[float, LocalExponents]) -> Table:
    """Return the table of exponents by length and ratio."""
    frames = [
        pd.DataFrame(
            {
                "log_length": log_length,
                "ratio": curve.ratio,
                "slope": curve.slope,
                "exponent": ratio_exponent(curve.ratio),
            }
        )
        for log_length, curve in exponents.items()
    ]
    columns = {
        "log_length": Column("$ln L$"),
        "ratio": Column("$a = τ/√(2 ln L)$, fixed while $L$ grows"),
        "slope": Column("Exact $-d ln Q/d ln L$ at fixed $a$", absolute=1e-9),
        "exponent": Column("$r(a)$, the limit of the slope by the heuristic"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _ratio_claim(frame: pd.DataFrame) -> Claim:
    """Claim that the local exponents at ln L = READ_AT are r(a).

    For a > 1 the error grows like ln L, so its exponent there is -1/ln L and not exactly 0.
    """
    read = frame[(frame["log_length"] == READ_AT) & (frame["ratio"] > 0)]
    annealed = 1 - 2 * read["ratio"] ** 2

    def worst(exponents) -> float:
        return float(np.max(np.abs(read["slope"] - exponents)))

    return Claim(
        id="sharp-rates-fixed-ratio",
        statement=(
            "For a query that grows with the prompt, $τ = a√(2 ln L)$, the error falls with exponent $r(a)$ (measured: "
            f"the largest distance of the local exponents at $ln L = {READ_AT:g}$, over {len(read)} ratios $a$ up to "
            f"{read['ratio'].max():.2g})."
        ),
        source="heuristic",
        box="fixed-ratio-exponent",
        measured=worst(read["exponent"]),
        expected=0.0,
        tolerance=2 / READ_AT,
        reason="$2/ln L$: factors that are powers of $ln L$ change the local exponent by multiples of $1/ln L$, up to "
        "two",
        relation="≤",
        alternative=Alternative("no freezing: the exponent is $1 - 2a²$ at every $a$", worst(annealed)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one exact curve per length, the limit, and the two ratios at which it bends."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
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
    return figure
