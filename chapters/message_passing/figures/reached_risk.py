r"""Message passing ends at the Bayes-optimal risk, below every trained head, at all computed numbers of prompts.

The output 0 has risk 1. Green line: state evolution. Circles: message passing from an uninformed start at three
dimensions, extrapolated to $D\to\infty$ by a straight line in $1/D$. Upper lines: replica theory of both heads at the
best ridges above a smallest allowed value. Crosses: heads trained at these ridges. Bars are two standard errors.

Alt: Three panels of three falling curves each. The lowest, with circles on it, is the Bayes-optimal one; the curve
of softmax comes nearer to it with many prompts, and that of linear attention stays far above.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from chapters.message_passing.runs import at_infinity, mean
from chapters.message_passing.settings import ALPHAS, Setting
from chapters.message_passing.style import COLOURS
from chapters.message_passing.theory import RISK_COLUMNS, Measured
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, error_bars, label, legible, ticks_at


def numbers(best, passed: pd.DataFrame, ridges: pd.DataFrame, trained: pd.DataFrame) -> Numbers:
    """Return the risks of the optimum, message passing at D → ∞ and trained heads, with their claims."""
    limits = at_infinity(passed)
    heads = {key: _by_setting(each) for key, each in ridges.groupby("head")}
    groups = trained.groupby(["head", "length", "snr", "noise_std", "alpha"], sort=False)["risk"]
    simulated = {(head, Setting(int(length), *of), alpha): mean(risks) for (head, length, *of, alpha), risks in groups}
    rows = [("evolution", "Bayes-optimal", *at, *risk) for at, risk in best.items()]
    rows += [
        ("message passing", "Bayes-optimal", *at, *risk)
        for (*at, start), risk in limits.items()
        if start == "uninformed"
    ]
    rows += [("replica", head, *at, *risk) for head, risks in heads.items() for at, risk in risks.items()]
    rows += [("training", *at, *risk) for at, risk in simulated.items()]
    rows = [(setting.length, setting.snr, kind, head, *rest) for kind, head, setting, *rest in rows]
    columns = {
        "length": Column("Tokens in a prompt, $L$", "tokens"),
        "snr": Column("Signal strength $ν$"),
        "kind": Column("`evolution` and `replica`: theory; `message passing` and `training`: simulated", "name"),
        "head": Column("`softmax` or `linear`, at best ridges; `Bayes-optimal`: the best estimator", "name"),
        "alpha": Column("Sample ratio $α = n/D$"),
        **RISK_COLUMNS,
    }
    return Numbers(
        Table(pd.DataFrame(rows, columns=list(columns)), columns), _claims(best, passed, limits, heads, simulated)
    )


def _claims(best, passed: pd.DataFrame, limits, heads, simulated) -> Claims:
    claim = Claims("message-passing", source="derived here")
    claim.agree(
        "optimum",
        f"In {len(limits) // 2} settings and from both starts, message passing extrapolated to $D → ∞$ ends "
        "at the Bayes-optimal risk of the state evolution",
        [risk.away(best[at, alpha]) for (at, alpha, _), risk in limits.items()],
        rejects=(
            "it ended where softmax trained at its best ridges does",
            [risk.away(heads["softmax"][at, alpha]) for (at, alpha, _), risk in limits.items()],
        ),
        box="passes-of-the-evolution",
    )
    largest = passed["dimension"].max()
    runs = passed[(passed["dimension"] == largest) & (passed["start"] == "uninformed")]
    groups = runs.groupby(["length", "snr", "noise_std", "alpha"])["risk"]
    means = {(Setting(int(length), *of), alpha): mean(risks) for (length, *of, alpha), risks in groups}
    claim.agree(
        "finite-size",
        f"At $D = {largest:,}$ alone the finite dimension has no visible effect: mean risks and the state evolution "
        "agree",
        [risk.away(best[at]) for at, risk in means.items()],
        rejects=(
            "the prompts were twice as many",
            [risk.away(best[at, 2 * alpha]) for (at, alpha), risk in means.items() if 2 * alpha <= ALPHAS[-1]],
        ),
        source="measured here",
    )
    claim.at_least(
        "below-training",
        "Every trained head has a larger risk than message passing and the optimum, by theory and by training, in "
        "all settings: the smallest ratio of the risks.",
        _least_ratio(best, limits, heads, simulated, prompts=1.0),
        1,
        because="the ratio is above 1 where the head has the larger risk",
        rejects=("message passing had half of the prompts", _least_ratio(best, limits, heads, simulated, prompts=0.5)),
        source="[D26]",
        box="posterior-by-messages",
    )
    return claim


def _least_ratio(best, limits, heads, simulated, *, prompts: float) -> float:
    """Return the smallest ratio of the risk of a head to that of the optimum at `prompts` times the prompts."""
    theory = [
        risks[setting, alpha].value / optimum
        for risks in heads.values()
        for setting, alpha in risks
        if prompts * alpha >= ALPHAS[0]
        for optimum in (best[setting, prompts * alpha].value, limits[setting, prompts * alpha, "uninformed"].value)
    ]
    trained = [
        risk.value / best[setting, prompts * alpha].value
        for (_, setting, alpha), risk in simulated.items()
        if prompts * alpha >= ALPHAS[0]
    ]
    return min(theory + trained)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per task."""
    tasks = table.groupby(["length", "snr"], sort=False)
    figure, panels = plt.subplots(1, len(tasks), figsize=(WIDE, 4.0), sharey=True)
    for panel, ((length, snr), mine) in zip(panels, tasks, strict=True):
        panel.set(xscale="log", yscale="log", title=rf"{length:g} tokens, signal $\nu={snr:g}$")
        for head, colour in COLOURS.items():
            line = mine[(mine["head"] == head) & mine["kind"].isin(["evolution", "replica"])].sort_values("alpha")
            panel.plot(line["alpha"], line["risk"], color=colour, linewidth=2)
            runs = mine[(mine["head"] == head) & mine["kind"].isin(["message passing", "training"])]
            marker = {"marker": "o", "fillstyle": "none"} if head == "Bayes-optimal" else {"marker": "x"}
            error_bars(panel, runs["alpha"], runs["risk"], runs["std_error"], color=colour, **marker)
        ticks_at(panel.xaxis, sorted(mine.loc[mine["kind"] == "message passing", "alpha"].unique()))
        # `ticks_at` would extend the axis to the last tick
        panel.yaxis.set_major_locator(FixedLocator([0.2, 0.3, 0.5, 1.0]))
        panel.yaxis.set_minor_locator(NullLocator())
    panels[0].set_yticklabels(["0.2", "0.3", "0.5", "1"])
    panels[0].set(ylabel="excess risk", ylim=(0.15, None))
    words = {"softmax": "trained\nsoftmax", "linear": "trained linear\nattention", "Bayes-optimal": "message\npassing"}
    for head, colour in COLOURS.items():
        end = mine[mine["head"] == head].sort_values("alpha").iloc[-1]
        label(panels[-1], end["alpha"], end["risk"], words[head], colour, xytext=(8, 0))
    look = {"xycoords": "axes fraction", "fontsize": 11}
    panels[0].annotate("crosses: training\nlines: theory", (1, 0.98), ha="right", va="top", **look)
    text, colour = "circles: message passing\nline: Bayes-optimal risk", legible(COLOURS["Bayes-optimal"])
    panels[0].annotate(text, (0.04, 0.03), va="bottom", color=colour, **look)
    figure.supxlabel(r"prompts per dimension, $\alpha=n/D$", fontsize=12)
    return figure


def _by_setting(ridges: pd.DataFrame) -> dict[tuple[Setting, float], Measured]:
    return {
        (Setting(int(row.length), row.snr, row.noise_std), row.alpha): Measured(
            row.risk if row.converged else np.nan, row.std_error
        )
        for row in ridges.itertuples()
    }
