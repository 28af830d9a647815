r"""Freezing: larger queries put the weight on fewer tokens, gradually at practical lengths, sharply only in the limit.

The vertical axis is participation $P=\mathbb{E}\sum_ip_i^2$, the horizontal axis is $a=\tau/\sqrt{2\ln L}$. Solid
curves are computed by quadrature; thin ones are of prompts longer than any real one, and end (bars) where the tested
domain of the quadrature does. The dashed curve is the limit $(1-1/a)_+$ at fixed $a$. Its corner is the freezing of the
random-energy model; at finite $L$ it is rounded.

Alt: Line chart of participation against a. Left of a equal to one the weight is on many tokens, right of it on few.
From short to long prompts the curves approach a dashed curve from above that is zero up to a equal to one and then
rises to one half at a equal to two.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.exact_finite_prompt.participation_by_ratio import Curve, Frozen, frozen_participation
from chapters.style import coloured_rows
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, sequence

# ln L of the longest of the lengths drawn that a prompt can have.
REAL = 20


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
        f"Beyond freezing a few tokens carry the weight, however long the prompt: at $ln L = {log_length:g}$ and $τ = "
        f"{ratio:.2f}·√(2 ln L)$, participation is near its limit $1 - √(2 ln L)/τ$ (measured: participation).",
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
    """Draw one curve per length, thin where no prompt is so long, and the limit."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.8))
    for log_length, curve, colour in coloured_rows(table, "log_length"):
        axes.plot(curve["ratio"], curve["participation"], color=colour, linewidth=3 if log_length <= REAL else 1.4)
        name, end = rf"$\ln L={log_length:g}$: {_tokens(log_length)} tokens", curve.iloc[-1]
        if log_length <= REAL:
            label(axes, end["ratio"], end["participation"], name, colour, va="bottom", xytext=(6, -4))
        else:
            place = curve.iloc[(curve["participation"] - 0.65 * end["participation"]).abs().argmin()]
            line = {"arrowstyle": "-", "color": colour, "linewidth": 0.8}
            label(axes, place["ratio"], place["participation"], name, colour, xytext=(36, -10), arrowprops=line)
            axes.plot(end["ratio"], end["participation"], "|", color=colour, markersize=9, markeredgewidth=2)
    limit = table.sort_values("ratio")
    axes.plot(limit["ratio"], limit["limit"], color=ink(), linestyle="--", linewidth=1.5)
    end, name = limit.iloc[-1], "limit, $L\\to\\infty$:\nsharp at $a=1$"
    label(axes, end["ratio"], end["limit"], name, ink(), va="top")
    first = table[table["log_length"] == table["log_length"].min()]
    place = first.iloc[(first["participation"] - 0.13).abs().argmin()]
    name = "possible lengths:\ngradual"
    label(axes, place["ratio"], place["participation"], name, sequence(1)[0], ha="right", xytext=(-12, 10))
    axes.axvline(1, color=ink(), linestyle=":", linewidth=1.5)
    for side, text in (("right", "the weight is\non many tokens"), ("left", "the weight is\non few tokens")):
        label(axes, 1, 0.93, text, ink(), ha=side, xytext=(-8 if side == "right" else 8, 0), fontweight="bold")
    axes.set(xlim=(0, table["ratio"].max()), ylim=(0, 1))
    axes.set_xlabel(r"size of the query over that of the largest score, $a=\tau/\sqrt{2\,\ln L}$")
    axes.set_ylabel("participation $P$: mean of 1 over\nthe number of tokens that matter")
    return figure


def _tokens(log_length: float) -> str:
    """Return the number of tokens, with one digit times a power of ten if it is at least ten thousand."""
    length = np.exp(log_length)
    if length < 10**4:
        return f"{length:.0f}"
    digit, power = f"{length:.0e}".split("e")
    return rf"${digit}\cdot10^{{{int(power)}}}$"
