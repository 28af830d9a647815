r"""The published experiment, with its outcome computed beforehand.

Plain mean square, label noise included, against the length of the prompt. Lines: the least mean square that one
softmax head, or linear attention, can reach, exact and without a fitted parameter. Triangles: ridge regression,
which is Bayes (standard errors are smaller than the marker). Dotted: the label noise, all that an infinite prompt
leaves. Large symbols: tracked runs of 300,000 published steps, which exist for the corrected data law. Small
symbols: short runs made here, with one standard error.

Alt: Log-log chart of mean square against prompt length from 10 to 1000. Softmax runs above linear attention,
linear above ridge regression, and all fall towards a dotted line at 0.1. Large symbols lie on the lines, small
ones on them or a little above.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.published_experiment.marks import COLOURS, MARKERS, MEAN_SQUARE, SIZE, plain_ticks
from chapters.published_experiment.optima import Optima, curves_frame
from chapters.published_experiment.protocol import noise_power
from chapters.published_experiment.ridge import Ridge, bayes_frame
from chapters.published_experiment.runs import ROWS, LongRuns, Trainings, short_frame
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink
from lib.statistics import comparison_quantile


def numbers(optima: Optima, bayes: Ridge, short: Trainings, long: LongRuns, *, law: str, lengths: list[int]) -> Numbers:
    """The curves of one law, ridge regression and the ends of runs; no head is Bayes, no run passes its optimum."""
    ends = ends_of(short_frame(short))
    table = _table(law, curves_frame(optima, lengths), bayes_frame(bayes), ends, long)
    return Numbers(table, (_bayes_claim(law, optima, bayes), _head_claim(law, optima), _sgd_claim(law, optima, ends)))


def ends_of(short: pd.DataFrame) -> pd.DataFrame:
    """Mean over the last fifth of each run, with its standard error."""
    runs = ["activation", "length", "start"]
    last = short.groupby(runs, sort=False).tail(ROWS // 5)
    last = last.assign(variance=last["loss_std_error"] ** 2).groupby(runs, sort=False, as_index=False)
    ends = last.agg({"loss": "mean", "variance": "sum"})
    return ends.assign(end=ends["loss"], end_std_error=np.sqrt(ends["variance"]) / (ROWS // 5))


def _table(law: str, curves: pd.DataFrame, bayes: pd.DataFrame, ends: pd.DataFrame, long: LongRuns) -> Table:
    """The curves of one law, ridge regression, and where runs ended."""
    mine = curves.query("law == @law").assign(infinite=noise_power())
    ridge = bayes.query("law == @law")
    frames = [mine, ridge, ends]
    if law == "corrected":
        frames.append(_long_ends(long))
    frame = pd.concat(frames, ignore_index=True)
    columns = {
        "length": Column("Tokens in a prompt, L", "tokens"),
        "softmax": Column("Least mean square of one softmax head, exact"),
        "linear": Column("Least mean square of linear attention, exact"),
        "infinite": Column("Least mean square of an infinite prompt: the label noise"),
        "bayes": Column("Mean square of ridge regression, which is Bayes", std_error="bayes_std_error"),
        "bayes_std_error": Column("Its standard error", std_error="bayes_std_error"),
        "activation": Column("Head that a run trained", "name"),
        "start": Column("Number of the run's start"),
        "end": Column("Mean square over fresh prompts of the last fifth of a run made here", std_error="end_std_error"),
        "end_std_error": Column("Its standard error", std_error="end_std_error"),
        "long_end": Column("Exact mean square of the head after 300,000 steps, tracked runs"),
    }
    return Table(frame.reindex(columns=list(columns)), columns)


def _long_ends(long: LongRuns) -> pd.DataFrame:
    """Where each tracked run ended."""
    return pd.DataFrame(
        [
            {"activation": activation, "length": length, "start": start, "long_end": run.risks[-1]}
            for (activation, length, start), run in sorted(long.items())
        ]
    )


def _bayes_claim(law: str, optima: Optima, bayes: Ridge) -> Claim:
    """The softmax optimum over ridge regression's mean square."""
    ratios = [optima[law, "softmax", length] / these.mean for (its, length), these in bayes.items() if its == law]
    return Claim(
        id="published-experiment-above-bayes",
        statement=(
            f"The best softmax head is not Bayes: at {len(ratios)} lengths its mean square is at least a tenth larger "
            "than ridge regression's; the smallest ratio."
        ),
        source="derived here",
        measured=float(np.min(ratios)),
        expected=1.1,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("it attains the Bayes risk", 1.0),
    )


def _head_claim(law: str, optima: Optima) -> Claim:
    """The softmax optimum over the linear one."""
    lengths = sorted({length for _, _, length in optima})
    return Claim(
        id="published-experiment-one-head",
        statement=(
            f"At {len(lengths)} prompt lengths the best softmax head has a mean square at least a twentieth larger "
            "than the best linear head's: the smallest ratio."
        ),
        source="derived here",
        measured=min(optima[law, "softmax", length] / optima[law, "linear", length] for length in lengths),
        expected=1.05,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("both are equally good", 1.0),
    )


def _sgd_claim(law: str, optima: Optima, ends: pd.DataFrame) -> Claim:
    """No run made here ends below the optimum of its head."""
    best = np.array([optima[law, *head] for head in zip(ends["activation"], ends["length"], strict=True)])
    error = float(np.max(ends["end_std_error"] / best))
    return Claim(
        id="published-experiment-no-run-below",
        statement=(
            f"None of {len(ends)} models trained here, softmax or linear, ends below the exact optimum: the smallest "
            "ratio of mean squares."
        ),
        source="derived here",
        measured=float(np.min(ends["end"] / best)),
        expected=1.0,
        tolerance=comparison_quantile(len(ends)) * error,
        relation="≥",
        std_error=error,
        alternative=Alternative("training reaches the risk of the infinite prompt", noise_power() / float(best.min())),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Lines of the optima, symbols of ridge regression and of runs, over the label noise."""
    figure, axes = plt.subplots(figsize=SIZE)
    curve, ridge = table[table["softmax"].notna()], table[table["bayes"].notna()]
    for activation, marker in MARKERS.items():
        colour = COLOURS[activation]
        runs = table[table["activation"] == activation]
        axes.plot(curve["length"], curve[activation], color=colour, linewidth=2, label=f"{activation}, exact optimum")
        short, long = runs[runs["end"].notna()], runs[runs["long_end"].notna()]
        axes.errorbar(
            short["length"],
            short["end"],
            short["end_std_error"],
            fmt=marker,
            color=colour,
            markersize=5,
            markerfacecolor="none",
            label=f"{activation}, short SGD runs",
        )
        if len(long):
            label = f"{activation}, 300,000 steps"
            axes.plot(long["length"], long["long_end"], marker, color=colour, markersize=10, label=label)
    axes.errorbar(
        ridge["length"],
        ridge["bayes"],
        ridge["bayes_std_error"],
        fmt="^",
        color=COLOURS["bayes"],
        label="ridge (Bayes)",
    )
    axes.axhline(curve["infinite"].max(), color=ink(), linestyle=":", linewidth=1.5, label="infinite prompt")
    axes.set(xscale="log", yscale="log", xlabel="tokens in a prompt, $L$", ylabel=MEAN_SQUARE)
    plain_ticks(axes)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
