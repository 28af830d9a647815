r"""Gradient descent reaches the risk of L-BFGS; SGD ends above it, in the case of softmax only with many prompts.

The task is the paper's spiked task at $\nu=2$, with the ridges of {numref}`fig-published-samples`. The horizontal axis
shows prompts per dimension, $\alpha=n/D$ (logarithmic). The vertical axis is the risk of gradient descent on all
prompts (open circles) and of stochastic gradient descent (SGD, squares), minus that of L-BFGS on the same prompts, from
the same start, with bars of two standard errors. The circle of softmax at $\alpha=1$ is off the line because of one run
that ends at another minimum.

Alt: Two panels of differences against prompts per dimension. Open circles are on a line at zero, except for one of
softmax at one prompt per dimension, with a bar that includes zero. Squares of linear attention are above the line,
mostly by several thousandths of the risk of the output zero; those of softmax are around it with few prompts and about
one thousandth above it with many.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.finite_samples.gradient_training import SGD_STEPS
from chapters.finite_samples.style import COLOURS, DIFFERENT, plain_ticks
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label
from lib.statistics import comparison_quantile, standard_error

DESCENT, SGD = "gradient descent", "SGD"
MARKERS = {DESCENT: "o", SGD: "s"}
# The factor that separates markers of one sample ratio.
ASIDE = 1.06


def numbers(plain: pd.DataFrame, quasi_newton: pd.DataFrame) -> Numbers:
    """Return risks of three training methods on the same prompts, and claim their differences run by run."""
    same = quasi_newton[quasi_newton["start"] == "uninformed"]
    pairs = plain.merge(same, on=["head", "alpha", "dimension", "seed"], suffixes=("", "_newton"))
    pairs["above"] = pairs["risk"] - pairs["risk_newton"]
    pairs["distance"] = _relative_distance(pairs["objective"], pairs["objective_newton"])
    pairs["apart"] = pairs["distance"] > DIFFERENT
    settings = pairs.groupby(["method", "head", "alpha"], sort=False)
    frame = settings.agg(
        risk=("risk", "mean"),
        risk_error=("risk", _error),
        newton=("risk_newton", "mean"),
        above=("above", "mean"),
        above_error=("above", _error),
        apart=("apart", "mean"),
    ).reset_index()
    columns = {
        "method": Column("`gradient descent` on all prompts, or `SGD` on batches of them", "name"),
        "head": Column("`softmax` or `linear`", "name"),
        "alpha": Column("Sample ratio $α = n/D$"),
        "risk": Column("Excess risk, mean over sets of prompts; the output 0 has risk 1", std_error="risk_error"),
        "risk_error": Column("Standard error of the risk, over sets of prompts", moves_with="risk"),
        "newton": Column("Excess risk of L-BFGS on the same prompts", moves_with="risk"),
        "above": Column("Mean difference of the two risks, run by run", std_error="above_error"),
        "above_error": Column("Standard error of the mean difference", moves_with="above"),
        "apart": Column("Fraction of runs whose objective differs from that of L-BFGS by more than a ten-thousandth"),
    }
    return Numbers(Table(frame[list(columns)], columns), _claims(pairs, frame, quasi_newton))


def _claims(pairs: pd.DataFrame, frame: pd.DataFrame, quasi_newton: pd.DataFrame) -> Claims:
    claim = Claims("finite-samples-plain", source="measured here")
    median = pairs.groupby(["method", "head", "alpha"])["distance"].median().groupby("method").max()
    claim.at_most(
        "descent",
        "Gradient descent on all prompts reaches the minimum of L-BFGS on the same prompts from the same random start, "
        "at every sample ratio and for both heads (relative difference of the objectives, median over sets of prompts, "
        "the largest).",
        median[DESCENT],
        0,
        within=DIFFERENT,
        because="objectives with a larger relative difference belong to different minima",
        rejects=(f"the same for SGD with {SGD_STEPS:,} steps", median[SGD]),
    )
    informed = quasi_newton[quasi_newton["start"] == "informed"]
    runs = pairs[(pairs["method"] == DESCENT) & (pairs["head"] == "softmax")]
    runs = runs.merge(informed, on=["head", "alpha", "dimension", "seed"], suffixes=("", "_informed"))
    runs = runs[_relative_distance(runs["objective_newton"], runs["objective_informed"]) > DIFFERENT]
    elsewhere = _relative_distance(runs["objective"], runs["objective_informed"]) > DIFFERENT
    claim.at_most(
        "valley",
        "Where L-BFGS from a random start and from the hidden directions ends at different minima of softmax, gradient "
        f"descent from the random start ends at the first (fraction of {len(runs)} runs in which it does not).",
        runs["apart"].mean(),
        0,
        within=0.15,
        because="a start near the border between two minima may lead to either",
        count=(runs["apart"].sum(), len(runs)),
        rejects=("it ends at the second", elsewhere.mean()),
    )
    by_set = pairs.groupby(["head", "method", "seed"])["above"].mean()
    farther = {}
    for method in (SGD, DESCENT):
        difference = by_set["linear"][method] - by_set["softmax"][method]
        farther[method] = difference.mean() / _error(difference)
    sets = pairs["seed"].nunique()
    claim.at_least(
        "sgd",
        f"After SGD with {SGD_STEPS:,} steps, whose size decreases to zero, the risk of linear attention is farther "
        "above that of L-BFGS on the same prompts than the risk of softmax (mean over sample ratios, in standard "
        f"errors over {sets} sets of prompts).",
        farther[SGD],
        comparison_quantile(1, samples=sets),
        because=f"99.9 % quantile of Student's distribution for {sets} sets of prompts",
        rejects=("the same for gradient descent", farther[DESCENT]),
    )
    risk = frame[frame["method"] == SGD].set_index(["head", "alpha"])["risk"]
    ratio = risk["softmax"] / risk["linear"]
    claim.at_most(
        "advantage",
        "Trained by SGD, softmax has a lower risk than linear attention from two prompts per dimension on, in the "
        "spiked task at $ν = 2$ (largest ratio of the mean risks).",
        ratio[ratio.index >= 2].max(),
        1,
        because="at 1 the risks are equal",
        rejects=("the same with fewer prompts", ratio[ratio.index < 2].max()),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the differences from L-BFGS, in thousandths, in one panel per head."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.8), sharey=True)
    bottom, top = (1e3 * (table["above"] + sign * 2 * table["above_error"]) for sign in (-1, 1))
    bottom, top = bottom.min(), top.max()
    for panel, head in zip(panels, ("linear", "softmax"), strict=True):
        panel.axhline(0, color=ink(), linewidth=1.4)
        for method, shift in ((DESCENT, 1 / ASIDE), (SGD, ASIDE)):
            rows = table[(table["head"] == head) & (table["method"] == method)]
            look = {"color": COLOURS[head], "marker": MARKERS[method], "fillstyle": "full" if method == SGD else "none"}
            error_bars(panel, rows["alpha"] * shift, 1e3 * rows["above"], 1e3 * rows["above_error"], **look)
        clear = rows["above"] > 2 * rows["above_error"]
        for part, words in ((rows[clear], _range(rows[clear])), (rows[~clear], "SGD (squares):\nno clear difference")):
            if len(part):
                ends = (part["alpha"].min() / ASIDE, part["alpha"].max() * ASIDE**2)
                panel.plot(ends, (1.08 * top, 1.08 * top), color=ink())
                middle = np.sqrt(part["alpha"].min() * part["alpha"].max())
                label(panel, middle, 1.08 * top, words, COLOURS[head], xytext=(0, 6), ha="center", va="bottom")
        end = table["alpha"].max() * ASIDE
        label(panel, end, 0.0, "circles:\ngradient descent", COLOURS[head], xytext=(4, -22), ha="right")
        panel.set(xscale="log", xlabel=r"prompts per dimension, $\alpha=n/D$", ylim=(1.2 * bottom, 1.45 * top))
        panel.set_title("linear attention" if head == "linear" else head)
        plain_ticks(panel, table["alpha"])
    label(panels[1], end, 0.0, "L-BFGS", ink(), xytext=(12, 0))
    panels[0].set_ylabel("excess risk minus that of L-BFGS,\nin thousandths of the risk of output 0")
    return figure


def _range(rows: pd.DataFrame) -> str:
    """Return how far the risks of SGD are above those of L-BFGS, in thousandths."""
    low, high = (f"{1e3 * value:.1f}" for value in (rows["above"].min(), rows["above"].max()))
    return f"SGD (squares)\nabove, {low} to {high}"


def _relative_distance(first: pd.Series, second: pd.Series) -> pd.Series:
    return (first / second - 1.0).abs()


def _error(values: pd.Series) -> float:
    return float(standard_error(values.to_numpy()))
