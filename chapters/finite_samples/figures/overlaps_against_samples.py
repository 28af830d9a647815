r"""Inside the trained heads: overlaps and training loss at the best ridges.

Across, logarithmic: prompts per dimension, $\alpha=n/D$. Up: $m_k=k\cdot k^\star/D$, $q_k=|k|^2/D$, the same for
the value vector, and half the mean square error on the training prompts. Lines: replica theory. Marks: training
runs at three dimensions, taken to $D\to\infty$ by a straight line in $1/D$, with two standard errors. The jumps of
slope come from the ridges, which change with $\alpha$. Crosses in place of a line: the replica iteration found no
fixed point.

Alt: Five panels of curves for softmax and linear attention against prompts per dimension, with marks of simulated
training near every curve, within about one error bar. The overlaps of softmax with both hidden directions
grow to about one; the key of linear attention levels off, and its value vector stays short.
"""

from collections.abc import Sequence

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
    Trained,
    least_squares_key,
)
from chapters.finite_samples.training import HEADS, SMALLEST_RIDGE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, label
from lib.statistics import comparison_quantile

LABELS = {
    "m_k": "key along the hidden one, $m_k$",
    "q_k": "squared length of the key, $q_k$",
    "m_v": "value along the hidden one, $m_v$",
    "q_v": "squared length of the value, $q_v$",
    "train_loss": "training loss",
}


# Sample ratios at which the runs leave the order of the heads open, and at which they do not.
OPEN, DECIDED = 1.0, 1.5


def numbers(curves: Trained, bounds: Bounds, limits: Trained, compared: Sequence[float], floor: Floor) -> Numbers:
    """Theory beside the runs at D → ∞, which agree at the sample ratios `compared`; ridges at their floor; a key."""
    agreement = (_agreement_claim(curves, limits, compared, name) for name in HEADS)
    claims = (*agreement, _open_claim(limits), *_ridge_claims(floor), _key_claim({**curves, **bounds.far}))
    return Numbers(_table(curves, limits), claims)


def _table(curves: Trained, limits: Trained) -> Table:
    """Overlaps and training loss against the sample ratio: replica, and runs taken to D → ∞."""
    rows = [
        {"head": head, "kind": kind, "quantity": quantity, "alpha": alpha, **these[quantity]._asdict()}
        for kind, trained in {"theory": curves, "runs": limits}.items()
        for quantity in QUANTITIES[1:]
        for (head, alpha), these in trained.items()
    ]
    columns = {
        "head": Column("`softmax` or `linear`, at its best ridges", "name"),
        "kind": Column("`theory`: replica; `runs`: simulated at three dimensions and extrapolated in 1/D", "name"),
        "quantity": Column(
            "`m_k`, `q_k`, `m_v`, `q_v`: overlaps; `train_loss`: half the mean square on the prompts", "name"
        ),
        "alpha": Column("Sample ratio α = n/D"),
        "value": Column("The quantity", std_error="std_error"),
        "std_error": Column("Standard error: of the quasi-random average, or over runs", moves_with="value"),
        "converged": Column("False where the replica iteration found no fixed point", "yes or no"),
    }
    return Table(pd.DataFrame(rows), columns)


def _agreement_claim(curves: Trained, limits: Trained, compared: Sequence[float], name: str) -> Claim:
    """The worst deviation between simulation and replica for one head."""
    right, wrong = (np.abs(each) for each in deviations(curves, limits, compared, name))
    return Claim(
        id=f"finite-samples-{name}",
        statement=(
            f"Risk, four overlaps and training loss of {name} training runs, taken to D → ∞, are those of the replica "
            f"fixed point: the worst of {len(right)} deviations, in combined standard errors."
        ),
        source="[D26, Result 5.1]",
        box="replica-prediction",
        measured=float(right.max()),
        expected=0.0,
        tolerance=comparison_quantile(len(right)),
        relation="≤",
        alternative=Alternative("the runs followed the theory of the next sample ratio", float(wrong.max())),
    )


def _open_claim(limits: Trained) -> Claim:
    """Between few prompts and more, who is ahead is not known here."""

    def apart(alpha):
        soft, flat = (limits[head, alpha]["risk"] for head in HEADS)
        return float(abs(soft.value - flat.value) / np.hypot(soft.std_error, flat.std_error))

    return Claim(
        id="finite-samples-open",
        statement=(
            f"At n = {OPEN:g} D the training runs do not decide which head is ahead: the difference of their risks, "
            "taken to D → ∞, in combined standard errors."
        ),
        source="measured here",
        measured=apart(OPEN),
        expected=0.0,
        tolerance=comparison_quantile(1),
        relation="≤",
        alternative=Alternative(f"the same at n = {DECIDED:g} D", apart(DECIDED)),
    )


def _ridge_claims(floor: Floor) -> tuple[Claim, Claim]:
    """The best key ridges are where the search was stopped, and below that floor the equations promise more."""

    def change(risks):
        """Of the risk when the key ridge is lowered, in combined standard errors."""
        before, after = risks
        return (after.known - before.known) / np.hypot(before.std_error, after.std_error)

    return (
        Claim(
            id="finite-samples-ridge-floor",
            statement=(
                f"The best key ridge of softmax is the smallest that was allowed, {SMALLEST_RIDGE:g}, at most sample "
                f"ratios: at so many of {floor.ratios}."
            ),
            source="measured here",
            measured=floor.keys,
            expected=floor.ratios / 2,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("the same for its value ridge", floor.values),
        ),
        Claim(
            id="finite-samples-below-floor",
            statement=(
                f"At n = {AT_FLOOR:g} D, where the key ridge of softmax is at its floor, {LOWERED:g} times that ridge "
                "would lower the risk, were the replica equations right there: the change in combined standard errors."
            ),
            source="measured here",
            measured=change(floor.at_floor),
            expected=-comparison_quantile(1),
            tolerance=0.0,
            relation="≤",
            alternative=Alternative(
                f"the same at n = {ABOVE_FLOOR:g} D, where the best ridge is above", change(floor.above_floor)
            ),
        ),
    )


def _key_claim(curves: Trained) -> Claim:
    """Linear attention's key is short: it grows to that of least squares from below."""

    def longest(head):
        return max(these["q_k"].known for (name, _), these in curves.items() if name == head)

    return Claim(
        id="finite-samples-linear-key",
        statement=(
            "The key of linear attention never becomes longer than that of least squares with infinitely many prompts, "
            "q_k = ν (1 - 1/L)²: the largest q_k at any sample ratio."
        ),
        source="derived here",
        box="least-squares-key",
        measured=longest("linear"),
        expected=least_squares_key(),
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("the same for softmax", longest("softmax")),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A column for the key, one for the value, one for the loss: curves of theory, marks of runs."""
    figure = plt.figure(figsize=(9.0, 5.0))
    panels = figure.subplot_mosaic([["m_k", "m_v", "train_loss"], ["q_k", "q_v", "train_loss"]], sharex=True)
    for quantity, panel in panels.items():
        for head in ("softmax", "linear"):
            mine = table[(table["head"] == head) & (table["quantity"] == quantity)]
            curve, runs = mine[mine["kind"] == "theory"], mine[mine["kind"] == "runs"]
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
    headline(figure, "What replica theory says of each overlap, training finds")
    return figure
