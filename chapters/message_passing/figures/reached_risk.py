r"""Where message passing ends, against the number of prompts: at the optimum, below every trained head.

A panel a task, strength and length of the prompts in its title. Across, logarithmic: prompts per dimension,
$\alpha=n/D$. Up, logarithmic: excess risk; answering 0 costs 1. Lower line: the Bayes-optimal risk by state evolution.
Circles on it: message passing that starts from nothing, at three dimensions, taken to $D\to\infty$ by a straight line
in $1/D$. Upper two lines: the replica theory of softmax and linear attention at the best ridges of at least the
smallest that was allowed, joined between the marks; crosses: heads trained at these ridges. Bars are two standard
errors.

Alt: Three panels of three falling curves each. The lowest, with circles on it, is the Bayes-optimal one; the curve
of softmax comes close to it with many prompts, and that of linear attention stays far above.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from chapters.message_passing.marks import COLOURS
from chapters.message_passing.runs import at_infinity, mean
from chapters.message_passing.settings import ALPHAS, COMPARED, Setting
from chapters.message_passing.theory import Measured
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, headline, label
from lib.statistics import comparison_quantile

HEADS = ("softmax", "linear")


def numbers(best, passed: pd.DataFrame, ridges: pd.DataFrame, trained: pd.DataFrame) -> Numbers:
    """The optimum, message passing at D → ∞, and heads by theory and by training."""
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
        "length": Column("Tokens in a prompt, L", "tokens"),
        "snr": Column("Strength ν of the hint"),
        "kind": Column("`evolution` and `replica`: theory; `message passing` and `training`: simulated", "name"),
        "head": Column("`softmax` or `linear`, at best ridges; `Bayes-optimal`: what can be known", "name"),
        "alpha": Column("Sample ratio α = n/D"),
        "risk": Column("Excess risk; answering 0 costs 1", std_error="std_error"),
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
    """Both starts, all settings."""

    def worst(theory):
        return max(abs(found.away(theory[setting, alpha])) for (setting, alpha, _), found in limits.items())

    return Claim(
        id="message-passing-optimum",
        statement=(
            f"In {len(limits) // 2} settings and from both starts message passing, taken to D → ∞, ends at the "
            "Bayes-optimal risk of the state evolution: the worst deviation, in combined standard errors."
        ),
        source="derived here",
        box="passes-of-the-evolution",
        measured=worst(best),
        expected=0.0,
        tolerance=comparison_quantile(len(limits)),
        relation="≤",
        alternative=Alternative("it ended where softmax trained at its best ridges does", worst(softmax)),
    )


def _size_claim(best, passed: pd.DataFrame) -> Claim:
    """Without any extrapolation."""
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
            f"At D = {largest} alone no effect of the finite dimension is seen: the worst of {count} deviations of "
            "mean risks from the evolution, in combined standard errors."
        ),
        source="measured here",
        measured=worst(1),
        expected=0.0,
        tolerance=comparison_quantile(count),
        relation="≤",
        alternative=Alternative("the prompts were twice as many", worst(2)),
    )


def _below_claim(best, limits, heads, simulated) -> Claim:
    """Of message passing and the optimum, to heads by theory and by training."""

    def least(factor):
        """Of the risks of heads to those of message passing and of the evolution at `factor` times the prompts."""
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
            "Message passing and the optimum are below every trained head, by theory and by training, in all settings: "
            "the least ratio of the risks."
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
    """A panel a task."""
    tasks = list(dict.fromkeys(zip(table["length"], table["snr"], strict=True)))
    figure, panels = plt.subplots(1, len(tasks), figsize=(9.0, 4.0), sharey=True)
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
    headline(figure, "Message passing ends at the optimum, and no trained head reaches it")
    return figure
