r"""A preconditioner removes the condition number from the flow of blocks; that shown for heads leaves its square root.

The fastest rate of a flow at its balanced optimum, divided by the slowest: the number of steps that gradient descent
needs grows with this ratio. Points come from the Hessian of the loss. Solid: heads $(U,V)$ on the query itself as
target, with the square and the square root of $\kappa$. Dashed: blocks $(A,b)$ on in-context regression.

$\Sigma$ has the largest eigenvalue 1 and eigenvalues in geometric progression. Directions in which the output
does not change have the rate zero and are left out. The ratio of the plain blocks is about half the third power
of the condition number if this is large.

Alt: Chart with two logarithmic axes. Five lines rise from left to right with different slopes: three, two, one, one
half and zero. The last one is horizontal, at two.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.preconditioned_training.flows import BLOCK_POWERS, HEAD_POWERS
from chapters.preconditioned_training.rates import Rates
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, few_decades, label

# Eigenvalues are known to 10⁻¹⁵ of the largest, hence the smallest of a ratio of 10⁶ to 10⁻⁹ of itself; with a reserve.
ROUNDING = 1e-6
# Colour and label of each flow.
LOOKS = {
    "head, plain": ("C0", r"head, plain: $\kappa^2$"),
    "head, preconditioned": ("C2", r"head, preconditioned: $\kappa^{1/2}$"),
    "blocks, plain": ("C0", r"blocks, plain: about $\kappa^3/2$"),
    "blocks, Σ⁻¹∇Σ⁻¹": ("C3", r"blocks, $\Sigma^{-1}\nabla\Sigma^{-1}$: about $\kappa$"),
    "blocks, Σ⁻²∇Σ⁻¹": ("C2", r"blocks, $\Sigma^{-2}\nabla\Sigma^{-1}$: constant"),
}
# The expected ratios are powers of the condition number, with these exponents and factors.
POWERS = {"head, plain": (2.0, 1.0), "head, preconditioned": (0.5, 1.0), "blocks, Σ⁻²∇Σ⁻¹": (0.0, 2.0)}


def numbers(rates: Rates) -> Numbers:
    """Return the ratios by flow and condition number, with the claims on heads and on blocks."""
    conditions, ratios = rates.conditions, rates.ratios
    expected = {flow: factor * conditions**power for flow, (power, factor) in POWERS.items()}
    groups = [
        {"flow": flow, "condition": conditions, "ratio": ratio, "expected": expected.get(flow, np.nan)}
        for flow, ratio in ratios.items()
    ]
    columns = {
        "flow": Column("Parameters and preconditioner"),
        "condition": Column("Condition number of $Σ$"),
        "ratio": Column("Fastest over slowest rate at the balanced optimum"),
        "expected": Column("The same by the formula; empty where it is known up to a factor of two only"),
    }
    claim = Claims("preconditioned-training", source="derived here")
    of_heads = np.array([ratios[flow] / expected[flow] for flow in HEAD_POWERS])
    claim.equal(
        "head-rates",
        f"At {len(conditions)} condition numbers up to {conditions[-1]:,g}, the fastest over the slowest rate of a "
        "head is the square of the condition number for the plain flow and its square root for the preconditioned one "
        "(measured: the largest relative difference).",
        np.abs(of_heads - 1).max(),
        0.0,
        within=ROUNDING,
        because="eigenvalues are known to 10⁻¹⁵ of the largest, the slowest rate so to 10⁻⁹ of itself, with a reserve",
        box="balanced-flows",
        comparisons=of_heads.size,
        rejects=("the preconditioner makes all rates of a head equal", 1 - conditions[-1] ** -0.5),
    )
    *_, weaker, strongest = (np.abs(ratios[flow] - 2).max() for flow in BLOCK_POWERS)
    claim.equal(
        "block-rates",
        f"With the gradient $Σ⁻²∇Σ⁻¹$ the fastest over the slowest rate of blocks is two at {len(conditions)} "
        f"condition numbers up to {conditions[-1]:,g} (measured: the largest difference).",
        strongest,
        0.0,
        within=ROUNDING,
        because="eigenvalues are known to 10⁻¹⁵ of the largest, with a reserve for their derivatives",
        box="preconditioned-blocks",
        comparisons=len(conditions),
        rejects=("one inverse covariance on each side is enough", weaker),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one labelled line per flow, with the Hessian's ratios as points."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.6))
    axes.set(xscale="log", yscale="log", xlabel=r"condition number $\kappa$ of $\Sigma$")
    for flow, rows in table.groupby("flow", sort=False):
        (colour, name), style = LOOKS[flow], "-" if flow in HEAD_POWERS else "--"
        axes.plot(rows["condition"], rows["expected"].fillna(rows["ratio"]), color=colour, linestyle=style, linewidth=2)
        axes.plot(rows["condition"], rows["ratio"], "o", color=colour, markersize=4)
        label(axes, *rows[["condition", "ratio"]].iloc[-1], name, colour, xytext=(10, 0))
    few_decades(axes)
    axes.set(ylabel="fastest over slowest rate", ylim=(0.6, 2 * table["ratio"].max()))
    return figure
