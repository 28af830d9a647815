r"""From small tilts, trajectories separate more slowly than in proportion to time, far below Grönwall's envelope.

Time is multiplied by the largest curvature $\beta$ of $R_\infty$ between the two trajectories. The distance
$\|\theta_L(t)-\theta_\infty(t)\|$, root mean square over runs, is divided by $g(L)\,t$, where $g(L)$ is the largest gap
of the gradients of drawn and infinite prompts at the same head. There is one curve per sub-Gaussian task and length.
The arrow leads from the envelope to the highest curve.

Alt: One log-log panel. An orange curve is flat at one and then rises beyond the top. All solid curves start between
0.2 and one and bend downwards, more and more with time; none follows the orange curve.
"""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.trajectory_stability.envelope import Envelope
from chapters.wording import listing
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, ink, label, sequence

# Times at which the claim compares, in units of 1/β.
UNITS = (1.0, 2.0, 4.0)


def numbers(envelopes: Mapping[str, Envelope]) -> Numbers:
    """Return distance and envelope against time, for the shortest, a middle and the longest length, and the claim."""
    groups = [
        _path(name, envelope, index)
        for name, envelope in envelopes.items()
        for index in (0, len(envelope.lengths) // 2, len(envelope.lengths) - 1)
    ]
    columns = {
        "task": Column("The task", "name"),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "time": Column("Training time $t$: step size times number of steps"),
        "gap": Estimate("Distance $‖θ_L(t) - θ_∞(t)‖$, root mean square over runs", std_error="std_error"),
        "envelope": Column(
            "$g(L) t e^{βt}$, $g(L)$ the largest measured gap of gradients at one head", moves_with="gap"
        ),
        "linear": Column("$g(L) t$, the envelope if differences did not grow", moves_with="gap"),
        "curvature": Column(
            "$β$, the largest norm of the Hessian of $R_∞$ between the two trajectories", moves_with="gap"
        ),
        "scaled_time": Column("Time in units of the curvature, $βt$", moves_with="gap"),
        "envelope_growth": Column("Envelope over $g(L) t$, which is $e^{βt}$", moves_with="gap"),
        "growth": Column("Distance over $g(L) t$", std_error="growth_std_error"),
        "growth_std_error": Column("Standard error of this ratio, without the error of $g(L)$", moves_with="gap"),
        "compared": Column("Whether the claim compares distance and envelope at this time", "yes or no"),
    }
    # the first step is not compared: there the ratio is e^{-βη} for any prompts
    ratio = apart = 0.0
    for envelope in envelopes.values():
        at = [envelope.step_at(unit) for unit in UNITS]
        ratio = max(ratio, np.max(envelope.distance[at] / envelope.bound[at]))
        apart = max(apart, np.max(envelope.from_zero[at, None] / envelope.bound[at]))
    claim = Claims("trajectory-stability", source="[BB26, Lemma D.1]", box="bb26-lemma-d-1")
    claim.at_most(
        "envelope",
        f"When $βt$ reaches {listing(f'{unit:g}' for unit in UNITS)}, the distance between the two trajectories is "
        "below $g(L) t e^{βt}$, with $β$ the curvature of $R_∞$ between them (measured: the largest ratio of distance "
        "to envelope, over tasks and lengths).",
        ratio,
        1,
        because="at 1 the distance is the envelope, which has the form of the lemma",
        rejects=("the finite head starts at zero, where it stays", apart),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw all tasks in one panel: distance over linear growth, against time in units of 1/β."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    lengths, unit = sorted(table["length"].unique().tolist()), UNITS[-1]
    reached = []
    for length, colour in zip(lengths, sequence(len(lengths)), strict=True):
        for _, curve in table[table["length"] == length].groupby("task", sort=False):
            axes.plot(curve["scaled_time"], curve["growth"], color=colour, linewidth=1.1, alpha=0.6)
            if curve["scaled_time"].max() >= unit:
                reached.append(np.interp(unit, curve["scaled_time"], curve["growth"]))
        axes.plot([], [], color=colour, linewidth=2, label=f"$L={length}$")
    envelope = table.sort_values("scaled_time")
    axes.plot(envelope["scaled_time"], envelope["envelope_growth"], color="C1", linewidth=2.6)
    axes.axhline(1, color=ink(), linestyle=":", linewidth=1.8)
    axes.set(xscale="log", yscale="log", xlabel=r"time in units of the curvature, $\beta t$")
    axes.set_ylabel(r"distance / (gradient gap $g(L)$ $\times$ time $t$)")
    axes.set(xlim=(table["scaled_time"].min(), table["scaled_time"].max()), ylim=(table["growth"].min() / 1.5, 200))
    top, most = np.exp(unit), max(reached)
    look = {"arrowstyle": "<|-|>", "color": ink(), "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (unit, most), (unit, top), arrowprops=look)
    label(axes, unit, 4, rf"$\times\,{top / most:.0f}$ at $\beta t={unit:g}$", ink(), xytext=(8, 0), fontsize=12)
    start = axes.get_xlim()[0]
    words = {"xytext": (8, 0), "fontsize": 12}
    label(axes, start, 2.4, r"the proof allows $e^{\beta t}$", "C1", **words)
    label(axes, start, 0.055, "measured, one curve per task", ink(), **words)
    label(axes, unit / 7, 1, "in proportion to time", ink(), xytext=(0, 8), ha="left", fontsize=10.5)
    axes.legend(loc="lower left", ncols=3)
    return figure


def _path(name: str, envelope: Envelope, index: int) -> dict[str, Any]:
    """Return the columns of one task and length."""
    gap, std_error, bound = (values[:, index] for values in (envelope.distance, envelope.std_error, envelope.bound))
    linear = envelope.prompt_noise[index] * envelope.times
    at = [envelope.step_at(unit) for unit in UNITS]
    return {
        "task": name,
        "length": envelope.lengths[index],
        "time": envelope.times,
        "gap": gap,
        "std_error": std_error,
        "envelope": bound,
        "linear": linear,
        "curvature": envelope.curvature,
        "scaled_time": envelope.curvature * envelope.times,
        "envelope_growth": bound / linear,
        "growth": gap / linear,
        "growth_std_error": std_error / linear,
        "compared": np.where(np.isin(np.arange(len(envelope.times)), at), "yes", "no"),
    }
