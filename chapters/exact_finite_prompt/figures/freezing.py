r"""Larger queries put the weight on fewer tokens, gradually at every practical length and sharply only in the limit.

The vertical axis is participation $P=\mathbb{E}\sum_ip_i^2$, the horizontal axis is $a=\tau/\sqrt{2\ln L}$. Solid
curves are exact, one per length, within the tested domain of the quadrature. The dashed curve is the limit $(1-1/a)_+$
at fixed $a$. For $a<1$ more tokens share the weight as $L$ grows; for $a>1$ a few tokens carry it at every length. The
corner at $a=1$ is the freezing of the random-energy model; at finite $L$ it is rounded.

Alt: Line chart of participation against a. From short to long prompts the curves approach a dashed curve from above
that is zero up to a equal to one and then rises to one half at a equal to two.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.exact_finite_prompt.participation_by_ratio import Curve, Frozen, frozen_participation
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, sequence


def numbers(curves: Mapping[float, Curve], longest: Frozen) -> Numbers:
    """Return participation and its limit, and the claim that they agree beyond freezing at the longest length."""
    groups = []
    for log_length, curve in curves.items():
        limits = {"participation": curve.participation, "limit": frozen_participation(curve.ratio)}
        groups.append({"log_length": log_length, "ratio": curve.ratio, **limits})
    columns = {
        "log_length": Column("$ln L$"),
        "ratio": Column("$a = τ/√(2 ln L)$, the size of the query in units of the largest score"),
        "participation": Column("Exact participation $P = 𝔼 Σp²$"),
        "limit": Column("$(1 - 1/a)₊$, the limit of $P$ for $L → ∞$ at fixed a"),
    }
    log_length, ratio = longest.log_length, longest.ratio
    claim = Claims("exact-finite-prompt", source="derived here", box="frozen-participation")
    claim.equal(
        "freezing",
        f"Beyond freezing a few tokens carry the weight, however long the prompt: at $ln L = {log_length:g}$ "
        f"and $τ = {ratio:.2f}·√(2 ln L)$, participation is near its limit $1 - √(2 ln L)/τ$ (measured: "
        "participation).",
        longest.participation,
        frozen_participation(np.asarray(ratio)),
        within=np.log(4 * np.pi * log_length) / (2 * log_length),
        because="twice the fraction by which the typical largest of $L$ normals is below $√(2 ln L)$, to first order",
        rejects=(
            "no freezing: participation is $e^{τ²}/L$, its form for long prompts, or 1 where that is larger",
            np.exp(min((2 * ratio**2 - 1) * log_length, 0.0)),
        ),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one curve per length, and the limit."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    lengths = sorted(table["log_length"].unique().tolist())
    for log_length, colour in zip(lengths, sequence(len(lengths)), strict=True):
        curve = table[table["log_length"] == log_length]
        axes.plot(curve["ratio"], curve["participation"], color=colour, linewidth=2, label=rf"$\ln L={log_length:g}$")
    limit = table.sort_values("ratio")
    axes.plot(limit["ratio"], limit["limit"], color=ink(), linestyle="--", linewidth=1.5, label=r"$(1-1/a)_{+}$")
    axes.set(xlim=(0, table["ratio"].max()), ylim=(0, 1))
    axes.set(xlabel=r"$a=\tau/\sqrt{2\,\ln L}$", ylabel="participation $P$")
    axes.legend(loc="upper left")
    return figure
