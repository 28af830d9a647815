r"""Published training from a selected start ends at the mean square that theory computes beforehand.

The lines are the least mean squares that one softmax head and linear attention can reach, against the length of the
prompt. Large symbols are tracked runs as long as the published training, from one start, chosen after another had ended
higher; they exist for the corrected covariances. Small symbols are shorter runs made here. Green triangles are ridge
regression. The dotted line is the label noise, the least mean square of an infinite prompt. Bars are two standard
errors, where they exceed the symbol.

Alt: Log-log chart of mean square against prompt length. The curve of softmax is above that of linear attention, which
is above ridge regression, and all fall towards a dotted line, the label noise. Large symbols are on the lines, small
symbols on them or a little above.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.published_experiment.optima import CURVE_COLUMNS, Optima, curves_frame
from chapters.published_experiment.protocol import POOLS, PUBLISHED_STEPS, above_noise, noise_power
from chapters.published_experiment.ridge import BAYES_COLUMNS, Ridge, bayes_frame
from chapters.published_experiment.runs import LongRuns, Trainings, ends_of, long_ends_of
from chapters.published_experiment.style import COLOURS, MEAN_SQUARE, SYMBOLS, plain_ticks
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, error_bars, ink, label, legend_with
from lib.statistics import comparison_quantile, tells_apart


def numbers(optima: Optima, bayes: Ridge, short: Trainings, long: LongRuns, *, law: str, lengths: list[int]) -> Numbers:
    """Return curves, ridge regression and ends of runs; claim that no head reaches Bayes, no run passes its optimum."""
    columns = {
        "row": Column("What the row shows: the optima, ridge regression, a short run, or a tracked run", "name"),
        **CURVE_COLUMNS,
        "infinite": Column("Least mean square on an infinite prompt: the variance of the label noise"),
        **BAYES_COLUMNS,
        "activation": Column("Head that the run trains: softmax or linear attention", "name"),
        "start": Column("Number of the random start"),
        "end": Column("Mean square on the fresh prompts of the last fifth of a short run", std_error="end_std_error"),
        "end_std_error": Column("Standard error of this mean square", moves_with="end"),
        "long_end": Column(f"Exact mean square of the head after {PUBLISHED_STEPS:,} steps of a tracked run"),
    }
    ends, tracked = ends_of(short).assign(row="short"), long_ends_of(long).assign(row="tracked")
    curves, points = (frame[frame["law"] == law] for frame in (curves_frame(optima, lengths), bayes_frame(bayes)))
    frames = [curves.assign(infinite=noise_power()), points, ends, tracked[[law == "corrected"] * len(tracked)]]
    frame = pd.concat(frames, ignore_index=True).reindex(columns=list(columns))
    ridge = {length: these.mean for (its, length), these in bayes.items() if its == law}
    return Numbers(Table(frame, columns), _claims(law, optima, ridge, ends))


def _claims(law: str, optima: Optima, ridge: dict[int, float], ends: pd.DataFrame) -> Claims:
    claim = Claims("published-experiment", source="measured here")
    lengths = sorted({length for _, _, length in optima})
    softmax, linear = (
        {length: above_noise(optima[law, activation, length]) for length in lengths} for activation in POOLS
    )
    claim.at_least(
        "above-bayes",
        "The best softmax head whose scores depend on covariates and whose value is the label is not the Bayes "
        f"predictor: at {len(ridge)} lengths its mean square, less the label noise, is at least a tenth larger "
        "than that of ridge regression (measured: the smallest ratio).",
        min(softmax[length] / above_noise(mean) for length, mean in ridge.items()),
        1.1,
        because="a tenth is far above the error of the averages over prompts",
        rejects=("it attains the Bayes risk", 1),
    )
    claim.at_least(
        "one-head",
        f"At {len(lengths)} prompt lengths the best softmax head whose scores depend on covariates and whose value "
        "is the label has a mean square, less the label noise, at least a twentieth larger than that of the best "
        "linear head (measured: the smallest ratio).",
        min(softmax[length] / linear[length] for length in lengths),
        1.05,
        because="a twentieth is far above the error of the exact numerics",
        rejects=("both are equally good", 1),
    )
    best = np.array([optima[law, *head] for head in zip(ends["activation"], ends["length"], strict=True)])
    ratios, errors = (ends[column].to_numpy() / best for column in ("end", "end_std_error"))
    quantile = comparison_quantile(len(ends))
    decides = tells_apart(above_noise(best) / best, np.asarray(errors.max()), quantile)
    claim.at_least(
        "no-run-below",
        f"None of {len(ends)} models trained here, softmax or linear, ends below the exact optimum (measured: the "
        "smallest ratio of mean squares).",
        ratios.min(),
        1,
        within=quantile * errors.max(),
        because=f"99.9 % quantile of the largest of {len(ends)} normal deviations, times the largest standard error",
        std_error=errors[ratios.argmin()],
        comparisons=len(ends),
        rejects=("training reaches the risk of the infinite prompt", noise_power() / best.max()),
        requires=(
            decides,
            "on prompts of these lengths the optimum is less than twice the tolerance above the label noise, the least "
            "mean square of the infinite prompt: more prompts per step or shorter prompts tell them apart",
        ),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw lines for the optima, symbols for ridge regression and runs, and the label noise."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    axes.set(xscale="log", yscale="log", xlabel="tokens in a prompt, $L$", ylabel=MEAN_SQUARE)
    curve, ridge, short, tracked = (table[table["row"] == row] for row in ("optimum", "ridge", "short", "tracked"))
    for activation in ("softmax", "linear"):
        runs, ends = (frame[frame["activation"] == activation] for frame in (short, tracked))
        colour = COLOURS[activation]
        axes.plot(curve["length"], curve[activation], color=colour, linewidth=2)
        middle, above = curve.iloc[len(curve) // 3], activation == "softmax"
        where = {"va": "bottom", "xytext": (6, 2)} if above else {"va": "top", "ha": "right", "xytext": (-6, -2)}
        label(axes, middle["length"], middle[activation], f"{activation}, best head", colour, **where)
        look = {"marker": SYMBOLS[activation], "color": colour}
        error_bars(axes, runs["length"], runs["end"], runs["end_std_error"], **look, markersize=5, fillstyle="none")
        axes.plot(ends["length"], ends["long_end"], linestyle="", **look, markersize=10)
    look = {"marker": SYMBOLS["bayes"], "color": COLOURS["bayes"]}
    error_bars(axes, ridge["length"], ridge["bayes"], ridge["bayes_std_error"], **look)
    first = ridge.iloc[0]
    label(axes, first["length"], first["bayes"], "ridge (Bayes)", COLOURS["bayes"], xytext=(8, 4))
    noise = curve["infinite"].max()
    axes.axhline(noise, color=ink(), linestyle=":", linewidth=1.5)
    label(axes, curve["length"].min(), noise, "infinite prompt: label noise", ink(), va="bottom", xytext=(0, 3))
    plain_ticks(axes)
    marks = {"trained here": {"markersize": 5, "markerfacecolor": "none"}, "tracked run": {"markersize": 10}}
    look = {"color": ink(), "marker": "o", "linestyle": ""}
    legend_with(axes, {name: Line2D([], [], **look, **size) for name, size in marks.items()}, loc="upper right")
    return figure
