r"""Replica theory predicts four overlaps and the training loss of both trained heads at their best ridges.

The horizontal axes show prompts per dimension, $\alpha=n/D$ (logarithmic). The panels show $m_k=k\cdot k^\star/D$,
$q_k=|k|^2/D$, the same for the value vector, and half the mean square error on the training prompts. Lines: replica
theory. Markers: training runs at three dimensions, extrapolated to $D\to\infty$ by a straight line in $1/D$, with two
standard errors. The kinks come from the ridges, which change with $\alpha$.

Alt: Five panels of curves for softmax and linear attention against prompts per dimension, with markers of simulated
training near every curve, within about one error bar. The overlaps of softmax with both hidden directions
grow to about one; the key of linear attention levels off, and its value vector stays short.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.finite_samples.extrapolation import deviations
from chapters.finite_samples.style import COLOURS, draw_runs, draw_theory, plain_ticks
from chapters.finite_samples.theory import (
    ABOVE_FLOOR,
    AT_FLOOR,
    LOWERED,
    QUANTITIES,
    Bounds,
    Floor,
    Measured,
    Trained,
    least_squares_key,
)
from chapters.finite_samples.training import HEADS, SMALLEST_RIDGE
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, legend_line, legend_with
from lib.statistics import comparison_quantile

MARK = {"marker": "o", "markersize": 4}
LABELS = {
    "m_k": r"key along $k^{\star}$, $m_k$",
    "q_k": "squared length of the key, $q_k$",
    "m_v": r"value along $v^{\star}$, $m_v$",
    "q_v": "squared length of the value, $q_v$",
    "train_loss": "training loss",
}
# Scrambled sets of points of `lib.single_location.replica`, whose scatter is the standard error of a fixed point.
SCRAMBLES = 8
# A sample ratio at which the runs do not decide the order of the heads, and one at which they do.
OPEN, DECIDED = 1.0, 2.0


def numbers(
    curves: Trained,
    bounds: Bounds,
    limits: Trained,
    compared: Sequence[float],
    floor: Floor,
    *,
    differences: Mapping[float, Measured],
) -> Numbers:
    """Return theory and runs at D → ∞; claim that they agree, and claims about ridges and the key of linear
    attention."""
    rows = [
        {"head": head, "kind": kind, "quantity": quantity, "alpha": alpha, **trained[quantity]._asdict()}
        for kind, settings in {"theory": curves, "runs": limits}.items()
        for quantity in QUANTITIES[1:]
        for (head, alpha), trained in settings.items()
    ]
    columns = {
        "head": Column("`softmax` or `linear`, at its best ridges", "name"),
        "kind": Column("`theory`: replica; `runs`: simulated at three dimensions and extrapolated in $1/D$", "name"),
        "quantity": Column(
            "`m_k`, `q_k`, `m_v`, `q_v`: overlaps; `train_loss`: half the mean square on the prompts", "name"
        ),
        "alpha": Column("Sample ratio $α = n/D$"),
        "value": Column("Value of the quantity", std_error="std_error"),
        "std_error": Column("Standard error: of the quasi-random average, or over runs", moves_with="value"),
        "converged": Column("False where the replica iteration found no fixed point", "yes or no"),
    }
    claim = Claims("finite-samples", source="measured here")
    for name in HEADS:
        same_ratio, next_ratio = deviations(curves, limits, compared, name)
        claim.agree(
            name,
            f"Risk, four overlaps and training loss of {name} training runs, extrapolated to $D → ∞$, are those of the "
            "replica fixed point",
            same_ratio,
            source="[D26, Result 5.1]",
            box="replica-prediction",
            rejects=("the replica fixed point of the next sample ratio", next_ratio),
        )
    undecided, decided = (differences[alpha].value / differences[alpha].std_error for alpha in (OPEN, DECIDED))
    claim.agree(
        "open",
        f"At $n = {OPEN:g} D$ the training runs do not decide whether softmax or linear attention has the lower risk: "
        "their difference on the same prompts, extrapolated to $D → ∞$, is within its error",
        undecided,
        rejects=(f"the same at $n = {DECIDED:g} D$", decided),
    )
    _claim_ridges(claim, floor)
    _claim_key(claim, {**curves, **bounds.far})
    return Numbers(Table(pd.DataFrame(rows), columns), claim)


def _claim_ridges(claim: Claims, floor: Floor) -> None:
    """Claim that the best key ridges are at their lower bound, and that the equations predict lower risks below it."""
    claim.at_least(
        "ridge-floor",
        f"The best key ridge of softmax is the smallest one allowed, {SMALLEST_RIDGE:g}, at more than half of "
        f"{floor.ratios} sample ratios (number of these).",
        floor.keys,
        floor.ratios / 2,
        because="more than half, as stated",
        count=(floor.keys, floor.ratios),
        rejects=("the same for its value ridge", floor.values),
    )
    at_floor, above_floor = (
        (after.known - before.known) / np.hypot(before.std_error, after.std_error)
        for before, after in (floor.at_floor, floor.above_floor)
    )
    claim.at_most(
        "below-floor",
        f"At $n = {AT_FLOOR:g} D$, where the best key ridge of softmax is the smallest one allowed, the replica "
        f"equations predict a lower risk at {LOWERED:g} times this ridge (change in combined standard errors).",
        at_floor,
        -comparison_quantile(1),
        because="99.9 % quantile of one standard normal deviation",
        rejects=(f"the same at $n = {ABOVE_FLOOR:g} D$, where the best ridge is inside the range", above_floor),
    )


def _claim_key(claim: Claims, curves: Trained) -> None:
    """Claim that the key of linear attention is at most as long as that of least squares."""
    keys = {head: [fixed["q_k"] for (name, _), fixed in curves.items() if name == head] for head in HEADS}
    softmax, linear = (max(keys[head], key=lambda key: key.known) for head in ("softmax", "linear"))
    ratios = len(keys["linear"])
    claim.at_most(
        "linear-key",
        "The key of trained linear attention is at most as long as that of least squares with infinitely many prompts, "
        "$q_k = ν (1 - 1/L)²$ (largest $q_k$ over all sample ratios).",
        linear.known,
        least_squares_key(),
        within=comparison_quantile(ratios, samples=SCRAMBLES) * linear.std_error,
        because=f"99.9 % quantile of the largest of {ratios} errors of the quasi-random average, each estimated from "
        f"{SCRAMBLES} scrambled sets of points",
        std_error=linear.std_error,
        source="derived here",
        box="least-squares-key",
        rejects=("the same for softmax", softmax.known),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw columns for the key, the value and the loss: curves of theory and markers of runs."""
    figure = plt.figure(figsize=(WIDE, 5.0))
    panels = figure.subplot_mosaic([["m_k", "m_v", "train_loss"], ["q_k", "q_v", "train_loss"]], sharex=True)
    for quantity, panel in panels.items():
        for head in ("softmax", "linear"):
            rows = table[(table["head"] == head) & (table["quantity"] == quantity)]
            curve, runs = rows[rows["kind"] == "theory"], rows[rows["kind"] == "runs"]
            draw_theory(panel, curve, "value", COLOURS[head])
            draw_runs(panel, runs["alpha"], runs["value"], runs["std_error"], color=COLOURS[head], **MARK, capsize=3)
            if quantity == "train_loss":
                first, place = curve.sort_values("alpha").iloc[0], (10, 0) if head == "softmax" else (0, 12)
                label(panel, first["alpha"], first["value"], head, COLOURS[head], xytext=place)
        panel.set(xscale="log", title=LABELS[quantity], ylim=(0, None))
        plain_ticks(panel, table["alpha"])
    lines = {"replica theory": legend_line("-"), "training": Line2D([], [], **MARK, color=ink(), linestyle="")}
    legend_with(panels["train_loss"], lines, loc="lower left")
    for quantity in ("q_k", "q_v", "train_loss"):
        panels[quantity].set_xlabel(r"$\alpha=n/D$")
    return figure
