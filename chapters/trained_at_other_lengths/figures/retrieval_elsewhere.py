r"""A softmax head trained on short prompts retrieves optimally from long ones; others do not, and scaling does harm.

Excess risk of heads that were trained on prompts of one length (vertical line), against the length $L'$ of the prompts
on which they are used. Solid: used unchanged. Dashed: the best head of the kind for the length of use; for softmax this
is the same head. Dash-dotted: softmax with its scores multiplied by $\ln L'/\ln L$. Points: simulated prompts, with two
standard errors; the table has other pairs of lengths too. The output 0 has the risk 1. Lines are exact. The grey tick
on the axis is the longest prompt of {doc}`real_heads`.

Alt: Log-log chart of risk against length. The softmax curve rises slowly and stays below one, with a thin curve a
little above it. Sigmoid and linear curves touch their dashed curves at the length of training and leave them on both
sides, steeply for long prompts, where they exceed one hundred.
"""

from collections.abc import Sequence
from operator import attrgetter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.style import mark_real_prompt
from chapters.trained_at_other_lengths.parameters import FULL_POWER
from chapters.trained_at_other_lengths.retrieval import Risks, Trial
from chapters.trained_at_other_lengths.style import LINEAR, SIGMOID, SOFTMAX
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, error_bars, few_decades, ink, label, legend_line

COLOURS = {SOFTMAX: "C0", SIGMOID: "C2", LINEAR: "C1"}

# Smallest expected sum of squared errors of all prompts with which a simulated risk is compared. Errors are rare and of
# order 1 at strong signals, so that fewer of them are far from normal: simulated 300 times at a sum of 50, a risk is
# more than 3.9 standard errors too low in 1 %, at 100 in 0.1 %.
LEAST_ERROR = 100


def numbers(risks: Risks, trials: Sequence[Trial]) -> Numbers:
    """Return risks at every length of use, and the claims on softmax, on the sigmoid and on simulations."""
    return Numbers(_table(risks, trials), (_bayes_claim(risks), _proportion_claim(risks), _drawn_claim(trials)))


