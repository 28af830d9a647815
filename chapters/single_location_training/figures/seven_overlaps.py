r"""Off the manifold, seven overlaps give the risk of a softmax head at every step of its training.

Excess risk of a softmax head along gradient descent in $\mathbb R^D$, without projection, in the setting of
{doc}`softmax_advantage`; the output 0 has the risk 1. The solid curve is the risk as a function of seven overlaps, and
the symbols are mean square errors of the same heads on fresh simulated prompts, with two standard errors. The dashed
curve is the formula without the three cross overlaps, which the table also has.

Alt: Line chart of the excess risk against the steps of training. Symbols are on a falling curve. A dashed curve begins
lower and comes closer to it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.single_location_training.off_manifold import EVERY, Walk
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, error_bars, ink, label
from lib.statistics import standard_error

# The cross overlaps, with their formulas.
CROSS = {"m_kv": "$k·v*/D$", "m_vk": "$v·k*/D$", "q_vk": "$k·v/D$"}


def numbers(walk: Walk) -> Numbers:
    """Return risks by the formula and on simulated prompts along the descent, and the cross overlaps."""
    simulated, std_error = walk.errors.mean(axis=1), standard_error(walk.errors, axis=1)
    group = {
        "step": EVERY * np.arange(walk.path.risk.size),
        "risk": walk.path.risk,
        "without_cross": walk.without_cross,
        "simulated": simulated,
        "std_error": std_error,
        **{name: getattr(walk.path.overlaps, name) for name in CROSS},
    }
    columns = {
        "step": Column("Steps of gradient descent", "steps"),
        "risk": Column("Excess risk by the formula with seven overlaps", absolute=1e-6),
        "without_cross": Column("The same formula without the three cross overlaps", absolute=1e-6),
        "simulated": Estimate("Mean square error on fresh prompts", std_error="std_error"),
        **{name: Column(formula, absolute=1e-6) for name, formula in CROSS.items()},
    }
    claim = Claims("single-location-training", source="[D26]", box="seven-overlaps")
    claim.agree(
        "seven-overlaps",
        "Along a descent that starts off the manifold, the risk of a softmax head on simulated prompts is the "
        "function of seven overlaps",
        (simulated - walk.path.risk) / std_error,
        rejects=("the risk does not depend on the cross overlaps", (simulated - walk.without_cross) / std_error),
    )
    kept, moved = (
        np.max(np.abs([getattr(overlaps, name) for name in CROSS]))
        for overlaps in (walk.on_manifold, walk.path.overlaps)
    )
    claim.equal(
        "kept-at-zero",
        "Gradient descent of a softmax head that starts with zero cross overlaps keeps them at zero, up to rounding "
        "(measured: the largest one).",
        kept,
        0.0,
        within=1e-12,
        because="rounding errors of the descent",
        source="[D26, Appendix A]",
        rejects=("the descent starts off the manifold", moved),
    )
    return Numbers(Table.of([group], columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the risk by seven overlaps and by four, with simulated risks."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.4))
    axes.plot(table["step"], table["without_cross"], color=ink(), linewidth=1.5, linestyle="--")
    axes.plot(table["step"], table["risk"], color="C0", linewidth=2.4)
    error_bars(axes, table["step"], table["simulated"], table["std_error"], color="C0", marker="o", fillstyle="none")
    first, early = table.iloc[0], table.iloc[len(table) // 5]
    label(axes, first["step"], first["risk"], "formula with seven overlaps", "C0", xytext=(16, 4), fontsize=12)
    label(axes, early["step"], early["without_cross"], "without the cross overlaps", ink(), xytext=(-40, -30))
    label(axes, early["step"], early["simulated"], "circles: simulated", "C0", xytext=(14, 12))
    axes.set(xlabel="steps", ylabel="excess risk", ylim=(0, None))
    return figure
