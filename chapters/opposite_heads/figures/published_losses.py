r"""Losses printed by [He25] lie on the exact curves, and the curves of their figure lie higher by the noise variance.

Solid: the exact mean square error of a pair with the published keys $\pm0.13$ and values $\pm3.45$, and of one head
with the published key and value for 40 tokens; nothing is fitted. Filled: losses that the published code prints, means
over 50,000 prompts. Open: their figure, whose code adds the noise variance to an error that contains it already.

Alt: Chart of loss against prompt length. Two solid curves fall, and filled markers are on them. Open markers of three
shapes are on a dashed curve, which runs above the lower solid curve at a constant distance.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.opposite_heads.published_losses import (
    LARGEST_DEVIATION,
    OFFSET_ERROR,
    SLOPE_ERRORS,
    TRAINED_LENGTH,
    PublishedLosses,
)
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label, legend_line, legend_point, legend_with
from lib.statistics import standard_error

SAMPLING = "the relative standard error of a mean of 50,000 squares is between a half and one percent"


def numbers(losses: PublishedLosses) -> Numbers:
    """Return printed and exact losses; claim their agreement, and the noise that the published figure adds."""
    frame = pd.concat([losses.printed.assign(kind="printed"), losses.curves.assign(kind="curve")], ignore_index=True)
    frame["noise_twice"] = frame["exact"] + losses.noise_variance
    columns = {
        "kind": Column("`printed`: a printed loss; `curve`: a point of an exact curve", "name"),
        "predictor": Column("Pair, one head, gradient descent, debiased descent, or a trained model", "name"),
        "heads": Column("Softmax heads of the predictor; 0 for gradient descent"),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "loss": Column("Loss as printed by the code of [He25]; empty on curves"),
        "exact": Column("Exact mean square error with the published parameters, label noise included once"),
        "noise_twice": Column("The same error plus the variance of the noise"),
        "approximate": Column("Approximate loss of the published code at the same parameters; empty for descent"),
    }
    return Numbers(Table(frame[list(columns)], columns), _claims(losses))


def _claims(losses: PublishedLosses) -> Claims:
    claim = Claims("opposite-heads-published", source="[He25]")
    ratios = losses.printed.sort_values("length")
    ratios = ratios.assign(from_exact=ratios["loss"] / ratios["exact"] - 1)
    ratios["from_approximate"] = ratios["loss"] / ratios["approximate"] - 1
    level = ratios[ratios["predictor"].isin(("head", "pair", "debiased")) & (ratios["length"] == TRAINED_LENGTH)]
    claim.at_most(
        "levels",
        f"At $L = {TRAINED_LENGTH}$ the printed losses of one head, of the pair and of debiased gradient descent are "
        "the exact mean square errors (measured: the largest relative deviation).",
        level["from_exact"].abs().max(),
        LARGEST_DEVIATION,
        because=SAMPLING,
        comparisons=len(level),
        rejects=(
            "the approximate loss of the published code holds at this length",
            level["from_approximate"].abs().max(),
        ),
    )
    for predictor, words in (("pair", "the pair"), ("head", "one head")):
        rows = ratios[ratios["predictor"] == predictor]
        from_exact, from_approximate = ((rows[f"from_{loss}"] ** 2).mean() ** 0.5 for loss in ("exact", "approximate"))
        claim.at_most(
            predictor,
            f"At {len(rows)} prompt lengths the printed losses of {words} are the exact mean square errors (measured: "
            "the root mean square of the relative deviations).",
            from_exact,
            LARGEST_DEVIATION,
            because=SAMPLING,
            rejects=("the approximate loss of the published code holds at these lengths", from_approximate),
        )
    pair = ratios[ratios["predictor"] == "pair"]
    slope, error = _slope(pair["length"], pair["from_exact"])
    claim.equal(
        "trend",
        "The relative deviation of the printed losses of the pair has no trend in the prompt length (measured: its "
        "slope in $ln L$).",
        slope,
        0,
        within=SLOPE_ERRORS * error,
        because="two standard errors of the slope, from the scatter about the line",
        std_error=error,
        rejects=("the approximate loss of the published code", _slope(pair["length"], pair["from_approximate"])[0]),
    )
    trained = ratios[(ratios["predictor"] == "trained") & (ratios["heads"] > 1)]
    offset = (trained["loss"] - trained["exact"]).to_numpy()
    claim.equal(
        "noise",
        f"In the published figure, the losses of trained models with 2, 4 and 8 heads at {trained['length'].nunique()} "
        "lengths exceed the exact mean square error of the pair, which contains the noise once, by the variance of the "
        "noise (measured: the mean difference).",
        offset.mean(),
        losses.noise_variance,
        within=OFFSET_ERROR,
        because="four standard errors of a mean of 57 losses of 20,000 prompts each, and the rounding of the published "
        "parameters",
        std_error=standard_error(offset),
        rejects=("the figure shows the mean square error, with the noise once", 0),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw exact curves, printed losses and the losses of the published figure."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    curves, printed = table[table["kind"] == "curve"], table[table["kind"] == "printed"].sort_values("length")
    for predictor, words, colour in (("head", "one head", "C2"), ("pair", "pair", "C0")):
        curve, rows = curves[curves["predictor"] == predictor], printed[printed["predictor"] == predictor]
        axes.plot(curve["length"], curve["exact"], color=colour, linewidth=2)
        axes.plot(rows["length"], rows["loss"], color=colour, linestyle="", marker="o", markersize=5)
        label(axes, curve["length"].iloc[-1], curve["exact"].iloc[-1], words, colour, xytext=(8, 2))
    pair = curves[curves["predictor"] == "pair"]
    axes.plot(pair["length"], pair["noise_twice"], color="C3", linewidth=1.5, linestyle="--")
    label(axes, pair["length"].iloc[-1], pair["noise_twice"].iloc[-1], "pair + noise", "C3", xytext=(8, -10))
    middle = pair.iloc[(pair["length"] - 35).abs().argmin()]
    ends = [(middle["length"], middle[column]) for column in ("noise_twice", "exact")]
    axes.annotate("", *ends, arrowprops={"arrowstyle": "->", "color": ink(), "shrinkA": 2, "shrinkB": 2})
    label(axes, middle["length"], middle["exact"], "+ noise variance", ink(), ha="center", xytext=(0, -20))
    trained = table[(table["predictor"] == "trained") & (table["heads"] > 1)]
    points = {}
    for (heads, rows), marker in zip(trained.groupby("heads"), ("s", "^", "D"), strict=True):
        look = {"color": "C3", "linestyle": "", "marker": marker, "markersize": 5, "markerfacecolor": "none"}
        (points[f"published figure, {heads:.0f} heads"],) = axes.plot(rows["length"], rows["loss"], **look)
    axes.set(xlabel="prompt length $L$", ylabel="mean square error", ylim=(0, None), xlim=(5, 118))
    noisy = legend_line("--", 1.5)
    lines = {"exact": legend_line("-"), "exact, noise added again": noisy, "printed loss": legend_point(), **points}
    legend_with(axes, lines, loc="upper right", ncols=2)
    return figure


def _slope(lengths: pd.Series, deviations: pd.Series) -> tuple[float, float]:
    """Return the slope of deviations in ln L, and its standard error from the scatter."""
    x, y = np.log(lengths.to_numpy(float)), deviations.to_numpy()
    x = x - x.mean()
    slope = float(x @ y / (x @ x))
    rest = y - y.mean() - slope * x
    return slope, float(np.sqrt(rest @ rest / (len(x) - 2) / (x @ x)))