def _table(risks: Risks, trials: Sequence[Trial]) -> Table:
    """Return the table by head, use and length of use."""

    def rows(kind, use, values):
        shared = {"head": kind, "use": use, "trained": risks.trained, "used": risks.used, "risk": values}
        return pd.DataFrame(shared | {"std_error": 0.0})

    frames = [rows(kind, "as trained", values) for kind, values in risks.unchanged.items()]
    frames += [rows(kind, "retrained", values) for kind, values in risks.retrained.items()]
    frames += [rows(SOFTMAX, f"scores times growth^{power:g}", values) for power, values in risks.scaled.items()]
    for trial in trials:
        shared = {"head": trial.head, "trained": trial.trained, "used": trial.used}
        frames.append(pd.DataFrame([shared | {"use": "as trained", "risk": trial.exact, "std_error": 0.0}]))
        frames.append(pd.DataFrame([shared | {"use": "drawn", "risk": trial.drawn, "std_error": trial.std_error}]))
    columns = {
        "head": Column("Activation of the head", "name"),
        "use": Column(
            (
                "`as trained`: unchanged; `retrained`: the best head for this length; `scores times growth^power`: "
                "scores times this power of $ln L'/ln L$; `drawn`: unchanged, on simulated prompts"
            ),
            "name",
        ),
        "trained": Column("Prompt length $L$ of training", "tokens"),
        "used": Column("Prompt length $L'$ of use", "tokens"),
        "risk": Column("Excess risk; the output 0 has the excess risk 1", std_error="std_error"),
        "std_error": Column("Standard error of the risk; 0 where it is exact", moves_with="risk"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _bayes_claim(risks: Risks) -> Claim:
    """Claim that softmax keeps the Bayes risk at every length of use."""
    bayes = risks.retrained[SOFTMAX]

    def worst(values) -> float:
        return float(np.max(values / bayes - 1))

    return Claim.equal(
        "temperature-softmax-keeps",
        (
            f"A softmax head trained on prompts of {risks.trained:,} tokens has the Bayes risk on prompts of "
            f"{risks.used.min():,} to {risks.used.max():,} tokens (measured: the largest relative excess)."
        ),
        worst(risks.unchanged[SOFTMAX]),
        0.0,
        within=1e-7,
        because="two quadratures, each with a relative error of about 10⁻⁹",
        source="derived here",
        box="length-free-softmax",
        alternative=Alternative("the same head with scores times $ln L'/ln L$", worst(risks.scaled[FULL_POWER])),
    )


def _proportion_claim(risks: Risks) -> Claim:
    """Claim that the risk of a sigmoid is affine in the length: the longest prompts against the two shortest."""
    used, risk = risks.used, risks.unchanged[SIGMOID]
    slope = (risk[1] - risk[0]) / (used[1] - used[0])
    line = risk[0] + slope * (used[-1] - used[0])
    return Claim.equal(
        "temperature-sigmoid-loses",
        (
            f"The risk of a sigmoid trained on prompts of {risks.trained:,} tokens is affine in the length of use "
            f"(measured: its risk at {used[-1]:,} tokens over the value on the line through the two shortest lengths)."
        ),
        float(risk[-1] / line),
        1.0,
        within=1e-4,
        because="rounding, amplified because the slope is taken between two short prompts",
        source="derived here",
        box="element-wise-elsewhere",
        alternative=Alternative("a sigmoid retrained at every length", float(risks.retrained[SIGMOID][-1] / line)),
    )


def _drawn_claim(every: Sequence[Trial]) -> Claim:
    """Claim that simulated prompts have the exact risks, where the errors are not too rare.

    The linear head's risk is never small, so that some comparisons remain.
    """
    trials = [trial for trial in every if trial.prompts * trial.exact >= LEAST_ERROR]

    def worst(expected) -> float:
        return max(abs(trial.drawn - expected(trial)) / trial.std_error for trial in trials)

    left_out = f"; left out are {len(every) - len(trials)} risks too small for {every[0].prompts:,} prompts"
    left_out = left_out if len(trials) < len(every) else ""
    pairs, heads = ({key(trial) for trial in trials} for key in (attrgetter("trained", "used"), attrgetter("head")))
    return Claim.consistent(
        "temperature-retrieval-drawn",
        (
            f"The risks of {len(heads)} heads trained at one length and used at another, on simulated prompts, agree "
            f"with the exact ones at {len(pairs)} pairs of lengths (measured: the largest deviation in standard "
            f"errors{left_out})."
        ),
        worst(lambda trial: trial.exact),
        comparisons=len(trials),
        source="derived here",
        box="element-wise-elsewhere",
        alternative=Alternative("the risks at the length of training", worst(lambda trial: trial.at_training)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one colour per head: unchanged (solid) and retrained (dashed); softmax also with scaled scores."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.5))
    trained = table["trained"].iloc[0]
    rows = table[table["trained"] == trained].drop_duplicates(["head", "use", "used"]).sort_values("used")
    places = {SOFTMAX: "top", SIGMOID: "center", LINEAR: "center"}
    for head, colour in COLOURS.items():
        of_head = rows[rows["head"] == head]
        for use, dashes in (("retrained", "--"), ("as trained", "-")):
            curve = of_head[of_head["use"] == use]
            axes.plot(curve["used"], curve["risk"], dashes, color=colour, linewidth=2 if dashes == "-" else 1.4)
        unchanged = of_head[of_head["use"] == "as trained"]
        at = (unchanged["used"].iloc[-1], unchanged["risk"].iloc[-1])
        axes.annotate(head, at, xytext=(6, 0), textcoords="offset points", va=places[head], color=colour)
        drawn = of_head[of_head["use"] == "drawn"]
        error_bars(axes, drawn["used"], drawn["risk"], drawn["std_error"], color=colour, marker="o", fillstyle="none")
    scaled = rows[rows["use"] == "scores times growth^1"]
    axes.plot(scaled["used"], scaled["risk"], color=COLOURS[SOFTMAX], linewidth=1, linestyle="-.")
    axes.axvline(trained, color=ink(), linewidth=1, linestyle=":")
    axes.annotate(" trained here", (trained, 1), xycoords=("data", "axes fraction"), va="top", color=ink())
    axes.axhline(1.0, color=ink(), linewidth=0.8)
    label(axes, rows["used"].max(), 1.0, "output 0", ink(), xytext=(0, 8), ha="right")
    axes.set(xscale="log", yscale="log", xlabel="prompt length in use, $L'$", ylabel="excess risk")
    lines = [legend_line("-"), legend_line("--", 1.4), legend_line("-.", 1.0)]
    names = ["unchanged", "retrained", r"softmax, scores $\times\ln\,L'/\ln\,L$"]
    axes.legend(lines, names, loc="upper left", bbox_to_anchor=(0.23, 0.93))
    few_decades(axes)
    mark_real_prompt(axes)
    return figure
