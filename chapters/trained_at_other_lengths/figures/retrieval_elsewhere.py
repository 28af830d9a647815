r"""A softmax head trained on short prompts retrieves optimally from long ones; others do not, and scaling does harm.

Excess risk of heads that were trained on prompts of one length (vertical line), against the length $L'$ of the prompts
on which they are used. Dashed: the best head of the kind for the length of use; for softmax this is the same head.
Lines are exact; points have two standard errors. The output 0 has the risk 1.

Alt: Log-log chart of risk against length. The softmax curve rises slowly and stays below one, with a thin curve a
little above it. Sigmoid and linear curves touch their dashed curves at the length of training and leave them on both
sides, steeply for long prompts, where they exceed one hundred.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.trained_at_other_lengths.parameters import FULL_POWER
from chapters.trained_at_other_lengths.retrieval import Risks, Trial
from chapters.trained_at_other_lengths.style import LINEAR, SIGMOID, SOFTMAX
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, error_bars, few_decades, ink, label

COLOURS = {SOFTMAX: "C0", SIGMOID: "C2", LINEAR: "C1"}

# Smallest expected sum of squared errors of all prompts with which a simulated risk is compared. Errors are rare and of
# order 1 at strong signals, so that fewer of them are far from normal: simulated 300 times at a sum of 50, a risk is
# more than 3.9 standard errors too low in 1 %, at 100 in 0.1 %.
LEAST_ERROR = 100


def numbers(risks: Risks, trials: Sequence[Trial]) -> Numbers:
    """Return risks at every length of use, and the claims on softmax, on the sigmoid and on simulations."""
    exact = {"trained": risks.trained, "used": risks.used, "std_error": 0.0}
    groups = [
        *(exact | {"head": head, "use": "as trained", "risk": risk} for head, risk in risks.unchanged.items()),
        *(exact | {"head": head, "use": "retrained", "risk": risk} for head, risk in risks.retrained.items()),
        *(
            exact | {"head": SOFTMAX, "use": f"scores times growth^{power:g}", "risk": risk}
            for power, risk in risks.scaled.items()
        ),
    ]
    for trial in trials:
        pair = {"head": trial.head, "trained": trial.trained, "used": trial.used}
        groups.append(pair | {"use": "as trained", "risk": trial.exact, "std_error": 0.0})
        groups.append(pair | {"use": "drawn", "risk": trial.drawn, "std_error": trial.std_error})
    columns = {
        "head": Column("Activation of the head", "name"),
        "use": Column(
            "`as trained`: unchanged; `retrained`: the best head for this length; `scores times growth^power`: "
            "scores times this power of $ln L'/ln L$; `drawn`: unchanged, on simulated prompts",
            "name",
        ),
        "trained": Column("Prompt length $L$ of training", "tokens"),
        "used": Column("Prompt length $L'$ of use", "tokens"),
        "risk": Column("Excess risk; the output 0 has the excess risk 1", std_error="std_error"),
        "std_error": Column("Standard error of the risk; 0 where it is exact", moves_with="risk"),
    }
    claim = Claims("temperature", source="derived here", box="element-wise-elsewhere")
    bayes = risks.retrained[SOFTMAX]
    claim.equal(
        "softmax-keeps",
        f"A softmax head trained on prompts of {risks.trained:,} tokens has the Bayes risk on prompts of "
        f"{risks.used.min():,} to {risks.used.max():,} tokens (measured: the largest relative excess).",
        np.max(risks.unchanged[SOFTMAX] / bayes - 1),
        0.0,
        within=1e-7,
        because="two quadratures, each with a relative error of about 10⁻⁹",
        box="length-free-softmax",
        rejects=("the same head with scores times $ln L'/ln L$", np.max(risks.scaled[FULL_POWER] / bayes - 1)),
    )
    used, risk = risks.used, risks.unchanged[SIGMOID]
    line = risk[0] + (risk[1] - risk[0]) / (used[1] - used[0]) * (used[-1] - used[0])
    claim.equal(
        "sigmoid-loses",
        f"The risk of a sigmoid trained on prompts of {risks.trained:,} tokens is affine in the length of use "
        f"(measured: its risk at {used[-1]:,} tokens over the value on the line through the two shortest lengths).",
        risk[-1] / line,
        1.0,
        within=1e-4,
        because="rounding, amplified because the slope is taken between two short prompts",
        rejects=("a sigmoid retrained at every length", risks.retrained[SIGMOID][-1] / line),
    )
    _claim_simulated(claim, trials)
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one colour per head: unchanged (solid) and retrained (dashed); softmax also with scaled scores."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.8))
    trained = table["trained"].iloc[0]
    rows = table[table["trained"] == trained].drop_duplicates(["head", "use", "used"]).sort_values("used")
    longest = rows["used"].max()
    names = {SOFTMAX: "softmax:\nunchanged\n= retrained", SIGMOID: "sigmoid,\nunchanged", LINEAR: "linear,\nunchanged"}
    heights = {SOFTMAX: -24, SIGMOID: -8, LINEAR: 2}
    for head, colour in COLOURS.items():
        of_head = rows[rows["head"] == head]
        for use, dashes in (("retrained", "--"), ("as trained", "-")):
            curve = of_head[of_head["use"] == use]
            axes.plot(curve["used"], curve["risk"], dashes, color=colour, linewidth=2 if dashes == "-" else 1.4)
        drawn = of_head[of_head["use"] == "drawn"]
        error_bars(axes, drawn["used"], drawn["risk"], drawn["std_error"], color=colour, marker="o", fillstyle="none")
        label(axes, longest, curve["risk"].iloc[-1], names[head], colour, xytext=(6, heights[head]))
    scaled = rows[rows["use"] == "scores times growth^1"]
    axes.plot(scaled["used"], scaled["risk"], color=COLOURS[SOFTMAX], linewidth=1, linestyle="-.")
    text = r"dash-dotted: softmax with scores $\times\,\ln\,L'/\ln\,L$, worse"
    label(axes, 2.5e3, 0.05, text, COLOURS[SOFTMAX], xytext=(0, 0))
    label(axes, 2.5e3, 0.02, "dashed: retrained for each length", ink(), xytext=(0, 0))
    label(axes, 2.5e3, 0.008, "points: simulated prompts", ink(), xytext=(0, 0))
    axes.axvline(trained, color=ink(), linewidth=1, linestyle=":")
    axes.annotate(" trained here", (trained, 1), xycoords=("data", "axes fraction"), va="top", color=ink())
    axes.axhline(1.0, color=ink(), linewidth=0.8)
    label(axes, longest, 1.0, "output 0", ink(), xytext=(0, 8), ha="right")
    axes.set(xscale="log", yscale="log", xlabel="prompt length in use, $L'$", ylabel="excess risk")
    few_decades(axes)
    return figure


def _claim_simulated(claim: Claims, every: Sequence[Trial]) -> None:
    """Claim that simulated prompts have the exact risks, where the errors are not too rare.

    The linear head's risk is never small, so that some comparisons remain.
    """
    trials = pd.DataFrame([trial for trial in every if trial.prompts * trial.exact >= LEAST_ERROR])
    rare = len(every) - len(trials)
    left_out = f"; left out are {rare} risks too small for {every[0].prompts:,} prompts" if rare else ""
    from_exact, from_training = (
        (trials["drawn"] - trials[name]) / trials["std_error"] for name in ("exact", "at_training")
    )
    pairs = trials.drop_duplicates(["trained", "used"])
    claim.agree(
        "retrieval-drawn",
        f"The risks of {trials['head'].nunique()} heads trained at one length and used at another, on simulated "
        f"prompts, agree with the exact ones at {len(pairs)} pairs of lengths{left_out}",
        from_exact,
        rejects=("the risks at the length of training", from_training),
    )
