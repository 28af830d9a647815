r"""Losses printed by [He25] lie on the exact curves, and the curves of their figure lie higher by the noise variance.

Solid curves: the exact mean square error of a pair with the published keys $\pm0.13$ and values $\pm3.45$, and of one
head with the published key and value for 40 tokens. Nothing is fitted. Filled markers: losses that the published code
prints, means over 50,000 prompts. Open markers: losses of trained models with 2, 4 and 8 heads, as their figure shows
them. Dashed curve: the exact error of the pair plus the variance of the noise, which the code behind that figure adds
to an error that contains it already.

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
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import COLUMN, label, legend_line, legend_with

LEVELS = ("head", "pair", "debiased")
SOURCE = "[He25]"
SAMPLING = "the relative standard error of a mean of 50,000 squares is between a half and one percent"


def numbers(losses: PublishedLosses) -> Numbers:
    """Return printed and exact losses; claim their agreement, and the noise that the published figure adds."""
    printed = losses.printed
    claims = [_level_claim(printed), *_deviation_claims(printed), _slope_claim(printed), _noise_claim(losses)]
    curves = losses.curves.assign(kind="curve")
    frame = pd.concat([printed.assign(kind="printed"), curves], ignore_index=True)
    frame["noise_twice"] = frame["exact"] + losses.noise_variance
    columns = {
        "kind": Column("`printed`: a printed loss; `curve`: a point of an exact curve", "name"),
        "predictor": Column("Pair, one head, gradient descent, debiased descent, or a trained model", "name"),
        "heads": Column("Softmax heads of the predictor; 0 for gradient descent"),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "loss": Column("Loss as printed by the code of [He25]"),
        "prompts": Column("Simulated prompts behind the printed loss"),
        "exact": Column("Exact mean square error with the published parameters, label noise included once"),
        "noise_twice": Column("The same error plus the variance of the noise"),
        "approximate": Column("Approximate loss of the published code at the same parameters"),
    }
    return Numbers(Table(frame.reindex(columns=list(columns)), columns), tuple(claims))


def _of(printed: pd.DataFrame, predictor: str) -> pd.DataFrame:
    return printed[printed["predictor"] == predictor].sort_values("length")


def _level_claim(printed: pd.DataFrame) -> Claim:
    """Claim that three printed losses at the length of training are the exact ones."""
    rows = pd.concat([_of(printed, name) for name in LEVELS])
    rows = rows[rows["length"] == TRAINED_LENGTH]
    heads = rows.dropna(subset=["approximate"])
    return Claim.at_most(
        "opposite-heads-published-levels",
        f"At $L = {TRAINED_LENGTH}$ the printed losses of one head, of the pair and of debiased gradient descent are "
        "the exact mean square errors (measured: the largest relative deviation).",
        float(np.max(np.abs(rows["loss"] / rows["exact"] - 1))),
        LARGEST_DEVIATION,
        because=SAMPLING,
        source=SOURCE,
        comparisons=len(rows),
        alternative=Alternative(
            "the approximate loss of the published code holds at this length",
            float(np.max(np.abs(heads["loss"] / heads["approximate"] - 1))),
        ),
    )


def _deviation_claims(printed: pd.DataFrame) -> list[Claim]:
    """Claim that the printed losses of the pair and of one head have small deviations at all lengths."""

    def spread(rows: pd.DataFrame, column: str) -> float:
        return float(np.sqrt(np.mean((rows["loss"] / rows[column] - 1) ** 2)))

    return [
        Claim.at_most(
            f"opposite-heads-published-{predictor}",
            f"At {len(rows)} prompt lengths the printed losses of {words} are the exact mean square errors (measured: "
            "the root mean square of the relative deviations).",
            spread(rows, "exact"),
            LARGEST_DEVIATION,
            because=SAMPLING,
            source=SOURCE,
            alternative=Alternative(
                "the approximate loss of the published code holds at these lengths", spread(rows, "approximate")
            ),
        )
        for predictor, words in (("pair", "the pair"), ("head", "one head"))
        for rows in (_of(printed, predictor),)
    ]


def _slope(rows: pd.DataFrame, column: str) -> tuple[float, float]:
    """Return the slope of the relative deviation in ln L, and its standard error from the scatter."""
    x, y = np.log(rows["length"].to_numpy(float)), (rows["loss"] / rows[column] - 1).to_numpy()
    x = x - x.mean()
    slope = float(x @ y / (x @ x))
    rest = y - y.mean() - slope * x
    return slope, float(np.sqrt(rest @ rest / (len(x) - 2) / (x @ x)))


def _slope_claim(printed: pd.DataFrame) -> Claim:
    """Claim that the deviation of the pair does not change with the length."""
    rows = _of(printed, "pair")
    slope, error = _slope(rows, "exact")
    return Claim.equal(
        "opposite-heads-published-trend",
        "The relative deviation of the printed losses of the pair has no trend in the prompt length (measured: its "
        "slope in $ln L$).",
        slope,
        0.0,
        within=SLOPE_ERRORS * error,
        because="two standard errors of the slope, from the scatter about the line",
        source=SOURCE,
        std_error=error,
        alternative=Alternative("the approximate loss of the published code", _slope(rows, "approximate")[0]),
    )


def _noise_claim(losses: PublishedLosses) -> Claim:
    """Claim that the losses of the published figure exceed the exact error of the pair by the noise variance."""
    rows = losses.printed[(losses.printed["predictor"] == "trained") & (losses.printed["heads"] > 1)]
    offset = (rows["loss"] - rows["exact"]).to_numpy()
    return Claim.equal(
        "opposite-heads-published-noise",
        f"In the published figure, the losses of trained models with 2, 4 and 8 heads at {rows['length'].nunique()} "
        "lengths exceed the exact mean square error of the pair, which contains the noise once, by the variance of the "
        "noise (measured: the mean difference).",
        float(offset.mean()),
        losses.noise_variance,
        within=OFFSET_ERROR,
        because="four standard errors of a mean of 57 losses of 20,000 prompts each, and the rounding of the published "
        "parameters",
        source=SOURCE,
        std_error=float(offset.std(ddof=1) / len(offset) ** 0.5),
        alternative=Alternative("the figure shows the mean square error, with the noise once", 0.0),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw exact curves, printed losses and the losses of the published figure."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    curves = table[table["kind"] == "curve"]
    for predictor, words, colour in (("head", "one head", "C2"), ("pair", "pair", "C0")):
        curve, rows = curves[curves["predictor"] == predictor], _of(table[table["kind"] == "printed"], predictor)
        axes.plot(curve["length"], curve["exact"], color=colour, linewidth=2)
        axes.plot(rows["length"], rows["loss"], color=colour, linestyle="", marker="o", markersize=5)
        label(axes, curve["length"].iloc[-1], curve["exact"].iloc[-1], words, colour, xytext=(8, 2))
    pair = curves[curves["predictor"] == "pair"]
    axes.plot(pair["length"], pair["noise_twice"], color="C3", linewidth=1.5, linestyle="--")
    label(axes, pair["length"].iloc[-1], pair["noise_twice"].iloc[-1], "pair + noise", "C3", xytext=(8, -10))
    trained = table[(table["predictor"] == "trained") & (table["heads"] > 1)]
    points = {}
    for (heads, rows), marker in zip(trained.groupby("heads"), ("s", "^", "D"), strict=True):
        look = {"color": "C3", "linestyle": "", "marker": marker, "markersize": 5, "markerfacecolor": "none"}
        (points[f"published figure, {heads:.0f} heads"],) = axes.plot(rows["length"], rows["loss"], **look)
    axes.set(xlabel="prompt length $L$", ylabel="mean square error", ylim=(0, None), xlim=(5, 118))
    (printed,) = axes.plot([], [], color="C0", linestyle="", marker="o", markersize=5)
    lines = {"exact": legend_line("-"), "exact, noise added again": legend_line("--", 1.5), "printed loss": printed}
    legend_with(axes, {**lines, **points}, loc="upper right", ncols=2)
    return figure
