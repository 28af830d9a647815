r"""As the signal gets stronger, the exact risk of each head approaches its limit formula.

The exact risk (solid) of four kinds of heads in the spiked model at one prompt length $L$, and its limit formula
(dashed), against the signal strength $\nu$. The formulas are $(L-1)\frac12\sqrt{\pi/\nu}\,e^{-\nu/4}$ for softmax,
$\frac4\pi$ times this for hardmax, $\sqrt{(L-1)\pi/2\nu}\,e^{-\nu/8}$ for the sigmoid and $L/\nu$ for linear attention.
The corrections are of relative size $1/\nu$ and grow with the length; the table has the ratios at three lengths.

Alt: A log-log chart of risk against signal strength. Solid curves fall, most steeply for softmax and hardmax, less for
the sigmoid, and slowly for linear attention; each approaches a dashed curve of its colour from below.
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
    StrongLinear,
    largest_softmax_error,
)
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label

# The reason for tolerances from two pairs of signals.
BECAUSE_HALVED = (
    "risks are their limit formulas times $1 + O(1/ν)$, so that from the weaker pair of signals to the stronger one "
    "the error at least halves: twice the change of the reading bounds it, to leading order"
)
# The limit formulas, as the picture shows them.
FORMULAS = {
    "softmax": r"$(L-1)\frac{1}{2}\sqrt{\pi/\nu}\,e^{-\nu/4}$",
    "hardmax": r"$\frac{4}{\pi}\,\times$ the same",
    "sigmoid": r"$\sqrt{(L-1)\,\pi/2\nu}\,e^{-\nu/8}$",
    "linear": r"$L/\nu$",
}


def numbers(risks: Mapping[int, Risks], linear: StrongLinear, constants: LimitConstants) -> Numbers:
    """Return exact risks over their limit formulas; claim exponents, a power, a factor and constants."""
    frame = _frame(risks)
    return Numbers(_table(frame), [*_claims(frame), _constant_claim(linear), *_corollary_claims(constants)])


def _frame(risks: Mapping[int, Risks]) -> pd.DataFrame:
    frames = [
        pd.DataFrame(
            {
                "activation": name,
                "length": length,
                "snr": curves.snrs,
                "risk": risk,
                "ratio": risk / STRONG_LIMITS[name](length, curves.snrs),
            }
        )
        for length, curves in risks.items()
        for name, risk in curves.by_head.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _table(frame: pd.DataFrame) -> Table:
    """Return one row per activation, length and ν."""
    columns = {
        "activation": Column("Activation of the head", "name"),
        "length": Column("Tokens in a prompt, $L$", "tokens"),
        "snr": Column("Signal strength $ν$"),
        "risk": Column("Excess risk of the best head", absolute=1e-13),
        "ratio": Column("Excess risk over its limit formula at large $ν$", absolute=1e-4),
    }
    return Table(frame, columns)


def _claims(frame: pd.DataFrame) -> list[Claim]:
    """Claim exponents, a power, and the factor of hardmax, at L = 2, between the two strongest of three signals."""
    short = frame[frame["length"] == 2].pivot(index="snr", columns="activation", values="risk")
    at = [short.loc[short.index[np.argmin(np.abs(short.index - snr))]] for snr in (WEAKER, STRONG, STRONGEST)]

    def twice(read):
        """Return the reading of the stronger pair, and twice its difference from that of the weaker pair."""
        weaker, stronger = read(*at[:2]), read(*at[1:])
        return stronger, 2 * abs(stronger - weaker)

    def exponent(head):
        root = 0.5 * np.log(2)  # each signal strength is twice the one before
        return twice(lambda a, b: (np.log(a[head] / b[head]) - root) / (b.name - a.name))

    def price(head):
        return twice(lambda a, b: 2 * b[head] / b["softmax"] - a[head] / a["softmax"])

    def power(head):
        return twice(lambda a, b: np.log2(b[head] / a[head]))

    between = f"between $ν = {STRONG:g}$ and ${STRONGEST:g}$ at $L = 2$"
    names = {"softmax": ("of softmax, the Bayes risk,", "ν/4", 0.25), "sigmoid": ("of the best sigmoid", "ν/8", 0.125)}
    exponential = [
        Claim(
            id=f"softmax-advantage-{name}-exponent",
            statement=f"The risk {whose} falls like $e^{{-{fraction}}}/√ν$ in the spiked model (exponent {between}).",
            source="[D26, Cor. 4.3]" if name == "softmax" else "derived here",
            box="laws-at-strong-hints",
            measured=exponent(name)[0],
            expected=expected,
            tolerance=exponent(name)[1],
            reason=BECAUSE_HALVED,
            alternative=Alternative(f"the exponent of {other}", exponent(other)[0]),
        )
        for (name, (whose, fraction, expected)), other in zip(names.items(), ("sigmoid", "softmax"), strict=True)
    ]
    return [
        *exponential,
        Claim(
            id="softmax-advantage-linear-power",
            statement=(
                f"The risk of linear attention falls like $1/ν$ in the spiked model (log-log slope {between}, which "
                "tends to $-1$)."
            ),
            source="[D26, Cor. 4.3]",
            box="laws-at-strong-hints",
            measured=power("linear")[0],
            expected=-1.0,
            tolerance=power("linear")[1],
            reason=BECAUSE_HALVED,
            alternative=Alternative("the slope of softmax, which falls exponentially", power("softmax")[0]),
        ),
        Claim(
            id="softmax-advantage-hardmax-price",
            statement=(
                "The risk of hardmax is $4/π$ times the Bayes risk at strong signals in the spiked model (ratio "
                f"extrapolated in $1/ν$ {between})."
            ),
            source="derived here",
            box="laws-at-strong-hints",
            measured=price("hardmax")[0],
            expected=4 / np.pi,
            tolerance=price("hardmax")[1],
            reason=BECAUSE_HALVED,
            alternative=Alternative("the same for softmax", price("softmax")[0]),
        ),
    ]


def _constant_claim(linear: StrongLinear) -> Claim:
    """Claim that the constant in front of 1/ν is L, and not L/(L - 1)."""
    length, (once, twice) = linear.length, linear.scaled
    return Claim(
        id="softmax-advantage-linear-constant",
        statement=(
            f"The risk of linear attention in the spiked model tends to $L/ν$ ($ν$ times the risk at $L = {length}$, "
            "extrapolated in $1/ν$ from two strong signals)."
        ),
        source="[D26, Cor. 4.3]",
        box="cor-4-3-as-quoted",
        measured=2 * twice - once,
        expected=length,
        tolerance=abs(twice - once),
        reason="the change by the extrapolation",
        alternative=Alternative("the constant $L/(L - 1)$ that a public review quotes", length / (length - 1)),
    )


def _corollary_claims(constants: LimitConstants) -> tuple[Claim, Claim]:
    """Claim Corollary 4.3 in the spiked model, with its constants, at every length of the table."""
    lengths = constants.lengths
    span = f"{len(lengths)} lengths from $L = {lengths.min()}$ to ${lengths.max()}$"

    def worst(readings, limits):
        """Return the largest relative error of the second readings, and twice their change from the first."""
        first, second = readings / limits
        return np.max(np.abs(second - 1)), 2 * np.max(np.abs(second - first))

    linear, linear_error = worst(constants.linear, lengths)
    softmax, _ = worst(constants.softmax, (lengths - 1) / 2)
    return (
        Claim(
            id="softmax-advantage-corollary-4-3-linear",
            statement=(
                "Corollary 4.3 with its constant: the risk of linear attention in the spiked model tends to $L/ν$ at "
                f"each of {span} (largest relative distance, extrapolated in $1/ν$)."
            ),
            source="[D26, Cor. 4.3]",
            box="cor-4-3-as-quoted",
            measured=linear,
            expected=0.0,
            tolerance=linear_error,
            reason=BECAUSE_HALVED,
            relation="≤",
            alternative=Alternative(
                "the constant $L/(L - 1)$ that a public review quotes",
                worst(constants.linear, lengths / (lengths - 1))[0],
            ),
        ),
        Claim(
            id="softmax-advantage-corollary-4-3-softmax",
            statement=(
                "Corollary 4.3 with its constant: the risk of softmax in the spiked model tends to "
                f"$½(L - 1)√(π/ν) e^{{-ν/4}}$ at each of {span} (largest relative distance, extrapolated in $1/ν$)."
            ),
            source="[D26, Cor. 4.3]",
            box="laws-at-strong-hints",
            measured=softmax,
            expected=0.0,
            tolerance=largest_softmax_error(lengths),
            reason=(
                "the remainder of the expansion of the risk in $1/ν$ after the extrapolation, and third tokens that "
                "are as close as the first two"
            ),
            relation="≤",
            alternative=Alternative(
                "the constant of hardmax, $4/π$ times as large", worst(constants.softmax, 2 * (lengths - 1) / np.pi)[0]
            ),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw exact risks of four heads at one length against the strength of the signal, with their limit formulas."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.8))
    length = sorted(table["length"].unique().tolist())[1]
    shown = table[table["length"] == length]
    for name, colour in zip(FORMULAS, ("C0", "C3", "C2", "C1"), strict=True):
        curve = shown[shown["activation"] == name]
        axes.plot(curve["snr"], curve["risk"], color=colour, linewidth=2.4)
        limit = curve["risk"] / curve["ratio"]
        axes.plot(curve["snr"], limit, color=colour, linewidth=1.4, linestyle="--")
        last = curve.iloc[-1]
        place = {"softmax": (8, -8), "hardmax": (8, 8)}.get(name, (8, 0))
        label(axes, last["snr"], last["risk"], name, colour, xytext=place, fontsize=12)
    axes.plot([], [], color=ink(), linewidth=2.4, label="exact risk")
    axes.plot([], [], color=ink(), linewidth=1.4, linestyle="--", label="limit formula")
    axes.set(xscale="log", yscale="log", xlabel=r"signal strength $\nu$", ylabel="excess risk")
    axes.set(title=f"prompts of {length} tokens", ylim=(shown["risk"].min() / 2, 3))
    axes.set_xticks([5, 10, 20, 40, 80], ["5", "10", "20", "40", "80"])
    axes.minorticks_off()
    axes.legend(loc="lower left")
    return figure
