r"""What n prompts are worth to each head, at its best ridges of at least the smallest that was allowed.

Across, logarithmic: prompts per dimension, $\alpha=n/D$. Up: excess risk; answering 0 costs 1. Lines: replica
theory for softmax and for linear attention, and the Bayes-optimal risk by state evolution. Marks: means of
training runs in growing dimension, with two standard errors. Dotted: the best risk of each head with infinitely
many prompts; softmax shares its own with the Bayes-optimal estimator, linear attention stops far above. Bars at the
bottom: where the head's best key ridge is that smallest one, so that a lower risk is possible. Crosses in place of
a line: the replica iteration found no fixed point.

Alt: Line chart with three falling curves. The Bayes-optimal curve is lowest. Linear attention is below softmax with
few prompts and highest from one and a half prompts a dimension on. Marks of simulated training lie on these two.
Two dotted levels: softmax and the Bayes-optimal curve come down to the lower one, linear attention to the upper.
Bars along the bottom cover most of the axis for softmax, and its left part for linear attention.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.finite_samples.style import COLOURS, draw_runs, draw_theory, plain_ticks
from chapters.finite_samples.theory import FAR, Bounds, Measured, Trained, ridge_at
from chapters.finite_samples.training import HEADS, NOISE_STD, SMALLEST_RIDGE, Rerun
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label, markers
from lib.statistics import comparison_quantile

# Up to the first linear attention is ahead, from the second on softmax.
FEW, MORE = 0.75, 1.5


def numbers(curves: Trained, bounds: Bounds, runs: pd.DataFrame, ridges: pd.DataFrame, rerun: Rerun) -> Numbers:
    """Theory, means of runs by dimension, floors; who is ahead where, where all three end, and a run done twice."""

    def row(kind, head, alpha, risk, dimension=0):
        number = {"risk": risk.value, "std_error": risk.std_error, "converged": risk.converged}
        smallest = kind == "theory" and head in HEADS and ridge_at(ridges, head, alpha)[0] <= SMALLEST_RIDGE
        return {"head": head, "kind": kind, "alpha": alpha, "dimension": dimension, **number, "floored": smallest}

    means = runs.groupby(["head", "alpha", "dimension"], sort=False)["risk"].agg(["mean", "sem"])
    rows = [
        *(row("theory", head, alpha, these["risk"]) for (head, alpha), these in curves.items()),
        *(row("theory", "Bayes-optimal", alpha, Measured(risk, 0.0)) for alpha, risk in bounds.optimal.items()),
        *(row("runs", head, alpha, Measured(*mean), size) for (head, alpha, size), *mean in means.itertuples()),
        *(row("n = ∞", head, 0.0, Measured(risk, 0.0)) for head, risk in bounds.heads.items()),
    ]
    columns = {
        "head": Column(
            "`softmax` or `linear`, at its best ridges; `Bayes-optimal`: no head, the best estimator", "name"
        ),
        "kind": Column(
            "`theory`: replica or state evolution; `runs`: simulated; `n = ∞`: best risk of the head", "name"
        ),
        "alpha": Column("Sample ratio α = n/D; 0 where it is infinite"),
        "dimension": Column("D of the runs; 0 for theory"),
        "risk": Column("Excess risk; answering 0 costs 1", std_error="std_error"),
        "std_error": Column("Standard error: of the quasi-random average, or over runs", moves_with="risk"),
        "converged": Column("False where the replica iteration found no fixed point", "yes or no"),
        "floored": Column(f"Whether theory stands at the smallest key ridge allowed, {SMALLEST_RIDGE:g}", "yes or no"),
    }
    claims = (*_order_claims(curves, bounds), *_end_claims(bounds), _rerun_claim(rerun))
    return Numbers(Table(pd.DataFrame(rows), columns), claims)


def _order_claims(curves: Trained, bounds: Bounds) -> tuple[Claim, Claim, Claim]:
    alphas, optimal = (np.asarray(list(each)) for each in (bounds.optimal, bounds.optimal.values()))
    soft, flat = (np.asarray([curves[head, alpha]["risk"].known for alpha in alphas]) for head in HEADS)
    error = np.hypot(*([curves[head, alpha]["risk"].std_error for alpha in alphas] for head in HEADS))
    seen = [[2 * curves[head, alpha]["train_loss"].known - NOISE_STD**2 for alpha in alphas] for head in HEADS]
    lead, few, more = (soft - flat) / error, alphas <= FEW, alphas >= MORE
    return (
        Claim(
            id="finite-samples-bayes-optimal",
            statement=(
                f"At none of {len(alphas)} sample ratios is a trained head as good as the Bayes-optimal "
                "estimator: the least ratio of its risk to the optimal one."
            ),
            source="[D26, abstract]",
            box="bayes-optimal-estimator",
            measured=np.min(np.minimum(soft, flat) / optimal),
            expected=1.0,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("the error on the training prompts taken for the risk", np.min(seen / optimal)),
        ),
        Claim(
            id="finite-samples-advantage",
            statement=(
                f"From n = {MORE:g} D prompts on, softmax at its best ridges beats linear attention at its own: the "
                "largest ratio of the two risks."
            ),
            source="[D26, abstract]",
            measured=(soft / flat)[more].max(),
            expected=1.0,
            tolerance=0.0,
            relation="≤",
            alternative=Alternative(f"the same up to n = {FEW:g} D", (soft / flat)[few].max()),
        ),
        Claim(
            id="finite-samples-linear-ahead",
            statement=(
                f"Up to n = {FEW:g} D prompts linear attention is ahead of softmax, each at its best ridges: the least "
                "difference of the risks, in combined standard errors."
            ),
            source="measured here",
            measured=lead[few].min(),
            expected=comparison_quantile(int(few.sum())),
            tolerance=0.0,
            relation="≥",
            alternative=Alternative(f"the order from n = {MORE:g} D on", lead[more].min()),
        ),
    )


def _end_claims(bounds: Bounds) -> tuple[Claim, Claim]:
    end, other = bounds.heads["softmax"], {"softmax": "linear", "linear": "softmax"}

    def left(floors):
        """What is left of the way to the floor at the farther sample ratio, over the same at the nearer one."""
        near, farther = ({head: bounds.far[head, alpha]["risk"].known for head in HEADS} for alpha in FAR)
        return [abs(farther[head] - floors[head]) / abs(near[head] - floors[head]) for head in HEADS]

    return (
        Claim(
            id="finite-samples-right-floor",
            statement=(
                f"Each trained head tends to the best risk of its kind: from α = {FAR[0]:g} to {FAR[1]:g} its distance "
                "to that falls faster than 1/√α; the larger of the two factors."
            ),
            source="[D26]",
            box="replica-prediction",
            measured=max(left(bounds.heads)),
            expected=(FAR[0] / FAR[1]) ** 0.5,
            tolerance=0.0,
            relation="≤",
            alternative=Alternative(
                "each tended to the floor of the other",
                min(left({head: bounds.heads[other[head]] for head in HEADS})),
            ),
        ),
        Claim(
            id="finite-samples-floor",
            statement="With a million prompts a dimension the Bayes-optimal risk is the population Bayes risk.",
            source="[D26]",
            box="bayes-optimal-estimator",
            measured=bounds.end,
            expected=end,
            tolerance=1e-3,  # what the averages of the state evolution are good to
            alternative=Alternative("it ended where linear attention does", bounds.heads["linear"]),
        ),
    )


def _rerun_claim(rerun: Rerun) -> Claim:
    return Claim(
        id="finite-samples-rerun",
        statement="A training run of the tracked data, done again here, finds the same risk.",
        source="measured here",
        measured=rerun.again,
        expected=rerun.tracked,
        tolerance=1e-4,  # what the gradient left by L-BFGS, and rounding on another machine, may move a risk
        alternative=Alternative("other prompts had been drawn", rerun.other),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Curves of theory, marks of runs, dotted floors."""
    figure, axes = plt.subplots(figsize=(8.0, 4.5))
    theory, runs = table[table["kind"] == "theory"], table[table["kind"] == "runs"]
    sizes = sorted(runs["dimension"].unique().tolist())
    # factors that keep marks of different sizes apart
    nudges = np.linspace(0.96, 1.04, len(sizes))
    for head, colour in COLOURS.items():
        draw_theory(axes, theory[theory["head"] == head], "risk", colour)
        for marker, size, nudge in zip(markers(len(sizes)), sizes, nudges, strict=True):
            mine = runs[(runs["head"] == head) & (runs["dimension"] == size)]
            style = {"color": colour, "marker": marker, "markersize": 5, "capsize": 0, "elinewidth": 1.2}
            draw_runs(axes, mine["alpha"] * nudge, mine["risk"], mine["std_error"], **style)
    for level, (head, mine) in zip((0.015, 0.035), theory[theory["floored"]].groupby("head", sort=False), strict=False):
        axes.plot(mine["alpha"], np.full(len(mine), level), color=COLOURS[head], linewidth=4, solid_capstyle="butt")
    for floor in table[table["kind"] == "n = ∞"].itertuples():
        axes.axhline(floor.risk, color=COLOURS[floor.head], linestyle=":", linewidth=1.5)
        left = {"xytext": (4, 7), "ha": "left", "fontsize": 10}
        name = "softmax and Bayes-optimal" if floor.head == "softmax" else floor.head
        label(axes, theory["alpha"].min(), floor.risk, rf"{name}, $n=\infty$", COLOURS[floor.head], **left)
    for head, colour in COLOURS.items():
        last = theory[theory["head"] == head].sort_values("alpha").iloc[-1]
        label(axes, last["alpha"], last["risk"], head, colour, xytext=(8, 4))
    said = {"xytext": (0, 0), "ha": "left", "fontsize": 10}
    label(axes, theory["alpha"].min(), 0.075, "here the best key ridge is the smallest that was allowed", ink(), **said)
    marks = [Line2D([], [], color=ink(), marker=one, linestyle="", fillstyle="none") for one in markers(len(sizes))]
    axes.legend(marks, [f"training, $D={size}$" for size in sizes], loc="upper right")
    axes.set(xscale="log", xlabel=r"prompts per dimension, $\alpha=n/D$", ylabel="excess risk", ylim=(0, None))
    plain_ticks(axes, theory["alpha"])
    headline(figure, "Few prompts favour linear attention, many favour softmax")
    return figure
