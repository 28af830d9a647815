r"""What n prompts are worth to each head, at its best ridges.

Across, logarithmic: prompts per dimension, $\alpha=n/D$. Up: excess risk; answering 0 costs 1. Lines: replica
theory for softmax and for linear attention, and the Bayes-optimal risk by state evolution. Marks: means of
training runs in growing dimension, with their standard errors. Dotted: the best risk of each head with infinitely
many prompts; softmax shares its own with the Bayes-optimal estimator, linear attention stops far above.

Alt: Line chart with three falling curves. The Bayes-optimal curve is lowest, softmax comes next, linear attention
is highest from one and a half prompts a dimension on. Marks of simulated training lie on the two upper curves.
Two dotted levels: the lower one is approached by both the Bayes-optimal and the softmax curve, the upper one by
the linear curve.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.finite_samples.marks import COLOURS, plain_ticks
from chapters.finite_samples.theory import Trained
from chapters.finite_samples.training import HEADS, NOISE_STD, RUNS, task, train
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink
from lib.single_location.activations import linear
from lib.single_location.bayes_optimal import bayes_optimal_risk
from lib.single_location.population import bayes_risk, best_risk

MARKERS = ("o", "s", "^", "D", "v")


@dataclass(frozen=True)
class Floors:
    """Risks at n = ∞: the best of each head; and the Bayes-optimal one with a million prompts a dimension."""

    heads: Mapping[str, float]
    optimal: float


@dataclass(frozen=True)
class Rerun:
    """The risk of one tracked training run, of the same run done again, and of one on other prompts."""

    tracked: float
    again: float
    other: float


def bayes_optimal(alphas: Iterable[float]) -> dict[float, float]:
    """By sample ratio: the risk of the Bayes-optimal estimator."""
    return {alpha: float(bayes_optimal_risk(task(), noise_std=NOISE_STD, alpha=alpha)) for alpha in alphas}


def find_floors() -> Floors:
    """Population risks of both heads, and the end of the Bayes-optimal curve."""
    heads = {"softmax": float(bayes_risk(task())), "linear": float(best_risk(task(), linear))}
    return Floors(heads, float(bayes_optimal_risk(task(), noise_std=NOISE_STD, alpha=1e6)))


def train_again(runs: pd.DataFrame) -> Rerun:
    """One tracked training run, done again, and its twin on other prompts."""
    row = runs[(runs["head"] == "softmax") & (runs["dimension"] == min(RUNS))].iloc[0]
    ridge = (float(row["ridge_k"]), float(row["ridge_v"]))
    setting = {"alpha": float(row["alpha"]), "ridge": ridge, "dimension": int(row["dimension"])}
    again, other = train("softmax", "informed", **setting, seeds=[int(row["seed"]), 999]).risk
    return Rerun(float(row["risk"]), float(again), float(other))


def numbers(
    curves: Trained, optimal: Mapping[float, float], floors: Floors, runs: pd.DataFrame, rerun: Rerun
) -> Numbers:
    """Theory, runs and floors; who is ahead of whom, where the best estimator ends, and a run done twice."""
    claims = (
        _order_claim(curves, optimal),
        _advantage_claim(curves, optimal),
        _floor_claim(floors),
        _rerun_claim(rerun),
    )
    return Numbers(_table(curves, optimal, floors, runs), claims)


def _table(curves: Trained, optimal: Mapping[float, float], floors: Floors, runs: pd.DataFrame) -> Table:
    """Excess risk against the sample ratio: theory, means of runs by dimension, and the population floors."""
    theory = [
        *((head, alpha, *these["risk"]) for (head, alpha), these in curves.items()),
        *(("Bayes-optimal", alpha, risk, 0.0) for alpha, risk in optimal.items()),
    ]
    theory_rows = pd.DataFrame(theory, columns=["head", "alpha", "risk", "std_error"])
    theory_rows = theory_rows.assign(kind="theory", dimension=0)
    means = runs.groupby(["head", "alpha", "dimension"], sort=False)["risk"].agg(["mean", "sem"]).reset_index()
    means = means.rename(columns={"mean": "risk", "sem": "std_error"}).assign(kind="runs")
    floor_rows = pd.DataFrame(
        {"head": list(floors.heads), "alpha": 0.0, "risk": list(floors.heads.values()), "std_error": 0.0}
    ).assign(kind="n = ∞", dimension=0)
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
        "std_error": Column("Standard error: of the quasi-random average, or over runs", std_error="std_error"),
    }
    return Table(pd.concat([theory_rows, means, floor_rows], ignore_index=True).reindex(columns=list(columns)), columns)


def _order_claim(curves: Trained, optimal: Mapping[float, float]) -> Claim:
    """The least ratio of a head's risk to the Bayes-optimal one."""
    least = min(curves[name, alpha]["risk"].value / best for name in HEADS for alpha, best in optimal.items())
    return Claim(
        id="finite-samples-bayes-optimal",
        statement=(
            f"At none of {len(optimal)} sample ratios is a trained head as good as the Bayes-optimal estimator: the "
            "least ratio of its risk to the optimal one."
        ),
        source="[D26]",
        measured=least,
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("trained heads were 40 % better than they are", 0.6 * least),
    )


