r"""Prompts of dependent tokens freeze at the same query size, and approach the limit slowly.

Queries of size $\tau=a\sqrt{2\ln L}$ beyond freezing, $a>1$; the horizontal axis is the length of the prompt. Filled
points are participation $P=\mathbb{E}\sum_ip_i^2$, open points $P_R=\mathbb{E}\,p^\top Rp$, which gives the mean output
of dependent tokens. Both have the limit $1-1/a$ (dashed) of independent tokens, whose exact participation is the solid
curve. Strongly dependent tokens share the weight with their neighbours: $P$ is below the curve at every length shown,
and $P_R$ above it.

Alt: Chart against the logarithm of length. A solid curve of independent tokens falls towards a dashed line. Filled
points of weak dependence are on the curve, those of strong dependence below it; open points of strong dependence are
above the curve.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.sinks_and_dependent_tokens.sequences import FrozenPrompts
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, error_bars, ink, label, legend_line, legend_point, legend_with
from lib.finite_prompt import participation
from lib.statistics import comparison_quantile, standard_error


def at_ratio(ratio: float, log_lengths: np.ndarray, tokens: float = 1.0) -> np.ndarray:
    """Return the participation of `tokens·L` independent tokens at `τ = ratio √(2 ln L)`."""
    return np.asarray(participation(ratio * np.sqrt(2 * log_lengths), log_lengths + np.log(tokens)))


def numbers(ratio: float, simulated: Sequence[FrozenPrompts]) -> Numbers:
    """Return simulated P and P_R, the exact curve of independent tokens, and the claim."""
    lengths = np.asarray([one.length for one in simulated])
    grid = np.linspace(np.log(lengths.min()), np.log(lengths.max()), 25)
    groups: list = [{"r": 0.0, "log_length": grid, "independent": at_ratio(ratio, grid), "limit": 1 - 1 / ratio}]
    for one in simulated:
        groups.append(
            {
                "r": one.r,
                "log_length": np.log(one.length),
                "limit": 1 - 1 / ratio,
                "drawn": one.participation.mean(),
                "drawn_std_error": float(standard_error(one.participation)),
                "weighed": one.weighed.mean(),
                "weighed_std_error": float(standard_error(one.weighed)),
            }
        )
    columns = {
        "r": Column("Correlation of neighbours, $r_k = r^k$; 0 is the exact curve of independent tokens"),
        "log_length": Column("$ln L$"),
        "independent": Column("Exact participation of independent tokens"),
        "limit": Column("$1 - 1/a$, the limit for long prompts"),
        "drawn": Estimate("Participation $P$ of simulated prompts"),
        "weighed": Estimate("$P_R = 𝔼 pᵀRp$ of simulated prompts"),
    }
    return Numbers(Table.of(groups, columns), _claims(ratio, simulated))


def _claims(ratio: float, simulated: Sequence[FrozenPrompts]) -> Claims:
    claim = Claims("sinks", source="measured here")
    strongest = [one for one in simulated if one.r == max(each.r for each in simulated)]
    r, log_lengths = strongest[0].r, np.log([one.length for one in strongest])
    drawn = np.asarray([one.participation.mean() for one in strongest])
    error = np.asarray([float(standard_error(one.participation)) for one in strongest])
    exact = at_ratio(ratio, log_lengths)
    fewer = at_ratio(ratio, log_lengths, (1 - r) / (1 + r))
    claim.at_least(
        "dependent-participation",
        f"Beyond freezing, tokens with $r_k = {r:g}^k$ share the weight with their neighbours: participation is below "
        f"that of as many independent tokens (smallest difference at {len(drawn)} lengths, in standard errors).",
        np.min((exact - drawn) / error),
        comparison_quantile(len(drawn)),
        because="larger than the differences that independent tokens have by chance, at 99.9 % confidence",
        comparisons=len(drawn),
        rejects=(
            "L dependent tokens freeze as the L/Σr_k independent ones that they are worth for small queries",
            np.min((exact - fewer) / error),
        ),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the exact curve, and simulated P and P_R of each sequence."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    curve = table[table["independent"].notna()]
    axes.plot(curve["log_length"], curve["independent"], color=ink(), linewidth=2)
    limit = table["limit"].iloc[0]
    axes.axhline(limit, color=ink(), linestyle="--", linewidth=1.5)
    drawn = table[table["drawn"].notna()]
    for r, colour in zip(sorted(drawn["r"].unique().tolist()), ("C0", "C3"), strict=True):
        rows = drawn[drawn["r"] == r]
        error_bars(axes, rows["log_length"], rows["drawn"], rows["drawn_std_error"], color=colour, marker="o")
        look = {"color": colour, "marker": "o", "markerfacecolor": "none"}
        error_bars(axes, rows["log_length"], rows["weighed"], rows["weighed_std_error"], **look)
        first = rows.iloc[0]
        for column, up in (("drawn", -12), ("weighed", 12)):
            label(axes, first["log_length"], first[column], f"$r={r:g}$", colour, xytext=(0, up), ha="center")
    lines = {"$P$, independent tokens": legend_line("-"), "limit $1-1/a$": legend_line("--", 1.5)}
    lines |= {"$P$": legend_point(), "$P_R$": legend_point()}
    lines["$P_R$"].set_markerfacecolor("none")
    legend_with(axes, lines, loc="upper right", ncols=2)
    low, high = table["log_length"].min() - 0.6, table["log_length"].max() + 0.4
    axes.set(xlim=(low, high), ylim=(0, 0.8), xlabel=r"$\ln L$", ylabel="participation")
    return figure
