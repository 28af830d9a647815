r"""What n prompts are worth to each head, at its best ridges.

Across, logarithmic: prompts per dimension, $\alpha=n/D$. Up: excess risk; answering 0 costs 1. Lines: replica
theory for softmax and for linear attention, and the Bayes-optimal risk by state evolution. Marks: means of
training runs in growing dimension, with their standard errors. Dotted: the best risk of each head with infinitely
many prompts; softmax shares its own with the Bayes-optimal estimator, linear attention stops far above. Crosses in
place of a line: the replica iteration found no fixed point.

Alt: Line chart with three falling curves. The Bayes-optimal curve is lowest, softmax comes next, linear attention
is highest from one and a half prompts a dimension on. Marks of simulated training lie on the two upper curves.
Two dotted levels: the lower one is approached by both the Bayes-optimal and the softmax curve, the upper one by
the linear curve.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.finite_samples.marks import COLOURS, draw_runs, draw_theory, plain_ticks
from chapters.finite_samples.theory import Bounds, Measured, Trained
from chapters.finite_samples.training import HEADS, Rerun
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink, legend_line, markers


def numbers(curves: Trained, bounds: Bounds, runs: pd.DataFrame, rerun: Rerun) -> Numbers:
    """Theory, means of runs by dimension, floors; who is ahead, where the best estimator ends, and a run done twice."""

    def row(kind, head, alpha, risk, dimension=0):
        number = {"risk": risk.value, "std_error": risk.std_error, "converged": risk.converged}
        return {"head": head, "kind": kind, "alpha": alpha, "dimension": dimension, **number}

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
    }
    return Numbers(Table(pd.DataFrame(rows), columns), _claims(curves, bounds, rerun))


def _claims(curves: Trained, bounds: Bounds, rerun: Rerun) -> tuple[Claim, Claim, Claim, Claim]:
    soft, flat = (np.asarray([curves[head, alpha]["risk"].known for alpha in bounds.optimal]) for head in HEADS)
    least = np.min(np.minimum(soft, flat) / list(bounds.optimal.values()))
    ratio = (soft / flat)[np.asarray(list(bounds.optimal)) >= 1.5]
    floor = bounds.heads["softmax"]
    return (
        Claim(
            id="finite-samples-bayes-optimal",
            statement=(
                f"At none of {len(bounds.optimal)} sample ratios is a trained head as good as the Bayes-optimal "
                "estimator: the least ratio of its risk to the optimal one."
            ),
            source="[D26]",
            box="bayes-optimal-estimator",
            measured=least,
            expected=1.0,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("trained heads were 40 % better than they are", 0.6 * least),
        ),
        Claim(
            id="finite-samples-advantage",
            statement=(
                "From n = 1.5 D prompts on, softmax at its best ridges beats linear attention at its own: the largest "
                "ratio of the two risks."
            ),
            source="[D26]",
            measured=ratio.max(),
            expected=1.0,
            tolerance=0.0,
            relation="≤",
            alternative=Alternative("the heads changed places", (1 / ratio).max()),
        ),
        Claim(
            id="finite-samples-floor",
            statement="With a million prompts a dimension the Bayes-optimal risk is the population Bayes risk.",
            source="[D26]",
            box="bayes-optimal-estimator",
            measured=bounds.end,
            expected=floor,
            tolerance=1e-3,
            alternative=Alternative("it stayed one hundredth of its way to 1 above", floor + 0.01 * (1 - floor)),
        ),
        Claim(
            id="finite-samples-rerun",
            statement="A training run of the tracked data, done again here, finds the same risk.",
            source="measured here",
            measured=rerun.again,
            expected=rerun.tracked,
            tolerance=1e-4,
            alternative=Alternative("other prompts had been drawn", rerun.other),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Curves of theory, marks of runs, dotted floors."""
    figure, axes = plt.subplots(figsize=(8.0, 4.5))
    theory, runs = table[table["kind"] == "theory"], table[table["kind"] == "runs"]
    sizes = sorted(runs["dimension"].unique().tolist())
    # factors that keep marks of different sizes apart
    nudges = np.linspace(0.97, 1.03, len(sizes))
    for head, colour in COLOURS.items():
        draw_theory(axes, theory[theory["head"] == head], "risk", colour)
        for marker, size, nudge in zip(markers(len(sizes)), sizes, nudges, strict=True):
            mine = runs[(runs["head"] == head) & (runs["dimension"] == size)]
            style = {"color": colour, "marker": marker, "markersize": 5, "capsize": 2}
            draw_runs(axes, mine["alpha"] * nudge, mine["risk"], mine["std_error"], **style)
    for floor in table[table["kind"] == "n = ∞"].itertuples():
        axes.axhline(floor.risk, color=COLOURS[floor.head], linestyle=":", linewidth=1.5)
    handles = [
        *(Line2D([], [], color=colour, linewidth=2) for colour in COLOURS.values()),
        *(Line2D([], [], color=ink(), marker=marker, linestyle="", fillstyle="none") for marker in markers(len(sizes))),
        legend_line(":", 1.5),
    ]
    labels = [*COLOURS, *(f"training, $D={size}$" for size in sizes), r"$n=\infty$"]
    axes.legend(handles, labels, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set(xscale="log", xlabel=r"prompts per dimension, $\alpha=n/D$", ylabel="excess risk", ylim=(0, None))
    plain_ticks(axes, theory["alpha"])
    return figure
