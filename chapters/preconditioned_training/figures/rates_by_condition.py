r"""A preconditioner removes the condition number from the flow of blocks; that shown for heads leaves its square root.

The vertical axis is the fastest rate of a flow at its balanced optimum, divided by the slowest: the number of steps
that gradient descent needs grows with this ratio. Points come from the Hessian of the loss. Solid: heads $(U,V)$ on
the query itself as target; the lines are the square and the square root of the condition number of $\Sigma$.
Dashed: blocks $(A,b)$ on in-context regression, plain and with two preconditioners.

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
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import COLUMN, few_decades, label

# Eigenvalues are known to 10⁻¹⁵ of the largest, hence the smallest of a ratio of 10⁶ to 10⁻⁹ of itself; with a reserve.
ROUNDING = 1e-6
COLOURS = {
    "head, plain": "C0",
    "head, preconditioned": "C2",
    "blocks, plain": "C0",
    "blocks, Σ⁻¹∇Σ⁻¹": "C3",
    "blocks, Σ⁻²∇Σ⁻¹": "C2",
}
NAMES = {
    "head, plain": "head, plain",
    "head, preconditioned": "head,\npreconditioned",
    "blocks, plain": "blocks, plain",
    "blocks, Σ⁻¹∇Σ⁻¹": r"blocks, $\Sigma^{-1}\nabla\Sigma^{-1}$",
    "blocks, Σ⁻²∇Σ⁻¹": r"blocks, $\Sigma^{-2}\nabla\Sigma^{-1}$",
}
EXPECTED = {"head, plain": 2.0, "head, preconditioned": 0.5}


def numbers(rates: Rates) -> Numbers:
    """Return the ratios by flow and condition number, with the claims on heads and on blocks."""
    groups = [
        {"flow": flow, "condition": rates.conditions, "ratio": ratios, "expected": _expected(flow, rates.conditions)}
        for flow, ratios in rates.ratios.items()
    ]
    columns = {
        "flow": Column("Parameters and preconditioner"),
        "condition": Column("Condition number of $Σ$"),
        "ratio": Column("Fastest over slowest rate at the balanced optimum"),
        "expected": Column("The same by the formula; empty where it is known up to a factor of two only"),
    }
    return Numbers(Table.of(groups, columns), (_head_claim(rates), _block_claim(rates)))


def _expected(flow: str, conditions: np.ndarray) -> np.ndarray | float:
    if flow in EXPECTED:
        return conditions ** EXPECTED[flow]
    return 2.0 if flow == "blocks, Σ⁻²∇Σ⁻¹" else np.nan


def _head_claim(rates: Rates) -> Claim:
    """Claim that the ratio of a head is the square of the condition number, and its root if preconditioned."""
    ratios = np.stack([rates.ratios[flow] / _expected(flow, rates.conditions) for flow in HEAD_POWERS])
    return Claim.equal(
        "preconditioned-training-head-rates",
        f"At {len(rates.conditions)} condition numbers up to {rates.conditions[-1]:,g}, the fastest over the slowest "
        "rate of a head is the square of the condition number for the plain flow and its square root for the "
        "preconditioned one (measured: the largest relative difference).",
        float(np.abs(ratios - 1).max()),
        0.0,
        within=ROUNDING,
        because="eigenvalues are known to 10⁻¹⁵ of the largest, the slowest rate so to 10⁻⁹ of itself, with a reserve",
        source="derived here",
        box="balanced-flows",
        comparisons=ratios.size,
        alternative=Alternative(
            "the preconditioner makes all rates of a head equal", float(1 - rates.conditions[-1] ** -0.5)
        ),
    )


def _block_claim(rates: Rates) -> Claim:
    """Claim that the last preconditioner of blocks leaves the ratio two at every condition number."""

    def worst(flow: str) -> float:
        return float(np.abs(rates.ratios[flow] - 2).max())

    *_, weaker, strongest = BLOCK_POWERS
    return Claim.equal(
        "preconditioned-training-block-rates",
        f"With the gradient $Σ⁻²∇Σ⁻¹$ the fastest over the slowest rate of blocks is two at {len(rates.conditions)} "
        f"condition numbers up to {rates.conditions[-1]:,g} (measured: the largest difference).",
        worst(strongest),
        0.0,
        within=ROUNDING,
        because="eigenvalues are known to 10⁻¹⁵ of the largest, with a reserve for their derivatives",
        source="derived here",
        box="preconditioned-blocks",
        comparisons=len(rates.conditions),
        alternative=Alternative("one inverse covariance on each side is enough", worst(weaker)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one labelled line per flow, with the Hessian's ratios as points."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    axes.set(xscale="log", yscale="log", xlabel=r"condition number of $\Sigma$", ylabel="fastest over slowest rate")
    for flow, rows in table.groupby("flow", sort=False):
        colour, style = COLOURS[flow], "-" if flow in HEAD_POWERS else "--"
        expected = rows["expected"].where(rows["expected"].notna(), rows["ratio"])
        axes.plot(rows["condition"], expected, color=colour, linestyle=style, linewidth=2)
        axes.plot(rows["condition"], rows["ratio"], "o", color=colour, markersize=4)
        end = rows.iloc[-1]
        label(axes, end["condition"], end["ratio"], NAMES[flow], colour, xytext=(10, 0))
    few_decades(axes)
    axes.set_ylim(0.6, 2 * table["ratio"].max())
    return figure
