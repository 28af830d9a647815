r"""Regression: a head trained on short prompts answers long ones too timidly, and scaling with $\ln L$ makes it wild.

Left: risk of the softmax head trained on prompts of one length (vertical line) against the length of the prompts it is
used on, with its scores left alone, multiplied by powers of $\ln L'/\ln L$, or by the factor that is best at this
length; dashed, the best head of the length of use. Points: drawn prompts. Right: that best factor, beside the two
scalings. Exact, but for the points.

Alt: Two panels against length. Left, a dashed curve falls like one over the length, and one curve stays close above it;
the head left alone levels off; the scaled heads turn up again and end highest. Right, the best factor rises a little
above one and levels off, while the two scalings go on rising.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.temperature_and_length.parameters import FULL_POWER, ROOT_POWER
from chapters.temperature_and_length.regression import Risks, Trial
from chapters.temperature_and_length.style import COLOURS, FIXED, LOGARITHM, ROOT, SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, few_decades, headline, ink, label
from lib.statistics import comparison_quantile

REPAIRED, RETRAINED, DRAWN = "best factor", "retrained", "drawn"
POWERS = {ROOT: ROOT_POWER, LOGARITHM: FULL_POWER}
LABELS = {FIXED: "left alone", ROOT: r"$\times\sqrt{\ln\,L'/\ln\,L}$", LOGARITHM: r"$\times\ln\,L'/\ln\,L$"}


def numbers(risks: Risks, trials: Sequence[Trial]) -> Numbers:
    """Risks and factors at every length of use; draws agree, the best factor has a limit, and scaling costs more."""
    return Numbers(_table(risks, trials), (_drawn_claim(trials), _factor_claim(risks), _price_claim(risks)))


def _table(risks: Risks, trials: Sequence[Trial]) -> Table:
    growth = np.log(risks.used) / np.log(risks.trained)

    def rows(use, factor, values):
        given = {"use": use, "trained": risks.trained, "used": risks.used, "factor": factor, "risk": values}
        return pd.DataFrame(given | {"price": values / risks.retrained, "std_error": 0.0})

    frames = [rows(FIXED, 1.0, risks.kept)]
    frames += [rows(name, growth**power, risks.scaled[power]) for name, power in POWERS.items()]
    frames += [rows(REPAIRED, risks.factor, risks.repaired), rows(RETRAINED, 1.0, risks.retrained)]
    for one in trials:
        given = {"trained": one.trained, "used": one.used, "factor": 1.0}
        exact = {"use": FIXED, "risk": one.exact, "price": one.exact / one.retrained, "std_error": 0.0}
        drawn = {"use": DRAWN, "risk": one.drawn, "price": one.drawn / one.retrained, "std_error": one.std_error}
        frames.append(pd.DataFrame([given | exact, given | drawn]))
    columns = {
        "use": Column("What the scores are multiplied by; `retrained`: another head; `drawn`: drawn prompts", "name"),
        "trained": Column("Length L of training", "tokens"),
        "used": Column("Length L' of use", "tokens"),
        "factor": Column("What the scores are multiplied by", absolute=1e-5),
        "risk": Column("½ E(ŷ - y)²", std_error="std_error", absolute=1e-7),
        "price": Column("The same over that of the best head of length L'", moves_with="risk"),
        "std_error": Column("Standard error of the risk; 0 where it is exact", moves_with="risk"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _drawn_claim(trials: Sequence[Trial]) -> Claim:
    def worst(expected) -> float:
        return max(abs(one.drawn - expected(one)) / one.std_error for one in trials)

    return Claim(
        id="temperature-regression-drawn",
        statement=(
            f"Trained at one length and used at another, at {len(trials)} pairs: on drawn prompts the risk of softmax "
            "attention is the exact one, the worst deviation in standard errors."
        ),
        source="derived here",
        box="best-factor",
        measured=worst(lambda one: one.exact),
        expected=0.0,
        tolerance=comparison_quantile(len(trials)),
        alternative=Alternative("the risk at the length of training", worst(lambda one: one.at_training)),
    )


def _factor_claim(risks: Risks) -> Claim:
    return Claim(
        id="temperature-best-factor",
        statement=(
            f"The factor that repairs the scores of a head trained on {risks.trained} tokens tends to 1/(bu), and does "
            f"not grow without bound: the best one at {risks.used[-1]:,} tokens."
        ),
        source="derived here",
        box="best-factor",
        measured=float(risks.factor[-1]),
        expected=risks.answered,
        # what a finite prompt moves it by is of the order of its least risk over the squared shrinkage that is repaired
        tolerance=float(risks.answered * risks.retrained[-1] / risks.kept[-1]),
        alternative=Alternative("√(ln L'/ln L)", float(np.sqrt(np.log(risks.used[-1]) / np.log(risks.trained)))),
    )


def _price_claim(risks: Risks) -> Claim:
    def price(values) -> float:
        return float(values[-1] / risks.kept[-1])

    return Claim(
        id="temperature-scaling-costs",
        statement=(
            f"Used on {risks.used[-1]:,} tokens, a head trained on {risks.trained} loses more with scores times "
            "√(ln L'/ln L) than with scores left alone: the ratio of the risks."
        ),
        source="derived here",
        box="best-factor",
        measured=price(risks.scaled[POWERS[ROOT]]),
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("the best factor in its place", price(risks.repaired)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Left risks, right factors, against the length of use."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE)
    trained = table["trained"].iloc[0]
    here = table[table["trained"] == trained].drop_duplicates(["use", "used"]).sort_values("used")
    looks = {name: {"color": colour} for name, colour in COLOURS.items()}
    looks[REPAIRED] = {"color": "C3"}
    looks[RETRAINED] = {"color": ink(), "linestyle": "--"}
    names = {**LABELS, REPAIRED: "best factor"}
    for use, look in looks.items():
        curve = here[here["use"] == use]
        left.plot(curve["used"], curve["risk"], **({"linewidth": 2} | look))
        last = curve.iloc[-1]
        if use == RETRAINED:
            label(left, last["used"], last["risk"], "retrained", ink(), xytext=(-14, -6), ha="right")
            continue
        right.plot(curve["used"], curve["factor"], **({"linewidth": 2} | look))
        label(right, last["used"], last["factor"], names[use], look["color"], xytext=(7, -3 if use == FIXED else 3))
    drawn = here[here["use"] == DRAWN]
    error_bars(
        left, drawn["used"], drawn["risk"], drawn["std_error"], color=COLOURS[FIXED], marker="o", fillstyle="none"
    )
    for panel in (left, right):
        panel.axvline(trained, color=ink(), linewidth=1, linestyle=":")
        panel.set(xscale="log", xlabel="length of use, $L'$")
    left.set(yscale="log", ylabel="risk, $R_{L'}$")
    left.annotate(" trained here", (trained, 0), xycoords=("data", "axes fraction"), va="bottom", color=ink())
    few_decades(left)
    right.set(yscale="log", ylabel="what the scores are multiplied by")
    right.set_yticks([0.5, 1, 2, 3], labels=["0.5", "1", "2", "3"])
    right.minorticks_off()

    headline(figure, "Trained on short prompts, a head is too timid on long ones; ln L makes it wild")
    return figure
