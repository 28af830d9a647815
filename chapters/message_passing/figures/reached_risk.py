r"""Message passing ends at the Bayes-optimal risk, below every trained head, at all computed numbers of prompts.

One panel per task; its title gives the prompt length and the signal strength. Horizontal axis, logarithmic: prompts per
dimension, $\alpha=n/D$. Vertical axis, logarithmic: excess risk; the output 0 has risk 1. Lower line: the Bayes-optimal
risk by state evolution. Circles on it: message passing from an uninformed start at three dimensions, extrapolated to
$D\to\infty$ by a straight line in $1/D$. Upper two lines: the replica theory of softmax and linear attention at the
best ridges above a smallest allowed value, interpolated between the marks. Crosses: heads trained at these ridges. Bars
are two standard errors.

Alt: Three panels of three falling curves each. The lowest, with circles on it, is the Bayes-optimal one; the curve
of softmax comes close to it with many prompts, and that of linear attention stays far above.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from chapters.message_passing.runs import at_infinity, mean
from chapters.message_passing.settings import ALPHAS, COMPARED, Setting
from chapters.message_passing.style import COLOURS
from chapters.message_passing.theory import Measured
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, error_bars, label
from lib.statistics import comparison_quantile

HEADS = ("softmax", "linear")


def numbers(best, passed: pd.DataFrame, ridges: pd.DataFrame, trained: pd.DataFrame) -> Numbers:
    """Return the risks of the optimum, message passing at D → ∞ and trained heads, with their claims."""
    limits = at_infinity(passed)
    heads = {key: _by_setting(each) for key, each in ridges.groupby("head")}
    simulated = {
        (head, Setting(int(length), snr, noise), alpha): mean(mine["risk"])
        for (length, snr, noise, alpha, head), mine in trained.groupby(
            ["length", "snr", "noise_std", "alpha", "head"], sort=False
        )
    }
    rows = [
        *(("evolution", "Bayes-optimal", *at, risk) for at, risk in best.items()),
        *(
            ("message passing", "Bayes-optimal", *at, risk)
            for (*at, start), risk in limits.items()
            if start == "uninformed"
        ),
        *(("replica", head, *at, risk) for head, mine in heads.items() for at, risk in mine.items()),
        *(("training", head, *at, risk) for (head, *at), risk in simulated.items()),
    ]
    frame = pd.DataFrame(
        {
            "length": setting.length,
            "snr": setting.snr,
            "kind": kind,
            "head": head,
            "alpha": alpha,
            "risk": risk.value,
            "std_error": risk.std_error,
        }
        for kind, head, setting, alpha, risk in rows
    )
    columns = {
        "length": Column("Tokens in a prompt, $L$", "tokens"),
        "snr": Column("Signal strength $ν$"),
        "kind": Column("`evolution` and `replica`: theory; `message passing` and `training`: simulated", "name"),
        "head": Column("`softmax` or `linear`, at best ridges; `Bayes-optimal`: the best estimator", "name"),
        "alpha": Column("Sample ratio $α = n/D$"),
        "risk": Column("Excess risk; the output 0 has risk 1", std_error="std_error"),
        "std_error": Column("Standard error: of the quasi-random average, or over runs", moves_with="risk"),
    }
    claims = (
        _optimum_claim(best, limits, heads["softmax"]),
        _size_claim(best, passed),
        _below_claim(best, limits, heads, simulated),
    )
    return Numbers(Table(frame, columns), claims)


def _by_setting(ridges: pd.DataFrame) -> dict[tuple[Setting, float], Measured]:
    return {
        (Setting(int(row.length), row.snr, row.noise_std), row.alpha): Measured(
            row.risk if row.converged else np.nan, row.std_error
        )
        for row in ridges.itertuples()
    }


def _optimum_claim(best, limits, softmax) -> Claim:
    """Claim that message passing ends at the optimum from both starts in all settings."""

    def worst(theory):
        return max(abs(found.away(theory[setting, alpha])) for (setting, alpha, _), found in limits.items())

    return Claim(
        id="message-passing-optimum",
        statement=(
            f"In {len(limits) // 2} settings and from both starts, message passing extrapolated to $D → ∞$ ends "
            "at the Bayes-optimal risk of the state evolution: the largest deviation, in combined standard "
            "errors."
        ),
        source="derived here",
        box="passes-of-the-evolution",
        measured=worst(best),
        expected=0.0,
        tolerance=comparison_quantile(len(limits)),
        reason=f"99.9 % quantile of the largest of {len(limits)} standard normal deviations",
        relation="≤",
        alternative=Alternative("it ended where softmax trained at its best ridges does", worst(softmax)),
    )


def _size_claim(best, passed: pd.DataFrame) -> Claim:
    """Claim that the largest dimension agrees without any extrapolation."""
    largest = passed["dimension"].max()
    runs = passed[(passed["dimension"] == largest) & (passed["start"] == "uninformed")]

    def worst(factor):
        return max(
            abs(mean(mine["risk"]).away(best[Setting(int(length), snr, noise), factor * alpha]))
            for (length, snr, noise, alpha), mine in runs.groupby(["length", "snr", "noise_std", "alpha"])
            if factor * alpha <= ALPHAS[-1]
        )

    count = len(COMPARED) * len(ALPHAS)
    return Claim(
        id="message-passing-finite-size",
        statement=(
            f"At $D = {largest:,}$ alone the finite dimension has no visible effect: the largest of {count} "
            "deviations of mean risks from the state evolution, in combined standard errors."
        ),
        source="measured here",
        measured=worst(1),
        expected=0.0,
        tolerance=comparison_quantile(count),
        reason=f"99.9 % quantile of the largest of {count} standard normal deviations",
        relation="≤",
        alternative=Alternative("the prompts were twice as many", worst(2)),
    )


def _below_claim(best, limits, heads, simulated) -> Claim:
    """Claim that trained heads have larger risks than message passing and the optimum."""

    def least(factor):
        """Return the smallest ratio of the risk of a head to that of the optimum at `factor` times the prompts."""
        theory = [
            mine[setting, alpha].value / risk
            for mine in heads.values()
            for setting, alpha in mine
            if factor * alpha >= ALPHAS[0]
            for risk in (best[setting, factor * alpha].value, limits[setting, factor * alpha, "uninformed"].value)
        ]
        runs = [
            risk.value / best[setting, factor * alpha].value
            for (_, setting, alpha), risk in simulated.items()
            if factor * alpha >= ALPHAS[0]
        ]
        return min(theory + runs)

    return Claim(
        id="message-passing-below-training",
        statement=(
            "Every trained head has a larger risk than message passing and the optimum, by theory and by training, in "
            "all settings: the smallest ratio of the risks."
        ),
        source="[D26]",
        box="posterior-by-messages",
        measured=least(1.0),
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("message passing had half of the prompts", least(0.5)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per task."""
    tasks = list(dict.fromkeys(zip(table["length"], table["snr"], strict=True)))
    figure, panels = plt.subplots(1, len(tasks), figsize=(WIDE, 4.0), sharey=True)
    for panel, (length, snr) in zip(panels, tasks, strict=True):
        mine = table[(table["length"] == length) & (table["snr"] == snr)]
        panel.set(xscale="log", yscale="log", xlabel=r"$\alpha=n/D$", title=rf"$L={length:g}$, $\nu={snr:g}$")
        for head, colour in COLOURS.items():
            line = mine[(mine["head"] == head) & mine["kind"].isin(["evolution", "replica"])].sort_values("alpha")
            panel.plot(line["alpha"], line["risk"], color=colour, linewidth=2)
            runs = mine[(mine["head"] == head) & mine["kind"].isin(["message passing", "training"])]
            marker = {"marker": "o", "fillstyle": "none"} if head == "Bayes-optimal" else {"marker": "x"}
            error_bars(panel, runs["alpha"], runs["risk"], runs["std_error"], color=colour, **marker)
        ticks = sorted(mine.loc[mine["kind"] == "message passing", "alpha"].unique())
        panel.xaxis.set_major_locator(FixedLocator(ticks))
        panel.xaxis.set_minor_locator(NullLocator())
        panel.set_xticklabels([f"{tick:g}" for tick in ticks])
        panel.yaxis.set_major_locator(FixedLocator([0.2, 0.3, 0.5, 1.0]))
        panel.yaxis.set_minor_locator(NullLocator())
    panels[0].set_yticklabels(["0.2", "0.3", "0.5", "1"])
    panels[0].set_ylabel("excess risk")
    last = table[table["length"] == tasks[-1][0]]
    words = {"softmax": "softmax", "linear": "linear", "Bayes-optimal": "message\npassing"}
    for head, colour in COLOURS.items():
        end = last[last["head"] == head].sort_values("alpha").iloc[-1]
        label(panels[-1], end["alpha"], end["risk"], words[head], colour, xytext=(8, 0))
    return figure