def _advantage_claim(curves: Trained, alphas: Iterable[float]) -> Claim:
    """The largest ratio of softmax to linear risk, from α = 1.5 on."""
    many = [alpha for alpha in alphas if alpha >= 1.5]
    ratio = np.asarray(
        [curves["softmax", alpha]["risk"].value / curves["linear", alpha]["risk"].value for alpha in many]
    )
    return Claim(
        id="finite-samples-advantage",
        statement=(
            "From n = 1.5 D prompts on, softmax at its best ridges beats linear attention at its own: the largest "
            "ratio of the two risks."
        ),
        source="[D26]",
        measured=float(ratio.max()),
        expected=1.0,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("the heads changed places", float((1 / ratio).max())),
    )


def _floor_claim(floors: Floors) -> Claim:
    """Bayes-optimal at α = 10⁶ against the population Bayes risk."""
    floor = floors.heads["softmax"]
    return Claim(
        id="finite-samples-floor",
        statement="With a million prompts a dimension the Bayes-optimal risk is the population Bayes risk.",
        source="[D26]",
        measured=floors.optimal,
        expected=floor,
        tolerance=1e-3,
        alternative=Alternative("it stayed one hundredth of its way to 1 above", floor + 0.01 * (1 - floor)),
    )


def _rerun_claim(rerun: Rerun) -> Claim:
    return Claim(
        id="finite-samples-rerun",
        statement="A training run of the tracked data, done again here, finds the same risk.",
        source="derived here",
        measured=rerun.again,
        expected=rerun.tracked,
        tolerance=1e-4,
        alternative=Alternative("other prompts had been drawn", rerun.other),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Curves of theory, marks of runs, dotted floors."""
    figure, axes = plt.subplots(figsize=(8.0, 4.5))
    theory, runs = table[table["kind"] == "theory"], table[table["kind"] == "runs"]
    sizes = sorted(runs["dimension"].unique().tolist())
    for head, colour in COLOURS.items():
        curve = theory[theory["head"] == head]
        axes.plot(curve["alpha"], curve["risk"], color=colour, linewidth=2)
        for marker, size, nudge in zip(MARKERS, sizes, _nudges(sizes), strict=False):
            mine = runs[(runs["head"] == head) & (runs["dimension"] == size)]
            axes.errorbar(
                mine["alpha"] * nudge,
                mine["risk"],
                mine["std_error"],
                color=colour,
                marker=marker,
                linestyle="",
                markersize=5,
                capsize=2,
                fillstyle="none",
            )
    for _, floor in table[table["kind"] == "n = ∞"].iterrows():
        axes.axhline(floor["risk"], color=COLOURS[floor["head"]], linestyle=":", linewidth=1.5)
    lines = [Line2D([], [], color=colour, linewidth=2) for colour in COLOURS.values()]
    marks = [
        Line2D([], [], color=ink(), marker=marker, linestyle="", fillstyle="none")
        for marker, _ in zip(MARKERS, sizes, strict=False)
    ]
    dotted = Line2D([], [], color=ink(), linestyle=":")
    labels = [*COLOURS, *(f"training, $D={size}$" for size in sizes), r"$n=\infty$"]
    axes.legend([*lines, *marks, dotted], labels, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.set(xscale="log", xlabel=r"prompts per dimension, $\alpha=n/D$", ylabel="excess risk", ylim=(0, None))
    plain_ticks(axes, theory["alpha"])
    return figure


def _nudges(sizes: list[int]) -> np.ndarray:
    """Factors that keep marks of different sizes apart."""
    return np.linspace(0.97, 1.03, len(sizes))
