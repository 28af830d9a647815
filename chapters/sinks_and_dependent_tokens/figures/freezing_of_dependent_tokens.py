r"""Beyond freezing, dependent tokens slowly approach the limit of independent tokens.

Filled: participation $P=\mathbb{E}\sum_ip_i^2$; open: $P_R=\mathbb{E}\,p^\top Rp$, which gives the mean output of
dependent tokens; bars are two standard errors. Solid: the exact participation of independent tokens. Strongly dependent
tokens share the weight with their neighbours: $P$ is below the curve at every length shown, and $P_R$ above it.

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
from companion.figures.style import COLUMN, error_bars, ink, label
from lib.finite_prompt import participation
from lib.statistics import comparison_quantile, standard_error


def at_ratio(ratio: float, log_lengths: np.ndarray, tokens: float = 1.0) -> np.ndarray:
    """Return the participation of `tokens·L` independent tokens at `τ = ratio √(2 ln L)`."""
    return np.asarray(participation(ratio * np.sqrt(2 * log_lengths), log_lengths + np.log(tokens)))


def numbers(ratio: float, simulated: Sequence[FrozenPrompts]) -> Numbers:
    """Return simulated P and P_R, the exact curve of independent tokens, and the claim."""
    lengths = np.asarray([one.length for one in simulated])
    grid = np.linspace(np.log(lengths.min()), np.log(lengths.max()), 25)
    groups: list = [
        {"kind": "exact", "r": 0.0, "log_length": grid, "participation": at_ratio(ratio, grid)},
        {"kind": "limit", "r": 0.0, "log_length": grid[[0, -1]], "participation": 1 - 1 / ratio},
    ]
    for one in simulated:
        for kind, values in (("P", one.participation), ("P_R", one.weighed)):
            point = {"kind": kind, "r": one.r, "log_length": np.log(one.length)}
            groups.append(point | {"participation": values.mean(), "std_error": standard_error(values)})
    columns = {
        "kind": Column(
            "`exact`: $P$ of independent tokens; `limit`: $1 - 1/a$, for long prompts; `P`: participation of simulated "
            "prompts; `P_R`: $𝔼 pᵀRp$ of the same prompts",
            "name",
        ),
        "r": Column("Correlation of neighbours, $r_k = r^k$; 0 for independent tokens"),
        "log_length": Column("$ln L$"),
        "participation": Estimate("$P$, or $P_R$", std_error="std_error"),
    }
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
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the exact curve, and simulated P and P_R of each sequence."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    curve, limit = table[table["kind"] == "exact"], table[table["kind"] == "limit"]["participation"].iloc[0]
    axes.plot(curve["log_length"], curve["participation"], color=ink(), linewidth=2)
    axes.axhline(limit, color=ink(), linestyle="--", linewidth=1.5)
    for kind, look in (("P", {}), ("P_R", {"markerfacecolor": "none"})):
        simulated = table[table["kind"] == kind]
        for (_, rows), colour in zip(simulated.groupby("r"), ("C0", "C3"), strict=True):
            values = rows["participation"]
            error_bars(axes, rows["log_length"], values, rows["std_error"], color=colour, marker="o", **look)
    low, high = table["log_length"].min() - 0.2, table["log_length"].max() + 0.2
    axes.set(xlim=(low, high), ylim=(0, 0.8), xlabel=r"$\ln L$", ylabel="participation")
    weak, strong = sorted(simulated["r"].unique())
    label(axes, 6.3, limit, "limit of all, $1-1/a$", ink(), ha="center", va="top", xytext=(0, -3))
    label(axes, 6.2, 0.53, "$P_R$, which gives the output", "C3", xytext=(0, 8), va="bottom")
    label(axes, 6.2, 0.25, "$P$, shared among neighbours", "C3", xytext=(0, -8), va="top")
    label(axes, high, 0.66, f"correlation of neighbours $r={weak:g}$", "C0", ha="right", xytext=(-4, 0))
    label(axes, low, 0.1, f"correlation of neighbours $r={strong:g}$", "C3", xytext=(4, 0))
    label(axes, low, 0.39, "independent tokens", ink(), xytext=(8, 0))
    text = rf"queries $\tau=a\sqrt{{2\,\ln L}}$, $a={1 / (1 - limit):g}$"
    label(axes, high, 0.74, text, ink(), ha="right", xytext=(-4, 0))
    return figure
