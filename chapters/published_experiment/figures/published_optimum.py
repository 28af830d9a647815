r"""Published training from a selected start ends at the mean square that theory computes beforehand.

The lines are the least mean squares (without a factor ½) of one softmax head and of linear attention, if scores depend
only on covariates and values only on labels. Large symbols are tracked runs as long as the published training, for the
corrected covariances, from one start, selected after another had ended higher. Bars are two standard errors.

Alt: Log-log chart of mean square against prompt length. The falling curve of softmax is above that of linear attention.
Large symbols are on the curves, small symbols on them or a little above.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.published_experiment.optima import MEAN_SQUARE_COLUMNS, Optima, curves_frame
from chapters.published_experiment.protocol import POOLS, PUBLISHED_STEPS, above_noise, noise_power
from chapters.published_experiment.ridge import Ridge, bayes_frame
from chapters.published_experiment.runs import LongRuns, Trainings, ends_of, long_ends_of
from chapters.published_experiment.style import COLOURS, MEAN_SQUARE, SYMBOLS, plain_ticks
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, PAPER, error_bars, ink, label, legend_with
from lib.statistics import comparison_quantile, tells_apart

# Look of the symbols of shorter runs, which are small and above the large ones.
SHORT = {"markersize": 5.5, "markerfacecolor": PAPER, "zorder": 4}


def numbers(optima: Optima, bayes: Ridge, short: Trainings, long: LongRuns, *, law: str, lengths: list[int]) -> Numbers:
    """Return curves, ridge regression and ends of runs; claim that no head reaches Bayes, no run passes its optimum."""
    columns = {
        "kind": Column(
            "`optimum`: the best predictor; `infinite`: any predictor on an infinite prompt, the label noise; `short`: "
            f"the last fifth of a run made here; `tracked`: the end of a tracked run of {PUBLISHED_STEPS:,} steps",
            "name",
        ),
        **MEAN_SQUARE_COLUMNS,
    }
    ends = ends_of(short)
    frames = [
        curves_frame(optima, lengths).assign(kind="optimum"),
        bayes_frame(bayes).assign(kind="optimum"),
        ends.drop(columns="start").assign(kind="short", law=law),
        long_ends_of(long).drop(columns="start").assign(kind="tracked", law="corrected"),
    ]
    noise = {"predictor": "any", "length": sorted(lengths), "mean_square": noise_power()}
    groups = [*(frame[frame["law"] == law] for frame in frames), {"kind": "infinite", "law": law, **noise}]
    ridge = {length: these.mean for (its, length), these in bayes.items() if its == law}
    return Numbers(Table.of(groups, columns), _claims(law, optima, ridge, ends))


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
    best = np.array([optima[law, *head] for head in zip(ends["predictor"], ends["length"], strict=True)])
    ratios, errors = (ends[column].to_numpy() / best for column in ("mean_square", "std_error"))
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
    """Draw lines for the optima, and symbols for the ends of the runs."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    axes.set(xscale="log", yscale="log", xlabel="tokens in a prompt, $L$", ylabel=MEAN_SQUARE)
    for activation, where in (
        ("softmax", {"xytext": (0, 12), "ha": "left"}),
        ("linear", {"xytext": (-4, -12), "ha": "right"}),
    ):
        rows, colour = table[table["predictor"] == activation], COLOURS[activation]
        curve, runs, ends = (rows[rows["kind"] == kind] for kind in ("optimum", "short", "tracked"))
        axes.plot(curve["length"], curve["mean_square"], color=colour, linewidth=2)
        middle = curve.iloc[len(curve) // 3]
        label(axes, middle["length"], middle["mean_square"], f"theory: best {activation} head", colour, **where)
        look = {"marker": SYMBOLS[activation], "color": colour}
        error_bars(axes, runs["length"], runs["mean_square"], runs["std_error"], **look, **SHORT)
        axes.plot(ends["length"], ends["mean_square"], linestyle="", **look, markersize=11)
    plain_ticks(axes)
    marks = {"published training, repeated\nfrom a selected start": {"markersize": 11}, "shorter runs": SHORT}
    look = {"color": ink(), "marker": "o", "linestyle": ""}
    legend_with(axes, {name: Line2D([], [], **look, **size) for name, size in marks.items()}, loc="upper right")
    return figure
