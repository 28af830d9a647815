r"""A regression head trained on short prompts shrinks its output too much on long ones; a factor $\ln L'$ overshoots.

Left: risk of a head trained on prompts of one length, on prompts of length $L'$, with its scores unchanged, multiplied
by powers of $\ln L'/\ln L$, or by the best factor. Retrained: the best head for the length of use. Points: simulated
prompts, with two standard errors. Right: the factors. All lines are exact.

Alt: Two panels against length. Left, a dashed curve falls like one over the length, and one curve stays close above it;
the unchanged head levels off; the heads with growing factors turn upwards and end highest. Right, the best factor rises
a little above one and levels off, while the two others continue to rise.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.trained_at_other_lengths.parameters import FULL_POWER, ROOT_POWER
from chapters.trained_at_other_lengths.regression import Risks, Trial
from chapters.trained_at_other_lengths.style import COLOURS, FIXED, LOGARITHM, ROOT
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, error_bars, few_decades, ink, label, ticks_at

BEST, RETRAINED, DRAWN = "best factor", "retrained", "drawn"
POWERS = {ROOT: ROOT_POWER, LOGARITHM: FULL_POWER}
# Label of each curve and, in the left panel, the place of the label's right edge, from the last point of the curve.
LABELS = {
    FIXED: ("unchanged", (-2, 8)),
    ROOT: (r"$\times\sqrt{\ln\,L'/\ln\,L}$", (-2, -34)),
    LOGARITHM: (r"$\times\ln\,L'/\ln\,L$", (-2, -24)),
    BEST: ("best factor", (-2, 76)),
    RETRAINED: ("retrained", (-22, 4)),
}


def numbers(risks: Risks, trials: Sequence[Trial]) -> Numbers:
    """Return risks and factors at every length of use, and the claims on simulations, best factor and scaling."""
    growth = np.log(risks.used) / np.log(risks.trained)
    curves = [
        (FIXED, 1.0, risks.unchanged),
        *((name, growth**power, risks.scaled[power]) for name, power in POWERS.items()),
        (BEST, risks.factor, risks.best_scaled),
        (RETRAINED, 1.0, risks.retrained),
    ]
    exact = {"trained": risks.trained, "used": risks.used, "std_error": 0.0}
    groups = [
        exact | {"use": use, "factor": factor, "risk": risk, "price": risk / risks.retrained}
        for use, factor, risk in curves
    ]
    for trial in trials:
        pair = {"trained": trial.trained, "used": trial.used, "factor": 1.0}
        for use, risk, std_error in ((FIXED, trial.exact, 0.0), (DRAWN, trial.drawn, trial.std_error)):
            price = risk / trial.retrained
            groups.append(pair | {"use": use, "risk": risk, "price": price, "std_error": std_error})
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
    return Numbers(Table.of(groups, columns), _claims(risks, pd.DataFrame(trials)))


def _claims(risks: Risks, trials: pd.DataFrame) -> Claims:
    claim = Claims("temperature", source="derived here", box="best-factor")
    claim.agree(
        "regression-drawn",
        "The risk of a softmax head trained at one length and used at another, on simulated prompts, agrees with "
        f"the exact one at {len(trials)} pairs of lengths",
        (trials["drawn"] - trials["exact"]) / trials["std_error"],
        rejects=("the risk at the length of training", (trials["drawn"] - trials["at_training"]) / trials["std_error"]),
    )
    longest, root = risks.used[-1], np.sqrt(np.log(risks.used[-1]) / np.log(risks.trained))
    # the distance of the best factor from its limit
    moved = risks.infinite_factor * risks.retrained[-1] / risks.unchanged[-1]
    claim.equal(
        "best-factor",
        f"The best factor on the scores of a regression head trained on {risks.trained:,} tokens tends to $1/(bu)$ "
        f"for long prompts (measured: the best factor at {longest:,} tokens).",
        risks.factor[-1],
        risks.infinite_factor,
        within=moved,
        because="a finite prompt moves the factor by about its least risk over the risk that the shrinkage costs, "
        "which is the risk of unchanged scores",
        rejects=("$√(ln L'/ln L)$", root),
    )
    claim.at_least(
        "scaling-costs",
        f"On {longest:,} tokens, a regression head trained on {risks.trained:,} has a larger risk with scores times "
        "$√(ln L'/ln L)$ than with unchanged scores (measured: the ratio of the two risks).",
        risks.scaled[ROOT_POWER][-1] / risks.unchanged[-1],
        1.0,
        because="at 1 the two risks are equal",
        rejects=("the best factor in place of $√(ln L'/ln L)$", risks.best_scaled[-1] / risks.unchanged[-1]),
        # on infinite prompts the risk of a factor s is proportional to (1 - s b u)²
        requires=(
            risks.infinite_factor + moved < (1 + root) / 2,
            f"for long prompts the best factor, $1/(bu) = {risks.infinite_factor:.3g}$, is nearer to "
            f"$√(ln L'/ln L) = {root:.3g}$ than to 1, so that unchanged scores may cost more",
        ),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw risks on the left and factors on the right, against the length of use."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.5), width_ratios=(1.4, 1.0))
    trained = table["trained"].iloc[0]
    rows = table[table["trained"] == trained].drop_duplicates(["use", "used"]).sort_values("used")
    colours = COLOURS | {BEST: "C3", RETRAINED: ink()}
    for use, (name, shift) in LABELS.items():
        curve = rows[rows["use"] == use]
        look = {"color": colours[use], "linewidth": 2, "linestyle": "--" if use == RETRAINED else "-"}
        last = curve.iloc[-1]
        left.plot(curve["used"], curve["risk"], **look)
        label(left, last["used"], last["risk"], name, colours[use], xytext=shift, ha="right")
        if use != RETRAINED:
            right.plot(curve["used"], curve["factor"], **look)
            label(right, last["used"], last["factor"], name, colours[use], xytext=(7, -3 if use == FIXED else 3))
    for use, text, height in ((FIXED, "shrinks its\noutput too much", -17), (LOGARITHM, "overshoots", -38)):
        last = rows[rows["use"] == use].iloc[-1]
        label(left, last["used"], last["risk"], text, COLOURS[use], xytext=(-2, height), ha="right")
    drawn = rows[rows["use"] == DRAWN]
    look = {"color": COLOURS[FIXED], "marker": "o", "fillstyle": "none"}
    error_bars(left, drawn["used"], drawn["risk"], drawn["std_error"], **look)
    for panel in (left, right):
        panel.axvline(trained, color=ink(), linewidth=1, linestyle=":")
        panel.set(xscale="log", xlabel="prompt length in use, $L'$")
    left.set(yscale="log", ylabel="risk, $R_{L'}$")
    left.annotate(" trained here", (trained, 0.98), xycoords=("data", "axes fraction"), va="top", color=ink())
    few_decades(left)
    right.set(yscale="log", ylabel="factor on the scores")
    ticks_at(right.yaxis, [0.5, 1, 2, 3])
    right.minorticks_off()
    return figure
