r"""For long prompts, three kernels of negative curvature gain the same over debiased gradient descent.

Points are the mean square error of debiased gradient descent minus that of the best opposite pair, times $L^2$, solved
exactly; lines guide the eye. The limit is $2\tau_w^2d(d+2)$ for every kernel of curvature $\kappa<0$. Pairs above the
dotted curve have a lower error than linear attention. The gain of $e^x$ is of order $L^{-3}$.

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
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

# The neglected terms are smaller than the limit by a factor of order d ω²; this multiple of it is allowed.
ALLOWED_ORDERS = 5


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
    return Numbers(table, _claims(table.frame, limit, dimension, noisy))


def _claims(frame: pd.DataFrame, limit: float, dimension: int, noisy: NoisyComparison) -> Claims:
    """Claim the limit of the gain at the longest prompt, and that linear attention wins where labels are noisy."""
    claim = Claims("which-kernel", source="derived here", box="gain-of-any-kernel")
    length = frame["length"].max()
    rows = frame[(frame["length"] == length) & frame["kernel"].isin(SLOW)]
    worst = rows.loc[(rows["scaled_gain"] - limit).abs().idxmax()]
    neglected = max(_neglected(kernel, limit, dimension, length) for kernel in SLOW)
    claim.equal(
        "common-gain",
        f"At $L = {length:,}$ the gain of the best pair over debiased gradient descent, times $L²$, is the same limit "
        "for $(1 + x/2)²$, softplus and sigmoid (measured: the gain farthest from it).",
        worst["scaled_gain"],
        limit,
        within=neglected,
        because="the neglected terms are smaller by a factor of order $dω²$ at the best key $ω$; five times that is "
        "allowed",
        comparisons=len(rows),
        rejects=("no pair of heads is better than the best linear attention", worst["linear"]),
        requires=_decides(abs(worst["linear"] - limit), neglected),
    )
    neglected = _neglected("sigmoid", limit, dimension, noisy.length) + ALLOWED_ORDERS * noisy.next_order
    claim.equal(
        "noisy-labels",
        f"With label noise of variance {noisy.noise_variance:g} at $L = {noisy.length:,}$, the error of linear "
        "attention minus that of the best pair of sigmoid heads, times $L²$, is negative, as predicted.",
        noisy.difference,
        noisy.predicted,
        within=neglected,
        because="the neglected terms of the pair are smaller than its gain by a factor of order $dω²$, those of linear "
        "attention than its own by $(d + 1 + ς)/L$ with $ς$ the variance of the noise times $d$; five times both is "
        "allowed",
        rejects=("noise of the labels does not change which method is better", noisy.predicted_at_default_noise),
        requires=_decides(abs(noisy.predicted_at_default_noise - noisy.predicted), neglected),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the scaled gains against the length, with their limit and linear attention."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.6))
    axes.set(xscale="log", xlabel="prompt length $L$", ylabel="gain over debiased gradient descent, times $L^2$")
    for kernel, rows in table.groupby("kernel", sort=False):
        size = 10 if kernel == "square" else 6  # two of the lines nearly coincide
        look = {"color": COLOURS[kernel], "marker": MARKERS[kernel], "linewidth": 2, "markersize": size}
        axes.plot(rows["length"], rows["scaled_gain"], **look)
    at = table.set_index(["kernel", "length"])["scaled_gain"]
    lengths = sorted(table["length"].unique())
    second, last = lengths[1], lengths[-1]
    for kernel, offset in (("square", (-10, 26)), ("softplus", (-10, 9))):
        label(axes, second, at[kernel, second], NAMES[kernel], COLOURS[kernel], xytext=offset, ha="right")
    label(axes, second, at["sigmoid", second], NAMES["sigmoid"], COLOURS["sigmoid"], xytext=(10, -8))
    label(axes, last, at["exp", last], f"{NAMES['exp']}, of curvature 0", COLOURS["exp"], xytext=(0, 12), ha="right")
    rows = table[table["kernel"] == "exp"]
    axes.plot(rows["length"], rows["linear"], color="C1", linestyle=":", linewidth=1.8)
    label(axes, last, rows["linear"].iloc[-1], "best linear\nattention", "C1", xytext=(10, 0))
    limit = table["limit"].iloc[0]
    axes.axhline(limit, color=ink(), linestyle="--", linewidth=1.5)
    label(axes, last, limit, "limit of every kernel of negative curvature", ink(), xytext=(0, 10), ha="right")
    axes.set_ylim(-0.5, 1.15 * limit)
    axes.minorticks_off()
    return figure


def _neglected(kernel: str, limit: float, dimension: int, length: int) -> float:
    return ALLOWED_ORDERS * dimension * limit * -2 / (curvature(kernel) * length)


def _decides(apart: float, neglected: float) -> tuple[bool, str]:
    """Return whether neglected terms are below half the distance of the other theory, and a reason if they are not."""
    reason = f"the neglected terms may be {neglected:.3g}, and the alternative is only {apart:.3g} away"
    return apart > 2 * neglected, f"the prompts are too short: {reason}"
