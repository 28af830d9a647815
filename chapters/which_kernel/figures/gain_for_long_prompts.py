r"""For long prompts, three kernels of negative curvature gain the same over debiased gradient descent.

Points are the mean square error of debiased gradient descent minus that of the best opposite pair, times $L^2$, solved
exactly at each prompt length; lines guide the eye. The dashed line is the limit $2\tau_w^2d(d+2)$ for every kernel with
$\kappa<0$. The dotted curve is the same gain of the best linear attention: pairs above it have a lower error than
linear attention. The gain of $e^x$, for which $\kappa=0$, is of order $L^{-3}$.

Alt: Chart with logarithmic prompt length. Three lines with markers rise from the left and meet at a dashed horizontal
line. They end high above a dotted curve. A fourth line, for the exponential, stays near zero.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.which_kernel.kernels import SLOW
from chapters.which_kernel.pair_risks import BestPairs, NoisyComparison, curvature
from chapters.which_kernel.style import COLOURS, MARKERS, NAMES
from companion import Alternative, Claim, Column, Numbers, Table, WithheldClaim
from companion.figures.style import COLUMN, ink, legend_line, legend_with

# The neglected terms are smaller than the limit by factors of order d ω², so many times which are allowed.
ALLOWED_ORDERS = 5
REASON = "the neglected terms are smaller by a factor of order $dω²$ at the best key $ω$; five times that is allowed"
NOISY_REASON = (
    "the neglected terms of the pair are smaller than its gain by a factor of order $dω²$, those of linear attention "
    "than its own by $(d + 1 + ς)/L$ with $ς$ the variance of the noise times $d$; five times both is allowed"
)


def numbers(pairs: Sequence[BestPairs], limit: float, dimension: int, noisy: NoisyComparison) -> Numbers:
    """Return the scaled gains by length and kernel with their limit, and the claims on the limit and on noise."""
    groups = [
        {
            "length": pair.length,
            "kernel": kernel,
            "scaled_gain": pair.length**2 * (pair.debiased - pair.errors[kernel]),
            "scaled_key": pair.length**0.5 * pair.keys[kernel],
            "linear": pair.length**2 * (pair.debiased - pair.linear),
            "limit": limit,
        }
        for pair in pairs
        for kernel in ("exp", *SLOW)
    ]
    columns = {
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "kernel": Column("Kernel $f$: exp, square is $(1 + x/2)²$, softplus, sigmoid"),
        "scaled_gain": Column(
            "Mean square error of debiased gradient descent minus that of the best pair, times $L²$", absolute=1e-3
        ),
        "scaled_key": Column("Best key of the pair times $√L$, to the accuracy of the search", absolute=0.02),
        "linear": Column(
            "Mean square error of debiased gradient descent minus that of linear attention, times $L²$", absolute=1e-3
        ),
        "limit": Column("Limit of the scaled gain for long prompts, for every kernel of negative curvature"),
    }
    table = Table.of(groups, columns)
    longest = max(pairs, key=lambda pair: pair.length)
    return Numbers(table, (_limit_claim(table.frame, longest.length, dimension), _noise_claim(noisy, limit, dimension)))


def _tolerance(kernels: Sequence[str], limit: float, dimension: int, length: int) -> float:
    return ALLOWED_ORDERS * dimension * limit * max(-2 / (curvature(kernel) * length) for kernel in kernels)


def _if_it_decides(claim: Claim, other: float) -> Claim | WithheldClaim:
    """Return the claim, withheld if the neglected terms may be as large as half the distance of the other theory."""
    apart = abs(other - claim.expected)
    if apart > 2 * claim.tolerance:
        return claim
    return claim.withheld(
        f"the prompts are too short: the neglected terms may be {claim.tolerance:.3g}, and the alternative is only "
        f"{apart:.3g} away"
    )


def _limit_claim(frame: pd.DataFrame, length: int, dimension: int) -> Claim | WithheldClaim:
    """Claim that the scaled gains at the longest prompt are at their common limit."""
    rows = frame[(frame["length"] == length) & frame["kernel"].isin(SLOW)]
    limit = rows["limit"].iloc[0]
    worst = rows.loc[(rows["scaled_gain"] - limit).abs().idxmax()]
    claim = Claim.equal(
        "which-kernel-common-gain",
        f"At $L = {length:,}$ the gain of the best pair over debiased gradient descent, times $L²$, is the same limit "
        "for $(1 + x/2)²$, softplus and sigmoid (measured: the gain farthest from it).",
        worst["scaled_gain"],
        limit,
        within=_tolerance(SLOW, limit, dimension, length),
        because=REASON,
        source="derived here",
        box="gain-of-any-kernel",
        comparisons=len(rows),
        alternative=Alternative("no pair of heads is better than the best linear attention", rows["linear"].iloc[0]),
    )
    return _if_it_decides(claim, rows["linear"].iloc[0])


def _noise_claim(noisy: NoisyComparison, limit: float, dimension: int) -> Claim | WithheldClaim:
    """Claim that linear attention wins where labels are noisy, by the predicted amount."""
    claim = Claim.equal(
        "which-kernel-noisy-labels",
        f"With label noise of variance {noisy.noise_variance:g} at $L = {noisy.length:,}$, the error of linear "
        "attention minus that of the best pair of sigmoid heads, times $L²$, is negative, as predicted.",
        noisy.difference,
        noisy.predicted,
        within=_tolerance(("sigmoid",), limit, dimension, noisy.length) + ALLOWED_ORDERS * noisy.next_order,
        because=NOISY_REASON,
        source="derived here",
        box="gain-of-any-kernel",
        alternative=Alternative(
            "noise of the labels does not change which method is better", noisy.predicted_at_default_noise
        ),
    )
    return _if_it_decides(claim, noisy.predicted_at_default_noise)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the scaled gains against the length, with their limit and linear attention."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    axes.set(xscale="log", xlabel="prompt length $L$", ylabel="gain over zero keys, times $L^2$")
    for kernel, rows in table.groupby("kernel", sort=False):
        size = 10 if kernel == "square" else 6  # two of the lines nearly coincide
        look = {"color": COLOURS[kernel], "marker": MARKERS[kernel], "linewidth": 2, "markersize": size}
        axes.plot(rows["length"], rows["scaled_gain"], label=NAMES[kernel], **look)
    rows = table[table["kernel"] == "exp"]
    axes.plot(rows["length"], rows["linear"], color="C1", linestyle=":", linewidth=1.8, label="linear attention")
    axes.axhline(table["limit"].iloc[0], color=ink(), linestyle="--", linewidth=1.5)
    axes.set_ylim(-0.5, 1.35 * table["limit"].iloc[0])
    legend_with(axes, {r"$L\,\to\,\infty$, all $\kappa<0$": legend_line("--", 1.5)}, loc="upper left", ncols=3)
    return figure
