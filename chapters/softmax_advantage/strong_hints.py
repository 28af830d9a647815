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
from chapters.softmax_advantage.strong_laws import LAWS, STRONG, STRONGEST
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink, sequence

# The laws, as the picture names them.
FORMULAS = {
    "softmax": r"$(L-1)\frac{1}{2}\sqrt{\pi/\nu}\,e^{-\nu/4}$",
    "hardmax": r"$\frac{4}{\pi}\,\times$ the same",
    "sigmoid": r"$\sqrt{(L-1)\,\pi/2\nu}\,e^{-\nu/8}$",
    "linear": r"$L/\nu$",
}


def numbers(risks: Mapping[int, Risks]) -> Numbers:
    """Exact risks over the laws they should tend to; exponents, a power and a price, all of two tokens."""
    frame = _frame(risks)
    return Numbers(_table(frame), _claims(frame))


def _frame(risks: Mapping[int, Risks]) -> pd.DataFrame:
    frames = [
        pd.DataFrame(
            {
                "activation": name,
                "length": length,
                "snr": these.snrs,
                "risk": risk,
                "ratio": risk / LAWS[name](length, these.snrs),
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
    """Exponents between two strong hints, and the price of a hard decision extrapolated in 1/ν; all at L = 2."""
    short = frame[frame["length"] == 2].pivot(index="snr", columns="activation", values="risk")
    weak, strong = (short.loc[short.index[np.argmin(np.abs(short.index - snr))]] for snr in (STRONG, STRONGEST))
    price = 2 * strong["hardmax"] / strong["softmax"] - weak["hardmax"] / weak["softmax"]
    words = {"softmax": ("of softmax, the Bayes risk,", "1/4", 0.25), "sigmoid": ("of the best sigmoid", "1/8", 0.125)}
    between = f"between ν = {STRONG:g} and {STRONGEST:g} at L = 2"
    exponential = [
        Claim(
            id=f"softmax-advantage-{name}-exponent",
            statement=f"The risk {whose} falls like e^(-ν·{fraction})/√ν: the exponent {between}.",
            source="derived here",
            box="laws-at-strong-hints",
            measured=np.log(weak[name] * np.sqrt(STRONG) / (strong[name] * np.sqrt(STRONGEST))) / (STRONGEST - STRONG),
            expected=expected,
            tolerance=0.003,
            alternative=Alternative("half of it, or for the sigmoid twice", 0.375 - expected),
        )
        for name, (whose, fraction, expected) in words.items()
    ]
    return [
        *exponential,
        Claim(
            id="softmax-advantage-linear-power",
            statement=(
                f"The risk of linear attention falls only like a power of ν: log-log slope {between}, still on its way "
                "to -1."
            ),
            source="derived here",
            box="laws-at-strong-hints",
            measured=float(np.log(strong["linear"] / weak["linear"]) / np.log(STRONGEST / STRONG)),
            expected=-1.0,
            tolerance=0.1,
            alternative=Alternative(
                "an exponential, like softmax",
                float(np.log(strong["softmax"] / weak["softmax"]) / np.log(STRONGEST / STRONG)),
            ),
        ),
        Claim(
            id="softmax-advantage-hardmax-price",
            statement=(
                "Hardmax pays a factor 4/π for its hard decision: its risk over the Bayes risk, extrapolated in 1/ν "
                f"{between}."
            ),
            source="derived here",
            box="laws-at-strong-hints",
            measured=float(price),
            expected=4 / np.pi,
            tolerance=0.005,
            alternative=Alternative("no price at all", 1.0),
        ),
    ]


def draw(table: pd.DataFrame) -> Figure:
    """A panel a head: ratios of exact risk to law, a curve a length."""
    figure, panels = plt.subplots(1, 4, figsize=(10.5, 4.0), sharex=True, sharey=True)
    lengths = sorted(table["length"].unique().tolist())
    for panel, (name, law) in zip(panels, FORMULAS.items(), strict=True):
        for length, colour in zip(lengths, sequence(len(lengths)), strict=True):
            curve = table[(table["activation"] == name) & (table["length"] == length)]
            panel.plot(curve["snr"], curve["ratio"], color=colour, linewidth=2, label=f"$L={length}$")
        panel.axhline(1, color=ink(), linestyle="--", linewidth=1.5)
        panel.set(xscale="log", ylim=(0, 1.1), title=f"{name}\n{law}", xlabel=r"$\nu$")
        panel.set_xticks([5, 20, 80], ["5", "20", "80"])
        panel.minorticks_off()
    panels[0].set_ylabel("exact risk / law")
    panels[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
