r"""At strong signals risks fall like $e^{-\nu/4}/\sqrt\nu$ (softmax), $e^{-\nu/8}/\sqrt\nu$ (sigmoid) and $1/\nu$
(linear attention).

Exact risks of four kinds of heads in the spiked model. The limit formulas are $(L-1)\frac12\sqrt{\pi/\nu}\,e^{-\nu/4}$
for softmax, $\frac4\pi$ times this for hardmax, $\sqrt{(L-1)\pi/2\nu}\,e^{-\nu/8}$ for the sigmoid and $L/\nu$ for
linear attention. The corrections are of relative size $1/\nu$ and grow with the length; the table has the ratios at
three lengths.

Alt: A chart of risk, logarithmic, against signal strength. Solid curves become straight lines, steepest for softmax and
hardmax, less steep for the sigmoid; that of linear attention is almost flat. Each approaches a dashed curve of its
colour from below.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.softmax_variations.strong_signals import (
    STRONG,
    STRONG_LIMITS,
    STRONGEST,
    WEAKER,
    LimitConstants,
    Risks,
    largest_softmax_error,
)
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, label, legend_line, legend_with

# The reason for tolerances from two pairs of signals.
BECAUSE_HALVED = (
    "risks are their limit formulas times $1 + O(1/ν)$, so that from the weaker pair of signals to the stronger one "
    "the error at least halves: twice the change of the reading bounds it, to leading order"
)
# The colour of each head, the height of its label, and the order of its risk at strong signals.
HEADS = {
    "softmax": ("C0", -8, r"$e^{-\nu/4}/\sqrt{\nu}$"),
    "hardmax": ("C3", 8, "same order"),
    "sigmoid": ("C2", 0, r"$e^{-\nu/8}/\sqrt{\nu}$"),
    "linear": ("C1", 0, r"$1/\nu$"),
}


def numbers(risks: Mapping[int, Risks], constants: LimitConstants) -> Numbers:
    """Return exact risks over their limit formulas; claim exponents, a power, a factor and constants."""
    groups = [
        {
            "activation": name,
            "length": length,
            "snr": curves.snrs,
            "risk": risk,
            "ratio": risk / STRONG_LIMITS[name](length, curves.snrs),
        }
        for length, curves in risks.items()
        for name, risk in curves.by_head.items()
    ]
    columns = {
        "activation": Column("Activation of the head", "name"),
        "length": Column("Tokens in a prompt, $L$", "tokens"),
        "snr": Column("Signal strength $ν$"),
        "risk": Column("Excess risk of the best head", absolute=1e-13),
        "ratio": Column("Excess risk over its limit formula at large $ν$", absolute=1e-4),
    }
    claim = Claims("softmax-advantage", source="[D26, Cor. 4.3]", box="laws-at-strong-hints")
    _claim_powers(claim, risks[2])
    _claim_constants(claim, constants)
    return Numbers(Table.of(groups, columns), claim)


def _claim_powers(claim: Claims, short: Risks) -> None:
    """Claim exponents, a power, and the factor of hardmax at L = 2, each read from two pairs of three signals."""
    at = pd.DataFrame(short.by_head, index=short.snrs)
    at = at.iloc[[np.argmin(np.abs(short.snrs - snr)) for snr in (WEAKER, STRONG, STRONGEST)]]
    # each signal strength is twice the one before
    exponents = (np.log(at.shift() / at) - 0.5 * np.log(2)).div(at.index.to_series().diff(), axis=0)
    powers = np.log2(at / at.shift())
    of_softmax = at.div(at["softmax"], axis=0)
    factors = 2 * of_softmax - of_softmax.shift()
    between = f"between $ν = {STRONG:g}$ and ${STRONGEST:g}$ at $L = 2$"
    for head, other, risk, fraction, expected, source in (
        ("softmax", "sigmoid", "of softmax, the Bayes risk,", "ν/4", 0.25, "[D26, Cor. 4.3]"),
        ("sigmoid", "softmax", "of the best sigmoid", "ν/8", 0.125, "derived here"),
    ):
        claim.equal(
            f"{head}-exponent",
            f"The risk {risk} falls like $e^{{-{fraction}}}/√ν$ in the spiked model (exponent {between}).",
            exponents[head].iloc[-1],
            expected,
            within=2 * abs(exponents[head].diff().iloc[-1]),
            because=BECAUSE_HALVED,
            source=source,
            rejects=(f"the exponent of {other}", exponents[other].iloc[-1]),
        )
    claim.equal(
        "linear-power",
        f"The risk of linear attention falls like $1/ν$ in the spiked model (log-log slope {between}, which tends to "
        "$-1$).",
        powers["linear"].iloc[-1],
        -1.0,
        within=2 * abs(powers["linear"].diff().iloc[-1]),
        because=BECAUSE_HALVED,
        rejects=("the slope of softmax, which falls exponentially", powers["softmax"].iloc[-1]),
    )
    claim.equal(
        "hardmax-price",
        "The risk of hardmax is $4/π$ times the Bayes risk at strong signals in the spiked model (ratio extrapolated "
        f"in $1/ν$ {between}).",
        factors["hardmax"].iloc[-1],
        4 / np.pi,
        within=2 * abs(factors["hardmax"].diff().iloc[-1]),
        because=BECAUSE_HALVED,
        source="derived here",
        rejects=("the same for softmax", factors["softmax"].iloc[-1]),
    )


def _claim_constants(claim: Claims, constants: LimitConstants) -> None:
    """Claim Corollary 4.3 in the spiked model, with its constants, at every length of the table."""
    lengths = constants.lengths
    span = f"{len(lengths)} lengths from $L = {lengths.min()}$ to ${lengths.max()}$"
    linear, softmax = constants.linear / lengths, constants.softmax / ((lengths - 1) / 2)
    claim.at_most(
        "corollary-4-3-linear",
        "Corollary 4.3 with its constant: the risk of linear attention in the spiked model tends to $L/ν$ at each of "
        f"{span} (largest relative distance, extrapolated in $1/ν$).",
        np.max(np.abs(linear[-1] - 1)),
        0.0,
        within=2 * np.max(np.abs(np.diff(linear, axis=0))),
        because=BECAUSE_HALVED,
        box="cor-4-3-as-quoted",
        rejects=(
            "the constant $L/(L - 1)$ that a public review quotes",
            np.max(np.abs(constants.linear[-1] * (lengths - 1) / lengths - 1)),
        ),
    )
    claim.at_most(
        "corollary-4-3-softmax",
        "Corollary 4.3 with its constant: the risk of softmax in the spiked model tends to "
        f"$½(L - 1)√(π/ν) e^{{-ν/4}}$ at each of {span} (largest relative distance, extrapolated in $1/ν$).",
        np.max(np.abs(softmax[-1] - 1)),
        0.0,
        within=largest_softmax_error(lengths),
        because="the remainder of the expansion of the risk in $1/ν$ after the extrapolation, and third tokens that "
        "are as close as the first two",
        rejects=("the constant of hardmax, $4/π$ times as large", np.max(np.abs(softmax[-1] * np.pi / 4 - 1))),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw exact risks of four heads at one length against the strength of the signal, with their limit formulas."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.8))
    length = sorted(table["length"].unique().tolist())[1]
    shown = table[table["length"] == length]
    for name, (colour, height, order) in HEADS.items():
        curve = shown[shown["activation"] == name]
        axes.plot(curve["snr"], curve["risk"], color=colour, linewidth=2.4)
        axes.plot(curve["snr"], curve["risk"] / curve["ratio"], color=colour, linewidth=1.4, linestyle="--")
        last = curve.iloc[-1]
        label(axes, last["snr"], last["risk"], f"{name}: {order}", colour, xytext=(8, height))
    axes.set(yscale="log", xlabel=r"signal strength $\nu$", ylabel="excess risk")
    axes.set(title=f"prompts of {length} tokens", ylim=(shown["risk"].min() / 20, 3))
    legend_with(axes, {"exact risk": legend_line("-", 2.4), "limit formula": legend_line("--", 1.4)}, loc="lower left")
    return figure
