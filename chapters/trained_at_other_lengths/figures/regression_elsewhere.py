r"""A regression head trained on short prompts shrinks its output too much on long ones; a factor $\ln L'$ overshoots.

Left: risk of the softmax head that was trained on prompts of one length (vertical line), against the length $L'$ of the
prompts on which it is used, with its scores unchanged, multiplied by powers of $\ln L'/\ln L$, or multiplied by the
factor with the least risk at this length. Dashed: the best head for the length of use. Points: simulated prompts, with
two standard errors. Right: the factors on the scores. All lines are exact. The grey tick on the axis is the longest
prompt of {doc}`real_heads`.

Alt: Two panels against length. Left, a dashed curve falls like one over the length, and one curve stays close above it;
the unchanged head levels off; the heads with growing factors turn upwards and end highest. Right, the best factor rises
a little above one and levels off, while the two others continue to rise.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.style import mark_real_prompt
from chapters.trained_at_other_lengths.parameters import FULL_POWER, ROOT_POWER
from chapters.trained_at_other_lengths.regression import Risks, Trial
from chapters.trained_at_other_lengths.style import COLOURS, FIXED, LOGARITHM, ROOT
from companion import Alternative, Claim, Column, Numbers, Table, WithheldClaim
from companion.figures.style import WIDE, error_bars, few_decades, ink, label

BEST, RETRAINED, DRAWN = "best factor", "retrained", "drawn"
POWERS = {ROOT: ROOT_POWER, LOGARITHM: FULL_POWER}
# Where the curves of the left panel are labelled, from their last points.
PLACES = {
    FIXED: {"xytext": (-2, 8), "ha": "right"},
    ROOT: {"xytext": (-2, -34), "ha": "right"},
    LOGARITHM: {"xytext": (-2, -30), "ha": "right"},
    BEST: {"xytext": (-2, 105), "ha": "right"},
    RETRAINED: {"xytext": (-22, 4), "ha": "right"},
}
LABELS = {FIXED: "unchanged", ROOT: r"$\times\sqrt{\ln\,L'/\ln\,L}$", LOGARITHM: r"$\times\ln\,L'/\ln\,L$"}


def numbers(risks: Risks, trials: Sequence[Trial]) -> Numbers:
    """Return risks and factors at every length of use, and the claims on simulations, best factor and scaling."""
    return Numbers(_table(risks, trials), (_drawn_claim(trials), _factor_claim(risks), _price_claim(risks)))


def _table(risks: Risks, trials: Sequence[Trial]) -> Table:
    """Return the table by factor and length of use."""
    growth = np.log(risks.used) / np.log(risks.trained)

    def rows(use, factor, values):
        shared = {"use": use, "trained": risks.trained, "used": risks.used, "factor": factor, "risk": values}
        return pd.DataFrame(shared | {"price": values / risks.retrained, "std_error": 0.0})

    frames = [rows(FIXED, 1.0, risks.unchanged)]
    frames += [rows(name, growth**power, risks.scaled[power]) for name, power in POWERS.items()]
    frames += [rows(BEST, risks.factor, risks.best_scaled), rows(RETRAINED, 1.0, risks.retrained)]
    for trial in trials:
        shared = {"trained": trial.trained, "used": trial.used, "factor": 1.0}
        exact = {"use": FIXED, "risk": trial.exact, "price": trial.exact / trial.retrained, "std_error": 0.0}
        drawn = {"use": DRAWN, "risk": trial.drawn, "price": trial.drawn / trial.retrained}
        frames.append(pd.DataFrame([shared | exact, shared | drawn | {"std_error": trial.std_error}]))
    columns = {
        "use": Column(
            "Factor on the scores; `retrained`: the best head for this length; `drawn`: simulated prompts", "name"
        ),
        "trained": Column("Prompt length $L$ of training", "tokens"),
        "used": Column("Prompt length $L'$ of use", "tokens"),
        "factor": Column("Factor on the scores", absolute=1e-5),
        "risk": Column("Risk $½ 𝔼(ŷ - y)²$", std_error="std_error", absolute=1e-7),
        "price": Column("Risk over that of the best head for length $L'$", moves_with="risk"),
        "std_error": Column("Standard error of the risk; 0 where it is exact", moves_with="risk"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _drawn_claim(trials: Sequence[Trial]) -> Claim:
    """Claim that simulated prompts have the exact risks."""

    def worst(expected) -> float:
        return max(abs(trial.drawn - expected(trial)) / trial.std_error for trial in trials)

    return Claim.consistent(
        "temperature-regression-drawn",
        (
            "The risk of a softmax head trained at one length and used at another, on simulated prompts, agrees with "
            f"the exact one at {len(trials)} pairs of lengths (measured: the largest deviation in standard errors)."
        ),
        worst(lambda trial: trial.exact),
        comparisons=len(trials),
        source="derived here",
        box="best-factor",
        alternative=Alternative("the risk at the length of training", worst(lambda trial: trial.at_training)),
    )


def _factor_claim(risks: Risks) -> Claim:
    """Claim that the best factor tends to 1/(bu)."""
    return Claim.equal(
        "temperature-best-factor",
        (
            f"The best factor on the scores of a regression head trained on {risks.trained:,} tokens tends to $1/(bu)$ "
            f"for long prompts (measured: the best factor at {risks.used[-1]:,} tokens)."
        ),
        float(risks.factor[-1]),
        risks.infinite_factor,
        within=float(risks.infinite_factor * risks.retrained[-1] / risks.unchanged[-1]),
        because=(
            "a finite prompt moves the factor by about its least risk over the risk that the shrinkage costs, which is "
            "the risk of unchanged scores"
        ),
        source="derived here",
        box="best-factor",
        alternative=Alternative("$√(ln L'/ln L)$", float(np.sqrt(np.log(risks.used[-1]) / np.log(risks.trained)))),
    )


def _price_claim(risks: Risks) -> Claim | WithheldClaim:
    """Claim that the factor √(ln L'/ln L) costs more than unchanged scores on the longest prompts."""

    def price(values) -> float:
        return float(values[-1] / risks.unchanged[-1])

    claim = Claim.at_least(
        "temperature-scaling-costs",
        (
            f"On {risks.used[-1]:,} tokens, a regression head trained on {risks.trained:,} has a larger risk with "
            "scores times $√(ln L'/ln L)$ than with unchanged scores (measured: the ratio of the two risks)."
        ),
        price(risks.scaled[POWERS[ROOT]]),
        1.0,
        because="at 1 the two risks are equal",
        source="derived here",
        box="best-factor",
        alternative=Alternative("the best factor in place of $√(ln L'/ln L)$", price(risks.best_scaled)),
    )
    # on infinite prompts the risk of a factor s is proportional to (1 - s b u)²
    root = float(np.sqrt(np.log(risks.used[-1]) / np.log(risks.trained)))
    if risks.infinite_factor * (1 + risks.retrained[-1] / risks.unchanged[-1]) < (1 + root) / 2:
        return claim
    return claim.withheld(
        f"for long prompts the best factor, $1/(bu) = {risks.infinite_factor:.3g}$, is nearer to "
        f"$√(ln L'/ln L) = {root:.3g}$ than to 1, so that unchanged scores may cost more"
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw risks on the left and factors on the right, against the length of use."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.5))
    trained = table["trained"].iloc[0]
    rows = table[table["trained"] == trained].drop_duplicates(["use", "used"]).sort_values("used")
    looks = {name: {"color": colour} for name, colour in COLOURS.items()}
    looks[BEST] = {"color": "C3"}
    looks[RETRAINED] = {"color": ink(), "linestyle": "--"}
    names = {**LABELS, BEST: "best factor", RETRAINED: "retrained"}
    for use, look in looks.items():
        curve = rows[rows["use"] == use]
        left.plot(curve["used"], curve["risk"], **({"linewidth": 2} | look))
        last = curve.iloc[-1]
        label(left, last["used"], last["risk"], names[use], look["color"], **PLACES[use])
        if use == RETRAINED:
            continue
        right.plot(curve["used"], curve["factor"], **({"linewidth": 2} | look))
        label(right, last["used"], last["factor"], names[use], look["color"], xytext=(7, -3 if use == FIXED else 3))
    drawn = rows[rows["use"] == DRAWN]
    error_bars(
        left, drawn["used"], drawn["risk"], drawn["std_error"], color=COLOURS[FIXED], marker="o", fillstyle="none"
    )
    for panel in (left, right):
        panel.axvline(trained, color=ink(), linewidth=1, linestyle=":")
        panel.set(xscale="log", xlabel="prompt length in use, $L'$")
    left.set(yscale="log", ylabel="risk, $R_{L'}$")
    left.annotate(" trained here", (trained, 0.02), xycoords=("data", "axes fraction"), va="bottom", color=ink())
    few_decades(left)
    right.set(yscale="log", ylabel="factor on the scores")
    right.set_yticks([0.5, 1, 2, 3], labels=["0.5", "1", "2", "3"])
    right.minorticks_off()

    mark_real_prompt(right)
    return figure
