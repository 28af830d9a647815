r"""Retrieval: softmax trained on short prompts is Bayes on long ones; other heads are not, and scaling it does harm.

Excess risk of heads that were trained on prompts of one length (vertical line), against the length of the prompts they
are used on. Solid: used as they are. Dashed: the best head of the kind at the length of use; for softmax this is the
same head. Dash-dotted: softmax with its scores multiplied by $\ln L'/\ln L$. Points: drawn prompts, with bars of two
standard errors; the table has other pairs of lengths too. A risk of 1 is that of answering 0. Lines are exact.

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

from chapters.temperature_and_length.parameters import FULL_POWER
from chapters.temperature_and_length.retrieval import Risks, Trial
from chapters.temperature_and_length.style import LINEAR, SIGMOID, SIZE, SOFTMAX
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, few_decades, headline, ink, label, legend_line
from lib.statistics import comparison_quantile

COLOURS = {SOFTMAX: "C0", SIGMOID: "C2", LINEAR: "C1"}


def numbers(risks: Risks, trials: Sequence[Trial]) -> Numbers:
    """Risks at every length of use; softmax stays Bayes, a sigmoid's risk grows in proportion, and draws agree."""
    return Numbers(_table(risks, trials), (_bayes_claim(risks), _proportion_claim(risks), _drawn_claim(trials)))


def _table(risks: Risks, trials: Sequence[Trial]) -> Table:
    def rows(kind, use, values):
        given = {"head": kind, "use": use, "trained": risks.trained, "used": risks.used, "risk": values}
        return pd.DataFrame(given | {"std_error": 0.0})

    frames = [rows(kind, "as trained", values) for kind, values in risks.kept.items()]
    frames += [rows(kind, "retrained", values) for kind, values in risks.retrained.items()]
    frames += [rows(SOFTMAX, f"scores times growth^{power:g}", values) for power, values in risks.scaled.items()]
    for one in trials:
        given = {"head": one.head, "trained": one.trained, "used": one.used}
        frames.append(pd.DataFrame([given | {"use": "as trained", "risk": one.exact, "std_error": 0.0}]))
        frames.append(pd.DataFrame([given | {"use": "drawn", "risk": one.drawn, "std_error": one.std_error}]))
    columns = {
        "head": Column("What a head makes of its scores", "name"),
        "use": Column(
            "`as trained`, `retrained`, scores times a power of ln L'/ln L, or as trained on `drawn` prompts", "name"
        ),
        "trained": Column("Length L of training", "tokens"),
        "used": Column("Length L' of use", "tokens"),
        "risk": Column("Excess risk; answering 0 has 1", std_error="std_error"),
        "std_error": Column("Its standard error; 0 where the risk is exact", moves_with="risk"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _bayes_claim(risks: Risks) -> Claim:
    bayes = risks.retrained[SOFTMAX]

    def worst(values) -> float:
        return float(np.max(values / bayes - 1))

    return Claim(
        id="temperature-softmax-keeps",
        statement=(
            f"Softmax trained on prompts of {risks.trained} tokens has the Bayes risk on prompts of "
            f"{risks.used.min()} to {risks.used.max():,}: the largest relative excess."
        ),
        source="derived here",
        box="length-free-softmax",
        measured=worst(risks.kept[SOFTMAX]),
        expected=0.0,
        tolerance=1e-7,  # two quadratures, each good to about 1e-9
        alternative=Alternative("with scores times ln L'/ln L", worst(risks.scaled[FULL_POWER])),
    )


def _proportion_claim(risks: Risks) -> Claim:
    """An element-wise head's risk is affine in the length: the longest from the two shortest."""
    used, kept = risks.used, risks.kept[SIGMOID]
    slope = (kept[1] - kept[0]) / (used[1] - used[0])
    return Claim(
        id="temperature-sigmoid-loses",
        statement=(
            f"The risk of a sigmoid trained on prompts of {risks.trained} tokens is affine in the length of use: at "
            f"{used[-1]:,} tokens, over what the two shortest lengths foretell."
        ),
        source="derived here",
        box="element-wise-elsewhere",
        measured=float(kept[-1] / (kept[0] + slope * (used[-1] - used[0]))),
        expected=1.0,
        tolerance=1e-4,  # digits lost where a slope is read off two short prompts
        alternative=Alternative(
            "a sigmoid retrained at every length",
            float(risks.retrained[SIGMOID][-1] / (kept[0] + slope * (used[-1] - used[0]))),
        ),
    )


def _drawn_claim(trials: Sequence[Trial]) -> Claim:
    def worst(expected) -> float:
        return max(abs(one.drawn - expected(one)) / one.std_error for one in trials)

    pairs, heads = ({getter(one) for one in trials} for getter in (attrgetter("trained", "used"), attrgetter("head")))
    return Claim(
        id="temperature-retrieval-drawn",
        statement=(
            f"Trained at one length and used at another, at {len(pairs)} pairs and with {len(heads)} heads: on drawn "
            "prompts the risks are the exact ones, the worst deviation in standard errors."
        ),
        source="derived here",
        box="element-wise-elsewhere",
        measured=worst(lambda one: one.exact),
        expected=0.0,
        tolerance=comparison_quantile(len(trials)),
        alternative=Alternative("the risks at the length of training", worst(lambda one: one.at_training)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A colour a head: solid as trained, dashed retrained; thin softmax, scaled."""
    figure, axes = plt.subplots(figsize=SIZE)
    trained = table["trained"].iloc[0]
    here = table[table["trained"] == trained].drop_duplicates(["head", "use", "used"]).sort_values("used")
    places = {SOFTMAX: "top", SIGMOID: "center", LINEAR: "center"}
    for head, colour in COLOURS.items():
        mine = here[here["head"] == head]
        for use, dashes in (("retrained", "--"), ("as trained", "-")):
            curve = mine[mine["use"] == use]
            axes.plot(curve["used"], curve["risk"], dashes, color=colour, linewidth=2 if dashes == "-" else 1.4)
        kept = mine[mine["use"] == "as trained"]
        at = (kept["used"].iloc[-1], kept["risk"].iloc[-1])
        axes.annotate(head, at, xytext=(6, 0), textcoords="offset points", va=places[head], color=colour)
        drawn = mine[mine["use"] == "drawn"]
        error_bars(axes, drawn["used"], drawn["risk"], drawn["std_error"], color=colour, marker="o", fillstyle="none")
    scaled = here[here["use"] == "scores times growth^1"]
    axes.plot(scaled["used"], scaled["risk"], color=COLOURS[SOFTMAX], linewidth=1, linestyle="-.")
    axes.axvline(trained, color=ink(), linewidth=1, linestyle=":")
    axes.annotate(" trained here", (trained, 1), xycoords=("data", "axes fraction"), va="top", color=ink())
    axes.axhline(1.0, color=ink(), linewidth=0.8)
    label(axes, here["used"].max(), 1.0, "answering 0", ink(), xytext=(0, 8), ha="right")
    axes.set(xscale="log", yscale="log", xlabel="length of use, $L'$", ylabel="excess risk")
    lines = [legend_line("-"), legend_line("--", 1.4), legend_line("-.", 1.0)]
    names = ["as trained", "retrained", r"softmax, scores $\times\ln\,L'/\ln\,L$"]
    axes.legend(lines, names, loc="upper left", bbox_to_anchor=(0.23, 0.93))
    few_decades(axes)
    headline(figure, "Softmax trained on short prompts is Bayes on long ones; other heads are not")
    return figure
