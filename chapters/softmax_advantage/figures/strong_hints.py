r"""Exact risks in the spiked model over their laws at strong hints.

Each panel divides the exact risk of one kind of head by the law in its title; a law is right where the ratio
tends to 1 (dashed). Corrections are of relative size $1/\nu$ and grow with $L$.

Alt: Four panels, for softmax, hardmax, sigmoid and linear attention. In each the ratio of exact risk to law rises
toward one as the hint gets stronger, first for two tokens, last for the longest prompt.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.softmax_advantage.models import Risks
from chapters.softmax_advantage.strong_signals import (
    STRONG,
    STRONG_LIMITS,
    STRONGEST,
    WEAKER,
    LimitConstants,
    StrongLinear,
    largest_softmax_error,
)
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label, sequence

# The laws, as the picture names them.
FORMULAS = {
    "softmax": r"$(L-1)\frac{1}{2}\sqrt{\pi/\nu}\,e^{-\nu/4}$",
    "hardmax": r"$\frac{4}{\pi}\,\times$ the same",
    "sigmoid": r"$\sqrt{(L-1)\,\pi/2\nu}\,e^{-\nu/8}$",
    "linear": r"$L/\nu$",
}


def numbers(risks: Mapping[int, Risks], linear: StrongLinear, every: LimitConstants) -> Numbers:
    """Exact risks over the laws they should tend to; exponents, a power and a price of two tokens; constants."""
    frame = _frame(risks)
    return Numbers(_table(frame), [*_claims(frame), _constant_claim(linear), *_corollary_claims(every)])


def _frame(risks: Mapping[int, Risks]) -> pd.DataFrame:
    frames = [
        pd.DataFrame(
            {
                "activation": name,
                "length": length,
                "snr": these.snrs,
                "risk": risk,
                "ratio": risk / STRONG_LIMITS[name](length, these.snrs),
            }
        )
        for length, these in risks.items()
        for name, risk in these.by_head.items()
    ]
    return pd.concat(frames, ignore_index=True)


def _table(frame: pd.DataFrame) -> Table:
    """By activation, length and ν."""
    columns = {
        "activation": Column("What a head makes of its scores", "name"),
        "length": Column("Tokens in a prompt, L", "tokens"),
        "snr": Column("Strength of the hint, ν"),
        "risk": Column("Excess risk of the best head", absolute=1e-13),
        "ratio": Column("Excess risk over its law at large ν", absolute=1e-4),
    }
    return Table(frame, columns)


def _claims(frame: pd.DataFrame) -> list[Claim]:
    """Exponents, a power, and the price of a hard decision, at L = 2, between the two strongest of three hints.

    Risks are their laws times 1 + O(1/ν). So from the weaker pair of hints to the stronger what is missing at least
    halves, and twice the difference of the two readings bounds what the second one misses, to leading order.
    """
    short = frame[frame["length"] == 2].pivot(index="snr", columns="activation", values="risk")
    at = [short.loc[short.index[np.argmin(np.abs(short.index - snr))]] for snr in (WEAKER, STRONG, STRONGEST)]

    def twice(read):
        """The reading of the stronger pair, and twice what it differs from that of the weaker one."""
        weaker, stronger = read(*at[:2]), read(*at[1:])
        return stronger, 2 * abs(stronger - weaker)

    def exponent(head):
        root = 0.5 * np.log(2)  # each hint is twice the one before
        return twice(lambda a, b: (np.log(a[head] / b[head]) - root) / (b.name - a.name))

    def price(head):
        return twice(lambda a, b: 2 * b[head] / b["softmax"] - a[head] / a["softmax"])

    def power(head):
        return twice(lambda a, b: np.log2(b[head] / a[head]))

    between = f"between ν = {STRONG:g} and {STRONGEST:g} at L = 2"
    words = {"softmax": ("of softmax, the Bayes risk,", "1/4", 0.25), "sigmoid": ("of the best sigmoid", "1/8", 0.125)}
    exponential = [
        Claim(
            id=f"softmax-advantage-{name}-exponent",
            statement=f"The risk {whose} falls like e^(-ν·{fraction})/√ν: the exponent {between}.",
            source="[D26, Cor. 4.3]" if name == "softmax" else "derived here",
            box="laws-at-strong-hints",
            measured=exponent(name)[0],
            expected=expected,
            tolerance=exponent(name)[1],
            alternative=Alternative(f"the law of the {other} in its place", exponent(other)[0]),
        )
        for (name, (whose, fraction, expected)), other in zip(words.items(), ("sigmoid", "softmax"), strict=True)
    ]
    return [
        *exponential,
        Claim(
            id="softmax-advantage-linear-power",
            statement=(
                f"The risk of linear attention falls only like a power of ν: log-log slope {between}, still on its way "
                "to -1."
            ),
            source="[D26, Cor. 4.3]",
            box="laws-at-strong-hints",
            measured=power("linear")[0],
            expected=-1.0,
            tolerance=power("linear")[1],
            alternative=Alternative("an exponential, like softmax", power("softmax")[0]),
        ),
        Claim(
            id="softmax-advantage-hardmax-price",
            statement=(
                "Hardmax pays a factor 4/π for its hard decision: its risk over the Bayes risk, extrapolated in 1/ν "
                f"{between}."
            ),
            source="derived here",
            box="laws-at-strong-hints",
            measured=price("hardmax")[0],
            expected=4 / np.pi,
            tolerance=price("hardmax")[1],
            alternative=Alternative("softmax, which decides softly, in its place", price("softmax")[0]),
        ),
    ]


def _constant_claim(linear: StrongLinear) -> Claim:
    """The constant in front of 1/ν: L, and not L/(L - 1)."""
    length, (once, twice) = linear.length, linear.scaled
    return Claim(
        id="softmax-advantage-linear-constant",
        statement=(
            f"The risk of linear attention in the spiked model tends to L/ν: ν times the risk at L = {length}, "
            "extrapolated in 1/ν from two strong hints."
        ),
        source="[D26, Cor. 4.3]",
        box="cor-4-3-as-quoted",
        measured=2 * twice - once,
        expected=length,
        tolerance=abs(twice - once),  # what the extrapolation changed
        alternative=Alternative("the constant L/(L - 1) that a public review quotes", length / (length - 1)),
    )


def _corollary_claims(every: LimitConstants) -> tuple[Claim, Claim]:
    """Corollary 4.3 in the spiked model, with its constants, at every length that was looked at."""
    lengths = every.lengths
    span = f"{len(lengths)} lengths from L = {lengths.min()} to {lengths.max()}"

    def worst(readings, constants):
        """Of the second readings, and what the first ones differ from them, twice: relative, the largest."""
        first, second = readings / constants
        return np.max(np.abs(second - 1)), 2 * np.max(np.abs(second - first))

    linear, linear_error = worst(every.linear, lengths)
    softmax, _ = worst(every.softmax, (lengths - 1) / 2)
    return (
        Claim(
            id="softmax-advantage-corollary-4-3-linear",
            statement=(
                f"Corollary 4.3, spiked, with its constant: the risk of linear attention tends to L/ν at each of "
                f"{span}; the worst relative distance, extrapolated in 1/ν."
            ),
            source="[D26, Cor. 4.3]",
            box="cor-4-3-as-quoted",
            measured=linear,
            expected=0.0,
            tolerance=linear_error,
            relation="≤",
            alternative=Alternative(
                "the constant L/(L - 1) that a public review quotes",
                worst(every.linear, lengths / (lengths - 1))[0],
            ),
        ),
        Claim(
            id="softmax-advantage-corollary-4-3-softmax",
            statement=(
                f"Corollary 4.3, spiked, with its constant: the risk of softmax tends to ½(L-1)√(π/ν) e^(-ν/4) at each "
                f"of {span}; the worst relative distance, extrapolated in 1/ν."
            ),
            source="[D26, Cor. 4.3]",
            box="laws-at-strong-hints",
            measured=softmax,
            expected=0.0,
            # what the expansion of the risk in 1/ν leaves after the extrapolation, and third tokens
            tolerance=largest_softmax_error(lengths),
            relation="≤",
            alternative=Alternative(
                "the constant of hardmax, 4/π times as large", worst(every.softmax, 2 * (lengths - 1) / np.pi)[0]
            ),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a head: ratios of exact risk to law, a curve a length under its name."""
    figure, panels = plt.subplots(1, 4, figsize=(9.5, 4.2), sharex=True, sharey=True)
    lengths = sorted(table["length"].unique().tolist())
    for panel, (name, law) in zip(panels, FORMULAS.items(), strict=True):
        for length, colour in zip(lengths, sequence(len(lengths)), strict=True):
            curve = table[(table["activation"] == name) & (table["length"] == length)]
            panel.plot(curve["snr"], curve["ratio"], color=colour, linewidth=2)
            if panel is panels[-1]:
                label(panel, curve["snr"].iloc[-1], curve["ratio"].iloc[-1], f"$L={length}$", colour)
        panel.axhline(1, color=ink(), linestyle="--", linewidth=1.5)
        panel.set(xscale="log", ylim=(0, 1.1), title=f"{name}\n{law}", xlabel=r"hint, $\nu$")
        panel.set_xticks([5, 20, 80], ["5", "20", "80"])
        panel.minorticks_off()
    last = table["snr"].max()
    label(panels[0], last, 1, "its law", ink(), xytext=(0, 8), ha="right")
    panels[0].set_ylabel("exact risk over its law at strong hints")
    headline(figure, "The stronger the hint, the nearer each head is to a law of its own")
    return figure
