r"""The published experiment, with its outcome computed beforehand.

Plain mean square, label noise included, against the length of the prompt. Lines: the least mean square that one
softmax head, or linear attention, can reach, exact and without a fitted parameter. Triangles: ridge regression,
which is Bayes. Dotted: the label noise, all that an infinite prompt leaves. Large symbols: tracked runs as long as
the published training, from one start, which exist for the corrected data law. Small symbols: runs made here. Bars,
where they leave the symbol, are two standard errors.

Alt: Log-log chart of mean square against prompt length. Softmax runs above linear attention, linear above ridge
regression, and all fall towards a dotted line, the label noise. Large symbols lie on the lines, small ones on them
or a little above.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.published_experiment.optima import CURVE_COLUMNS, Optima, curves_frame
from chapters.published_experiment.protocol import PUBLISHED_STEPS, noise_power
from chapters.published_experiment.ridge import BAYES_COLUMNS, Ridge, bayes_frame
from chapters.published_experiment.runs import LongRuns, Trainings, ends_of, long_ends_of
from chapters.published_experiment.style import COLOURS, MEAN_SQUARE, SIZE, SYMBOLS, plain_ticks
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, headline, ink, label, legend_with
from lib.statistics import comparison_quantile


def numbers(optima: Optima, bayes: Ridge, short: Trainings, long: LongRuns, *, law: str, lengths: list[int]) -> Numbers:
    """The curves of one law, ridge regression and the ends of runs; no head is Bayes, no run passes its optimum."""
    ends = ends_of(short)
    curves, points = (frame[frame["law"] == law] for frame in (curves_frame(optima, lengths), bayes_frame(bayes)))
    frames = [curves.assign(infinite=noise_power()), points, ends]
    if law == "corrected":
        frames.append(long_ends_of(long))
    table = _table(pd.concat(frames, ignore_index=True))
    return Numbers(table, (_bayes_claim(law, optima, bayes), _head_claim(law, optima), _sgd_claim(law, optima, ends)))


def _table(frame: pd.DataFrame) -> Table:
    """The curves of one law, ridge regression, and where runs ended."""
    columns = {
        **CURVE_COLUMNS,
        "infinite": Column("Least mean square of an infinite prompt: the label noise"),
        **BAYES_COLUMNS,
        "activation": Column("Head that a run trained", "name"),
        "start": Column("Number of the run's start"),
        "end": Column("Mean square over fresh prompts of the last fifth of a run made here", std_error="end_std_error"),
        "end_std_error": Column("Its standard error", moves_with="end"),
        "long_end": Column(f"Exact mean square of the head after {PUBLISHED_STEPS:,} steps, tracked runs"),
    }
    return Table(frame.reindex(columns=list(columns)), columns)


def _bayes_claim(law: str, optima: Optima, bayes: Ridge) -> Claim:
    """The softmax optimum over ridge regression's mean square."""
    ratios = [optima[law, "softmax", length] / these.mean for (its, length), these in bayes.items() if its == law]
    return Claim(
        id="published-experiment-above-bayes",
        statement=(
            f"The best softmax head whose scores see covariates and whose value is the label is not Bayes: at "
            f"{len(ratios)} lengths its mean square is at least a tenth larger than ridge regression's; the smallest "
            "ratio."
        ),
        source="measured here",
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
            f"At {len(lengths)} prompt lengths the best softmax head whose scores see covariates and whose value is "
            "the label has a mean square at least a twentieth larger than the best linear head's: the smallest ratio."
        ),
        source="measured here",
        measured=min(optima[law, "softmax", length] / optima[law, "linear", length] for length in lengths),
        expected=1.05,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("both are equally good", 1.0),
    )


def _sgd_claim(law: str, optima: Optima, ends: pd.DataFrame) -> Claim:
    """No run made here ends below the optimum of its head."""
    best = np.array([optima[law, *head] for head in zip(ends["activation"], ends["length"], strict=True)])
    ratios, errors = (ends[column].to_numpy() / best for column in ("end", "end_std_error"))
    return Claim(
        id="published-experiment-no-run-below",
        statement=(
            f"None of {len(ends)} models trained here, softmax or linear, ends below the exact optimum: the smallest "
            "ratio of mean squares."
        ),
        source="measured here",
        measured=float(ratios.min()),
        expected=1.0,
        tolerance=comparison_quantile(len(ends)) * float(errors.max()),
        relation="≥",
        std_error=float(errors[ratios.argmin()]),
        alternative=Alternative("training reaches the risk of the infinite prompt", noise_power() / float(best.min())),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Lines of the optima, symbols of ridge regression and of runs, over the label noise."""
    figure, axes = plt.subplots(figsize=SIZE)
    axes.set(xscale="log", yscale="log", xlabel="tokens in a prompt, $L$", ylabel=MEAN_SQUARE)
    curve, ridge = table[table["softmax"].notna()], table[table["bayes"].notna()]
    for activation in ("softmax", "linear"):
        runs, colour = table[table["activation"] == activation], COLOURS[activation]
        axes.plot(curve["length"], curve[activation], color=colour, linewidth=2)
        middle, above = curve.iloc[len(curve) // 3], activation == "softmax"
        where = {"va": "bottom", "xytext": (6, 2)} if above else {"va": "top", "ha": "right", "xytext": (-6, -2)}
        label(axes, middle["length"], middle[activation], f"{activation}, best head", colour, **where)
        look = {"marker": SYMBOLS[activation], "color": colour}
        error_bars(axes, runs["length"], runs["end"], runs["end_std_error"], **look, markersize=5, fillstyle="none")
        axes.plot(runs["length"], runs["long_end"], linestyle="", **look, markersize=10)
    look = {"marker": SYMBOLS["bayes"], "color": COLOURS["bayes"]}
    error_bars(axes, ridge["length"], ridge["bayes"], ridge["bayes_std_error"], **look)
    first = ridge.iloc[0]
    label(axes, first["length"], first["bayes"], "ridge (Bayes)", COLOURS["bayes"], xytext=(8, 4))
    noise = curve["infinite"].max()
    axes.axhline(noise, color=ink(), linestyle=":", linewidth=1.5)
    label(axes, curve["length"].min(), noise, "infinite prompt: label noise", ink(), va="bottom", xytext=(0, 3))
    plain_ticks(axes)
    marks = {"trained here": {"markersize": 5, "markerfacecolor": "none"}, "trained as published": {"markersize": 10}}
    look = {"color": ink(), "marker": "o", "linestyle": ""}
    legend_with(axes, {name: Line2D([], [], **look, **size) for name, size in marks.items()}, loc="upper right")
    headline(figure, "The published training ends where it was computed beforehand to end")
    return figure
