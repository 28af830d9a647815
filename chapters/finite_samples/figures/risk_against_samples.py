r"""Linear attention is ahead with few prompts and softmax with many, each head at its best allowed ridges.

The horizontal axis shows prompts per dimension, $\alpha=n/D$ (logarithmic), the vertical axis the excess risk; the
output 0 has risk 1. Lines: replica theory for softmax and for linear attention, and the Bayes-optimal risk by state
evolution. Markers: means of training runs in three dimensions, with two standard errors. Dotted: the best risk of each
head with infinitely many prompts; that of softmax is also the limit of the Bayes-optimal estimator. Bars at the bottom:
sample ratios at which the best key ridge of a head is the smallest one allowed, so that a lower risk is possible.
Crosses instead of a line: the replica iteration found no fixed point.

Alt: Line chart with three falling curves. The Bayes-optimal curve is lowest. Linear attention is below softmax with
few prompts and highest from one and a half prompts per dimension on. Markers of simulated training are on these two.
Two dotted levels: softmax and the Bayes-optimal curve approach the lower one, linear attention the upper one.
Bars along the bottom cover most of the axis for softmax, and its left part for linear attention.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.finite_samples.style import COLOURS, draw_runs, draw_theory, plain_ticks
from chapters.finite_samples.theory import FAR, Bounds, Measured, Trained, ridge_at
from chapters.finite_samples.training import HEADS, NOISE_STD, SMALLEST_RIDGE, SNR, Rerun
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label, markers
from lib.statistics import comparison_quantile

# Linear attention is ahead up to the first sample ratio, softmax from the second on.
FEW, MORE = 0.75, 1.5


def numbers(curves: Trained, bounds: Bounds, runs: pd.DataFrame, ridges: pd.DataFrame, rerun: Rerun) -> Numbers:
    """Return theory, means of runs and best risks; claim which head is ahead where, the limits, and a repeated run."""

    def row(kind, head, alpha, risk, dimension=0):
        number = {"risk": risk.value, "std_error": risk.std_error, "converged": risk.converged}
        smallest = kind == "theory" and head in HEADS and ridge_at(ridges, head, alpha)[0] <= SMALLEST_RIDGE
        return {"head": head, "kind": kind, "alpha": alpha, "dimension": dimension, **number, "floored": smallest}

    means = runs.groupby(["head", "alpha", "dimension"], sort=False)["risk"].agg(["mean", "sem"])
    rows = [
        *(row("theory", head, alpha, fixed["risk"]) for (head, alpha), fixed in curves.items()),
        *(row("theory", "Bayes-optimal", alpha, Measured(risk, 0.0)) for alpha, risk in bounds.optimal.items()),
        *(row("runs", head, alpha, Measured(*mean), size) for (head, alpha, size), *mean in means.itertuples()),
        *(row("n = ∞", head, 0.0, Measured(risk, 0.0)) for head, risk in bounds.heads.items()),
    ]
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
    claims = (*_order_claims(curves, bounds), *_end_claims(bounds), _rerun_claim(rerun))
    return Numbers(Table(pd.DataFrame(rows), columns), claims)


def _order_claims(curves: Trained, bounds: Bounds) -> tuple[Claim, Claim, Claim]:
    alphas, optimal = (np.asarray(list(each)) for each in (bounds.optimal, bounds.optimal.values()))
    softmax, linear = (np.asarray([curves[head, alpha]["risk"].known for alpha in alphas]) for head in HEADS)
    error = np.hypot(*([curves[head, alpha]["risk"].std_error for alpha in alphas] for head in HEADS))
    training_errors = [
        [2 * curves[head, alpha]["train_loss"].known - NOISE_STD**2 for alpha in alphas] for head in HEADS
    ]
    lead, few, more = (softmax - linear) / error, alphas <= FEW, alphas >= MORE
    return (
        Claim(
            id="finite-samples-bayes-optimal",
            statement=(
                "The risk of a trained head is larger than that of the Bayes-optimal estimator at each of "
                f"{len(alphas)} sample ratios (smallest ratio of the risks, by theory)."
            ),
            source="[D26, abstract]",
            box="bayes-optimal-estimator",
            measured=np.min(np.minimum(softmax, linear) / optimal),
            expected=1.0,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative(
                "the error on the training prompts instead of the risk", np.min(training_errors / optimal)
            ),
        ),
        Claim(
            id="finite-samples-advantage",
            statement=(
                f"From $n = {MORE:g} D$ prompts on, softmax has a lower risk than linear attention in the spiked "
                f"task of $ν = {SNR:g}$, each head at its best ridges (largest ratio of the two risks)."
            ),
            source="[D26, abstract]",
            measured=(softmax / linear)[more].max(),
            expected=1.0,
            tolerance=0.0,
            relation="≤",
            alternative=Alternative(f"the same up to $n = {FEW:g} D$", (softmax / linear)[few].max()),
        ),
        Claim(
            id="finite-samples-linear-ahead",
            statement=(
                f"Up to $n = {FEW:g} D$ prompts linear attention has a lower risk than softmax in the spiked "
                f"task of $ν = {SNR:g}$, each head at its best ridges (smallest difference, in combined standard "
                "errors)."
            ),
            source="measured here",
            measured=lead[few].min(),
            expected=comparison_quantile(int(few.sum())),
            tolerance=0.0,
            reason=f"99.9 % quantile of the largest of {int(few.sum())} standard normal deviations",
            relation="≥",
            alternative=Alternative(f"the difference from $n = {MORE:g} D$ on", lead[more].min()),
        ),
    )


def _end_claims(bounds: Bounds) -> tuple[Claim, Claim]:
    end, swapped = bounds.heads["softmax"], {"softmax": "linear", "linear": "softmax"}

    def remaining(floors):
        """Return the distance to the best risk at the larger sample ratio, over that at the smaller one."""
        near, farther = ({head: bounds.far[head, alpha]["risk"].known for head in HEADS} for alpha in FAR)
        return [abs(farther[head] - floors[head]) / abs(near[head] - floors[head]) for head in HEADS]

    return (
        Claim(
            id="finite-samples-right-floor",
            statement=(
                f"The risk of each trained head tends to the best risk of its kind: from $α = {FAR[0]:g}$ to "
                f"{FAR[1]:,g} the distance falls faster than $1/√α$ (larger of the two factors)."
            ),
            source="[D26]",
            box="replica-prediction",
            measured=max(remaining(bounds.heads)),
            expected=(FAR[0] / FAR[1]) ** 0.5,
            tolerance=0.0,
            relation="≤",
            alternative=Alternative(
                "each head tends to the best risk of the other",
                min(remaining({head: bounds.heads[swapped[head]] for head in HEADS})),
            ),
        ),
        Claim(
            id="finite-samples-floor",
            statement="With a million prompts per dimension the risk of the Bayes-optimal estimator is the Bayes risk.",
            source="[D26]",
            box="bayes-optimal-estimator",
            measured=bounds.end,
            expected=end,
            tolerance=1e-3,
            reason="accuracy of the averages of the state evolution",
            alternative=Alternative("the best risk of linear attention", bounds.heads["linear"]),
        ),
    )


def _rerun_claim(rerun: Rerun) -> Claim:
    return Claim(
        id="finite-samples-rerun",
        statement="A training run of the tracked data of `finite_samples`, when repeated, has the same risk.",
        source="measured here",
        measured=rerun.again,
        expected=rerun.tracked,
        tolerance=1e-4,
        reason="the final gradient of L-BFGS, and rounding on another machine",
        alternative=Alternative("a run on other prompts", rerun.other),
    )


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
    for level, (head, group) in zip(
        (0.015, 0.035), theory[theory["floored"]].groupby("head", sort=False), strict=False
    ):
        axes.plot(group["alpha"], np.full(len(group), level), color=COLOURS[head], linewidth=4, solid_capstyle="butt")
    for floor in table[table["kind"] == "n = ∞"].itertuples():
        axes.axhline(floor.risk, color=COLOURS[floor.head], linestyle=":", linewidth=1.5)
        left = {"xytext": (4, 7), "ha": "left", "fontsize": 10}
        name = "softmax and Bayes-optimal" if floor.head == "softmax" else floor.head
        label(axes, theory["alpha"].min(), floor.risk, rf"{name}, $n=\infty$", COLOURS[floor.head], **left)
    for head, colour in COLOURS.items():
        last = theory[theory["head"] == head].sort_values("alpha").iloc[-1]
        label(axes, last["alpha"], last["risk"], head, colour, xytext=(8, 4))
    place = {"xytext": (0, 0), "ha": "left", "fontsize": 10}
    label(axes, theory["alpha"].min(), 0.075, "best key ridge is the smallest allowed", ink(), **place)
    marks = [
        Line2D([], [], color=ink(), marker=marker, linestyle="", fillstyle="none") for marker in markers(len(sizes))
    ]
    axes.legend(marks, [f"training, $D={size}$" for size in sizes], loc="upper right")
    axes.set(xscale="log", xlabel=r"prompts per dimension, $\alpha=n/D$", ylabel="excess risk", ylim=(0, None))
    plain_ticks(axes, theory["alpha"])
    return figure
