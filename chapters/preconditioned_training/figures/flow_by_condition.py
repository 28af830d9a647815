r"""With the query as target, the plain flow is slowed by the square of the condition number, the preconditioned flow by
its square root.

A softmax head learns a regression from infinite prompts. Vertical axis: $\lVert V\Sigma U-I\rVert_{\mathrm{op}}$, from
a balanced head (for the plain flow $V=U$) with the same small share of the target in every direction. Time unit: one
over the largest rate at the optimum, which limits the step of gradient descent. Blocks: heads $(A,b)$ with the gradient
$\Sigma^{-2}\nabla_A\Sigma^{-1}$. Curves are closed forms.

Alt: Chart with a logarithmic time axis. Curves fall from one to zero. Those of condition number one coincide. With a
larger condition number, the preconditioned curves fall a little later, and the plain ones orders of magnitude later.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.preconditioned_training.flows import BLOCKS, PLAIN, PRECONDITIONED
from chapters.preconditioned_training.matrix_regression import STEP_TOLERANCE, Learning
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, legend_line, legend_point, legend_with, power_of_ten, sequence

# The error of a step times the number of steps that a flow needs, less than a thousand.
INTEGRATION_ERROR = 1000 * STEP_TOLERANCE
STYLES = {PLAIN: "-", PRECONDITIONED: "--", BLOCKS: ":"}


def numbers(learning: Sequence[Learning]) -> Numbers:
    """Return the errors by flow, condition number and time; claims on the closed forms and on both slow-downs."""
    groups = []
    for each in learning:
        grid = np.geomspace(0.5, 1.5 * each.times[-1], 100)
        common = {"flow": each.flow, "condition": each.condition}
        groups.append(common | {"time": grid, "error": each.closed_form(grid)})
        times = each.times[1:]
        groups.append(common | {"time": times, "error": each.closed_form(times), "integrated": each.integrated[1:]})
    columns = {
        "flow": Column("Flow of a head, plain or preconditioned, or preconditioned flow of blocks"),
        "condition": Column("Condition number of $Σ$, whose largest eigenvalue is 1"),
        "time": Column("Time, in units of one over the fastest rate at the optimum"),
        "error": Column("Largest error of the learnt matrix in operator norm, closed form"),
        "integrated": Column(
            "The same error of the integrated flow; empty between the points", absolute=INTEGRATION_ERROR
        ),
    }
    return Numbers(Table.of(groups, columns), _claims(learning))


def _claims(learning: Sequence[Learning]) -> Claims:
    claim = Claims("preconditioned-training", source="derived here", box="balanced-flows")
    differences = [np.abs(each.integrated - each.closed_form(each.times)).max() for each in learning]
    at_half_rate = [np.abs(each.integrated - each.closed_form(each.times / 2)).max() for each in learning]
    claim.at_most(
        "closed-forms",
        f"{len(learning)} flows of full matrices, with condition numbers up to "
        f"{max(each.condition for each in learning):,g}, follow their closed forms (measured: the largest difference "
        "of the error of the learnt matrix).",
        max(differences),
        INTEGRATION_ERROR,
        because="the relative error of a step of the integration times a thousand, more than the number of steps",
        comparisons=sum(each.times.size for each in learning),
        rejects=(
            "the flows learn each axis at half the rate, without the growth of the second factor",
            max(at_half_rate),
        ),
    )
    for flow, expected, theory, other in (
        (PLAIN, 2.0, "the time grows like the condition number, as for least squares with one matrix", 1.0),
        (PRECONDITIONED, 0.5, "the preconditioner removes the condition number", 0.0),
    ):
        times = {each.condition: each.halving_time() for each in learning if each.flow == flow}
        small, large = min(times), max(times)
        claim.equal(
            f"{flow}-power",
            f"The time after which the {flow} flow has halved its error, in units of one over the fastest rate, grows "
            f"with the power {expected:g} of the condition number (measured: the power between {small:,g} and "
            f"{large:,g}).",
            np.log(times[large] / times[small]) / np.log(large / small),
            expected,
            within=1e-4,
            because="an error of 10⁻⁶ of the integrated curve at its half moves the logarithm of a time by less than "
            "10⁻⁵, with a reserve of ten",
            rejects=(theory, other),
        )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw closed forms, one line style per flow and one colour per condition number, with the integrated points."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.6))
    axes.set(xscale="log", xlabel="time, in units of one over the fastest rate")
    conditions = sorted(table["condition"].unique())
    colours = dict(zip(conditions, sequence(len(conditions)), strict=True))
    for (flow, condition), rows in table.groupby(["flow", "condition"], sort=False):
        curve, points = rows[rows["integrated"].isna()], rows[rows["integrated"].notna()]
        colour = ink() if flow == BLOCKS else colours[condition]
        axes.plot(curve["time"], curve["error"], color=colour, linestyle=STYLES[flow], linewidth=2)
        if flow != BLOCKS:
            axes.plot(points["time"], points["integrated"], "o", color=colour, markersize=4.5)
        if flow == PRECONDITIONED or (flow == PLAIN and condition > 1):
            label(axes, _time(table, flow, condition, 0.5), 0.5, f"{condition:g}", colour, xytext=(7, 4))
    largest, arrow = conditions[-1], {"arrowstyle": "->", "color": ink(), "shrinkA": 0, "shrinkB": 0}
    for flow, height, text in (
        (PRECONDITIONED, 0.8, rf"$\times\,\sqrt{{\kappa}}={largest**0.5:g}$"),
        (PLAIN, 0.16, rf"$\times\,\kappa^2={power_of_ten(largest**2)}$"),
    ):
        start, end = (_time(table, flow, condition, height) for condition in (conditions[0], largest))
        axes.annotate("", (end, height), (start, height), arrowprops=arrow)
        label(axes, end, height, text, ink())
    label(axes, 0.55, 0.3, "blocks,\nany $\\kappa$", ink(), xytext=(0, 0))
    lines = {flow: legend_line(line) for flow, line in STYLES.items()} | {"integrated": legend_point()}
    legend_with(axes, lines, loc="center", bbox_to_anchor=(0.695, 0.5), title="labels:\ncondition number $\\kappa$")
    axes.set(ylabel="largest error of the learnt matrix", ylim=(-0.03, 1.05), xlim=(0.5, 2 * table["time"].max()))
    return figure


def _time(table: pd.DataFrame, flow: str, condition: float, error: float) -> float:
    """Return the time at which a flow reaches this error."""
    curve = table[(table["flow"] == flow) & (table["condition"] == condition) & table["integrated"].isna()]
    return float(np.interp(-error, -curve["error"], curve["time"]))
