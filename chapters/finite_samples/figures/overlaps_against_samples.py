r"""Replica theory predicts every overlap and the training loss of both trained heads at their best ridges.

The horizontal axes show prompts per dimension, $\alpha=n/D$ (logarithmic). The panels show $m_k=k\cdot k^\star/D$,
$q_k=|k|^2/D$, the same for the value vector, and half the mean square error on the training prompts. Lines: replica
theory. Markers: training runs at three dimensions, extrapolated to $D\to\infty$ by a straight line in $1/D$, with two
standard errors. The kinks come from the ridges, which change with $\alpha$. Crosses instead of a line: the replica
iteration found no fixed point.

Alt: Five panels of curves for softmax and linear attention against prompts per dimension, with markers of simulated
training near every curve, within about one error bar. The overlaps of softmax with both hidden directions
grow to about one; the key of linear attention levels off, and its value vector stays short.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

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
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, label
from lib.statistics import comparison_quantile, student_quantile

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
    agreement = (_agreement_claim(curves, limits, compared, name) for name in HEADS)
    claims = (*agreement, _open_claim(differences), *_ridge_claims(floor), _key_claim({**curves, **bounds.far}))
    return Numbers(_table(curves, limits), claims)


def _table(curves: Trained, limits: Trained) -> Table:
    """Return overlaps and training loss by sample ratio: replica theory, and runs extrapolated to D → ∞."""
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
    return Table(pd.DataFrame(rows), columns)


def _agreement_claim(curves: Trained, limits: Trained, compared: Sequence[float], name: str) -> Claim:
    """Claim that simulation and replica agree for one head, by the largest deviation."""
    same_ratio, next_ratio = (np.abs(values) for values in deviations(curves, limits, compared, name))
    return Claim(
        id=f"finite-samples-{name}",
        statement=(
            f"Risk, four overlaps and training loss of {name} training runs, extrapolated to $D → ∞$, are those "
            f"of the replica fixed point (largest of {len(same_ratio)} deviations, in combined standard errors)."
        ),
        source="[D26, Result 5.1]",
        box="replica-prediction",
        measured=float(same_ratio.max()),
        expected=0.0,
        tolerance=comparison_quantile(len(same_ratio)),
        reason=f"99.9 % quantile of the largest of {len(same_ratio)} standard normal deviations",
        relation="≤",
        alternative=Alternative("the replica fixed point of the next sample ratio", float(next_ratio.max())),
        comparisons=len(same_ratio),
    )


def _open_claim(differences: Mapping[float, Measured]) -> Claim:
    """Claim that the runs do not decide which head is ahead at the sample ratio `OPEN`."""

    def deviation(alpha):
        return abs(differences[alpha].value) / differences[alpha].std_error

    return Claim.consistent(
        "finite-samples-open",
        (
            f"At $n = {OPEN:g} D$ the training runs do not decide whether softmax or linear attention has the lower "
            "risk (difference of the risks of both heads on the same prompts, extrapolated to $D → ∞$, in standard "
            "errors)."
        ),
        deviation(OPEN),
        comparisons=1,
        source="measured here",
        alternative=Alternative(f"the same at $n = {DECIDED:g} D$", deviation(DECIDED)),
    )


def _ridge_claims(floor: Floor) -> tuple[Claim, Claim]:
    """Claim that the best key ridges are at their lower bound, and that the equations predict lower risks below it."""

    def change(risks):
        """Return the change of the risk when the key ridge is lowered, in combined standard errors."""
        before, after = risks
        return (after.known - before.known) / np.hypot(before.std_error, after.std_error)

    return (
        Claim(
            id="finite-samples-ridge-floor",
            statement=(
                f"The best key ridge of softmax is the smallest one allowed, {SMALLEST_RIDGE:g}, at more than half of "
                f"{floor.ratios} sample ratios (number of these)."
            ),
            source="measured here",
            measured=floor.keys,
            expected=floor.ratios / 2,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("the same for its value ridge", floor.values),
            successes=floor.keys,
            trials=floor.ratios,
        ),
        Claim(
            id="finite-samples-below-floor",
            statement=(
                f"At $n = {AT_FLOOR:g} D$, where the best key ridge of softmax is the smallest one allowed, the "
                f"replica equations predict a lower risk at {LOWERED:g} times this ridge (change in combined "
                "standard errors)."
            ),
            source="measured here",
            measured=change(floor.at_floor),
            expected=-comparison_quantile(1),
            tolerance=0.0,
            reason="99.9 % quantile of one standard normal deviation",
            relation="≤",
            alternative=Alternative(
                f"the same at $n = {ABOVE_FLOOR:g} D$, where the best ridge is inside the range",
                change(floor.above_floor),
            ),
        ),
    )


def _key_claim(curves: Trained) -> Claim:
    """Claim that the key of linear attention is at most as long as that of least squares."""

    def longest(head):
        return max((fixed["q_k"] for (name, _), fixed in curves.items() if name == head), key=lambda key: key.known)

    key, ratios = longest("linear"), sum(name == "linear" for name, _ in curves)
    return Claim(
        id="finite-samples-linear-key",
        statement=(
            "The key of trained linear attention is at most as long as that of least squares with infinitely "
            "many prompts, $q_k = ν (1 - 1/L)²$ (largest $q_k$ over all sample ratios)."
        ),
        source="derived here",
        box="least-squares-key",
        measured=key.known,
        expected=least_squares_key(),
        tolerance=student_quantile(ratios, SCRAMBLES) * key.std_error,
        reason=(
            f"99.9 % quantile of the largest of {ratios} errors of the quasi-random average, each estimated from "
            f"{SCRAMBLES} scrambled sets of points"
        ),
        std_error=key.std_error,
        relation="≤",
        alternative=Alternative("the same for softmax", longest("softmax").known),
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
            style = {"color": COLOURS[head], "marker": "o", "markersize": 4, "capsize": 3}
            draw_runs(panel, runs["alpha"], runs["value"], runs["std_error"], **style)
            if quantity == "train_loss":
                first, place = curve.sort_values("alpha").iloc[0], (10, 0) if head == "softmax" else (0, 12)
                label(panel, first["alpha"], first["value"], head, COLOURS[head], xytext=place)
        panel.set(xscale="log", title=LABELS[quantity], ylim=(0, None))
        plain_ticks(panel, table["alpha"])
    for quantity in ("q_k", "q_v", "train_loss"):
        panels[quantity].set_xlabel(r"$\alpha=n/D$")
    for quantity in ("m_k", "m_v"):
        panels[quantity].tick_params(labelbottom=False)
    return figure
