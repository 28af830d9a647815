r"""Softmax attains the Bayes risk; sigmoid and linear heads exceed it by a factor that grows with the signal strength.

Each curve is the lowest excess risk of one kind of head, exact; the table has shorter prompts, too. In the spiked model
the relevant token is shifted along $k^\star$; in the max model tokens with a larger score are more likely to be
relevant. Numbers: the factor by which sigmoid exceeds softmax.

Alt: Two rows of log-log panels of risk against signal strength, for prompts of two lengths. In each panel the solid
softmax curve is lowest, the dashed sigmoid curve above it and the dotted linear curve highest. Vertical lines between
sigmoid and softmax have larger factors at the larger signal strength.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.softmax_advantage.best_risks import HalfStrength, TwoIntegrals
from chapters.softmax_advantage.models import Risks
from chapters.softmax_advantage.style import DASHES, TITLES
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, few_decades, ink, label

# Signal strengths at which the picture has the factor between sigmoid and softmax.
COMPARED = (10.0, 30.0)
COLOURS = {"softmax": "C0", "linear": "C1", "sigmoid": "C2"}


def numbers(risks: Mapping[tuple[str, int], Risks], integrals: TwoIntegrals, half: HalfStrength) -> Numbers:
    """Return risks by model, length and ν; claim that both integrals agree, and what one score is worth."""
    groups = [
        {"model": model, "length": length, "snr": curves.snrs, **curves.by_head}
        for (model, length), curves in risks.items()
    ]
    columns = {
        "model": Column("Model of the relevant token: spiked or max", "name"),
        "length": Column("Tokens in a prompt, $L$", "tokens"),
        "snr": Column("Signal strength $ν$"),
        "softmax": Column("Excess risk of the best softmax head, the Bayes risk"),
        "sigmoid": Column("Excess risk of the best head with element-wise sigmoid weights"),
        "linear": Column("Excess risk of the best head with linear weights"),
    }
    claim = Claims("softmax-advantage")
    seconds = (integrals.second, integrals.second_longer)
    apart, apart_longer = (np.abs(integrals.first - second).max() for second in seconds)
    claim.at_most(
        "two-integrals",
        r"The mean posterior probability of the tokens that are not relevant, $1 - \mathbb{E} p_ε$, equals "
        r"$1 - \mathbb{E} Σp²$, both computed by separate integrals (largest difference, from two tokens to a "
        "hundred million).",
        apart,
        0,
        within=1e-9,
        because="the documented error of the two quadratures, with a reserve",
        source="[D26, Prop. 4.2]",
        box="d26-bayes",
        rejects=("one of the two integrals has one token more", apart_longer),
    )
    # relative differences, since the risks fall by orders of magnitude
    from_half, from_full = (np.abs(half.elementwise / bayes - 1).max() for bayes in (half.bayes_of_half, half.bayes))
    claim.at_most(
        "half-strength",
        "With two tokens in the spiked model, the risk of the best element-wise weights, which depend on one score "
        "only, is the Bayes risk at half the signal strength (largest relative difference at five strengths).",
        from_half,
        0,
        within=1e-8,
        because="the documented error of the two quadratures, with a reserve",
        source="derived here",
        box="one-of-two-scores",
        rejects=("the Bayes risk at the full signal strength", from_full),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one row per model, a column for each of the two longest prompts, and one curve per head."""
    lengths = sorted(table["length"].unique().tolist())[-2:]
    figure, panels = plt.subplots(2, len(lengths), figsize=(WIDE, 6.6), sharex=True, sharey="row", squeeze=False)
    names = {"linear": "linear", "sigmoid": "sigmoid", "softmax": "softmax\n(Bayes)"}
    for row, (model, title) in zip(panels, TITLES.items(), strict=True):
        lowest = max(1e-4, 0.7 * table[table["model"] == model]["softmax"].min())
        for panel, length in zip(row, lengths, strict=True):
            curve = table[(table["model"] == model) & (table["length"] == length)]
            for name, dashes in DASHES.items():
                panel.plot(curve["snr"], curve[name], dashes, color=COLOURS[name], linewidth=2)
            panel.set(xscale="log", yscale="log", title=f"{title}, $L={length}$", ylim=(lowest, 1.6))
            few_decades(panel)
            for snr in COMPARED:
                at = curve.iloc[(curve["snr"] - snr).abs().argmin()]
                panel.plot([at["snr"]] * 2, at[["softmax", "sigmoid"]], ".-", color=ink(), linewidth=1.3)
                factor = rf"$\times\,{at['sigmoid'] / at['softmax']:.2g}$"
                label(panel, at["snr"], at["softmax"], factor, ink(), xytext=(-3, -10), ha="right")
        row[0].set_ylabel("excess risk")
        last = curve[curve["softmax"] > lowest].iloc[-1]
        for name, words in names.items():
            label(row[-1], curve["snr"].max(), max(last[name], lowest), words, COLOURS[name])
    # the last value of `lowest` is that of the lower row
    text = r"$\times$: risk of sigmoid / risk of softmax"
    label(panels[1, 0], curve["snr"].min(), lowest, text, ink(), xytext=(0, 14))
    plt.setp(panels[-1], xlabel=r"signal strength $\nu$")
    return figure
