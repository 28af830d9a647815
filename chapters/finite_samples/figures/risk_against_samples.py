r"""Linear attention is ahead with few prompts and softmax with many, each head at its best allowed ridges.

Lines: replica theory for softmax and for linear attention, and the Bayes-optimal risk by state evolution; the output
0 has risk 1. Markers: means of training runs from the hidden directions in three dimensions, with two standard
errors. Dotted: the best risks with infinitely many prompts. Where the best key ridge is the smallest one allowed (see
the data), a lower risk is possible.

Alt: Line chart with three falling curves. The Bayes-optimal curve is lowest. Linear attention is below softmax with
few prompts and highest from one and a half prompts per dimension on. Markers of simulated training are on these two.
Two dotted levels: softmax and the Bayes-optimal curve approach the lower one, linear attention the upper one.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.finite_samples.style import COLOURS, crossing, draw_runs, draw_theory, plain_ticks
from chapters.finite_samples.theory import FAR, Bounds, Trained, ridge_at
from chapters.finite_samples.training import HEADS, NOISE_STD, SMALLEST_RIDGE, SNR, Rerun
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label, markers
from lib.statistics import comparison_quantile

# Linear attention is ahead up to the first sample ratio, softmax from the second on.
FEW, MORE = 0.75, 1.5


def numbers(curves: Trained, bounds: Bounds, runs: pd.DataFrame, ridges: pd.DataFrame, rerun: Rerun) -> Numbers:
    """Return theory, means of runs and best risks; claim which head is ahead where, the limits, and a repeated run."""
    means = runs.groupby(["head", "alpha", "dimension"], sort=False)["risk"].agg(["mean", "sem"])
    rows = []
    for (head, alpha), fixed in curves.items():
        smallest = ridge_at(ridges, head, alpha)[0] <= SMALLEST_RIDGE
        rows.append((head, "theory", alpha, 0, *fixed["risk"], smallest))
    rows += [("Bayes-optimal", "theory", alpha, 0, risk, 0.0, True, False) for alpha, risk in bounds.optimal.items()]
    rows += [(head, "runs", alpha, size, *mean, True, False) for (head, alpha, size), *mean in means.itertuples()]
    rows += [(head, "n = ∞", 0.0, 0, risk, 0.0, True, False) for head, risk in bounds.heads.items()]
    columns = {
        "head": Column(
            "`softmax` or `linear`, at its best ridges; `Bayes-optimal`: the Bayes-optimal estimator", "name"
        ),
        "kind": Column(
            "`theory`: replica or state evolution; `runs`: simulated; `n = ∞`: best risk of the head", "name"
        ),
        "alpha": Column("Sample ratio $α = n/D$; 0 where it is infinite"),
        "dimension": Column("$D$ of the runs; 0 for theory"),
        "risk": Column("Excess risk; the output 0 has risk 1", std_error="std_error"),
        "std_error": Column("Standard error: of the quasi-random average, or over runs", moves_with="risk"),
        "converged": Column("False where the replica iteration found no fixed point", "yes or no"),
        "floored": Column(f"Whether the key ridge is the smallest one allowed, {SMALLEST_RIDGE:g}", "yes or no"),
    }
    return Numbers(Table(pd.DataFrame(rows, columns=list(columns)), columns), _claims(curves, bounds, rerun))


def _claims(curves: Trained, bounds: Bounds, rerun: Rerun) -> Claims:
    claim = Claims("finite-samples")
    alphas, optimal = (np.asarray(list(each)) for each in (bounds.optimal, bounds.optimal.values()))
    softmax, linear = (np.asarray([curves[head, alpha]["risk"].known for alpha in alphas]) for head in HEADS)
    error = np.hypot(*([curves[head, alpha]["risk"].std_error for alpha in alphas] for head in HEADS))
    training_errors = [
        [2 * curves[head, alpha]["train_loss"].known - NOISE_STD**2 for alpha in alphas] for head in HEADS
    ]
    ratio, lead, few, more = softmax / linear, (softmax - linear) / error, alphas <= FEW, alphas >= MORE
    claim.at_least(
        "bayes-optimal",
        "The risk of a trained head is larger than that of the Bayes-optimal estimator at each of "
        f"{len(alphas)} sample ratios (smallest ratio of the risks, by theory).",
        np.min(np.minimum(softmax, linear) / optimal),
        1,
        because="at 1 the risks are equal",
        source="[D26, abstract]",
        box="bayes-optimal-estimator",
        rejects=("the error on the training prompts instead of the risk", np.min(training_errors / optimal)),
    )
    claim.at_most(
        "advantage",
        f"From $n = {MORE:g} D$ prompts on, softmax has a lower risk than linear attention in the spiked task of "
        f"$ν = {SNR:g}$, each head at its best ridges (largest ratio of the two risks).",
        ratio[more].max(),
        1,
        because="at 1 the risks are equal",
        source="[D26, abstract]",
        rejects=(f"the same up to $n = {FEW:g} D$", ratio[few].max()),
    )
    claim.at_least(
        "linear-ahead",
        f"Up to $n = {FEW:g} D$ prompts linear attention has a lower risk than softmax in the spiked task of "
        f"$ν = {SNR:g}$, each head at its best ridges (smallest difference, in combined standard errors).",
        lead[few].min(),
        comparison_quantile(int(few.sum())),
        because=f"99.9 % quantile of the largest of {few.sum()} standard normal deviations",
        source="measured here",
        rejects=(f"the difference from $n = {MORE:g} D$ on", lead[more].min()),
    )
    # the distances of each head to its best risk and to that of the other head, at the larger of two sample ratios over
    # those at the smaller one
    floors = np.asarray([bounds.heads[head] for head in HEADS])
    near, far = (np.asarray([bounds.far[head, alpha]["risk"].known for head in HEADS]) for alpha in FAR)
    claim.at_most(
        "right-floor",
        f"The risk of each trained head tends to the best risk of its kind: from $α = {FAR[0]:g}$ to {FAR[1]:,g} the "
        "distance falls faster than $1/√α$ (larger of the two factors).",
        np.max(np.abs((far - floors) / (near - floors))),
        (FAR[0] / FAR[1]) ** 0.5,
        because="the factor of a decay like $1/√α$, as stated",
        source="[D26]",
        box="replica-prediction",
        rejects=(
            "each head tends to the best risk of the other",
            np.min(np.abs((far - floors[::-1]) / (near - floors[::-1]))),
        ),
        requires=(
            np.isfinite(far).all() and np.isfinite(near).all(),
            f"the iteration found no fixed point at $α = {FAR[1]:,g}$ with so few `points`",
        ),
    )
    claim.equal(
        "floor",
        "With a million prompts per dimension the risk of the Bayes-optimal estimator is the Bayes risk.",
        bounds.end,
        bounds.heads["softmax"],
        within=1e-3,
        because="accuracy of the averages of the state evolution",
        source="[D26]",
        box="bayes-optimal-estimator",
        rejects=("the best risk of linear attention", bounds.heads["linear"]),
    )
    claim.equal(
        "rerun",
        "A training run of the tracked data of `finite_samples`, when repeated, has the same risk.",
        rerun.again,
        rerun.tracked,
        within=1e-4,
        because="the final gradient of L-BFGS, and rounding on another machine",
        source="measured here",
        rejects=("a run on other prompts", rerun.other),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw curves of theory, markers of runs and dotted best risks."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    theory, runs = table[table["kind"] == "theory"], table[table["kind"] == "runs"]
    sizes = sorted(runs["dimension"].unique().tolist())
    # factors that separate the markers of different dimensions
    nudges = np.linspace(0.96, 1.04, len(sizes))
    for head, colour in COLOURS.items():
        draw_theory(axes, theory[theory["head"] == head], "risk", colour)
        for marker, size, nudge in zip(markers(len(sizes)), sizes, nudges, strict=True):
            group = runs[(runs["head"] == head) & (runs["dimension"] == size)]
            style = {"color": colour, "marker": marker, "markersize": 5, "capsize": 0, "elinewidth": 1.2}
            draw_runs(axes, group["alpha"] * nudge, group["risk"], group["std_error"], **style)
    ahead = crossing(theory)
    axes.axvline(ahead, ymax=0.14, color=ink(), linestyle=":", linewidth=1.5)
    for head, side in (("linear", "right"), ("softmax", "left")):
        look = {"ha": side, "xytext": (-8 if side == "right" else 8, 0), "fontweight": "bold"}
        label(axes, ahead, 0.06, f"{head} ahead", COLOURS[head], **look)
    for floor in table[table["kind"] == "n = ∞"].itertuples():
        axes.axhline(floor.risk, color=COLOURS[floor.head], linestyle=":", linewidth=1.5)
        name = "softmax and Bayes-optimal" if floor.head == "softmax" else floor.head
        look = {"xytext": (4, 7), "fontsize": 10}
        label(axes, theory["alpha"].min(), floor.risk, rf"{name}, $n=\infty$", COLOURS[floor.head], **look)
    for head, colour in COLOURS.items():
        last = theory[theory["head"] == head].sort_values("alpha").iloc[-1]
        label(axes, last["alpha"], last["risk"], head, colour, xytext=(8, 4))
    look = {"color": ink(), "linestyle": "", "fillstyle": "none"}
    marks = [Line2D([], [], marker=marker, **look) for marker in markers(len(sizes))]
    axes.legend(marks, [f"training, $D={size}$" for size in sizes], loc="upper right")
    axes.set(xscale="log", xlabel=r"prompts per dimension, $\alpha=n/D$", ylabel="excess risk", ylim=(0, None))
    plain_ticks(axes, theory["alpha"])
    return figure
