r"""The distance between the trajectories, and Grönwall's envelope.

Solid: $\|\theta_L(t)-\theta_\infty(t)\|$, root mean square over runs, at a short, a middle and a long prompt.
Dashed: the envelope $g(L)\,t\,e^{\beta t}$, with $g(L)$ the largest measured gap of the gradients at one head and
$\beta$ the largest curvature of $R_\infty$ between the two trajectories. Dotted: $g(L)\,t$, the envelope if
differences did not grow. Vertical lines: fixed multiples of $1/\beta$, where the claim compares. The vertical axis is
cut above; the dashed curves go on.

Alt: One panel for each task, distance against time on a logarithmic axis. Three solid curves rise and
level off, lower for longer prompts; dotted curves run somewhat above them and dashed curves leave upwards at once.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.trajectory_stability.envelope import Envelope
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink, legend_line, sequence

# The fixed times, in units of 1/β.
UNITS = (1.0, 2.0, 4.0)


def numbers(envelopes: Mapping[str, Envelope]) -> Numbers:
    """Distance and envelope against time; the distance stays below."""
    return Numbers(_table(envelopes), (_envelope_claim(envelopes),))


def _table(envelopes: Mapping[str, Envelope]) -> Table:
    """Gap and envelope against time, at the shortest, a middle and the longest length."""
    frames = []
    for name, these in envelopes.items():
        for index in (0, len(these.lengths) // 2, len(these.lengths) - 1):
            base = {"task": name, "length": these.lengths[index], "time": these.times}
            gap = {"gap": these.distance[:, index], "std_error": these.std_error[:, index]}
            linear = these.prompt_noise[index] * these.times
            made_of = {"envelope": these.bound[:, index], "linear": linear, "curvature": these.curvature}
            at = [these.step_at(unit) for unit in UNITS]
            made_of["compared"] = np.where(np.isin(np.arange(len(these.times)), at), "yes", "no")
            frames.append(pd.DataFrame({**base, **gap, **made_of}))
    columns = {
        "task": Column("The task", "name"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "time": Column("Step size times step, t"),
        "gap": Column("‖θ_L(t) - θ_∞(t)‖, root mean square over runs", std_error="std_error"),
        "std_error": Column("Its standard error", moves_with="gap"),
        "envelope": Column("g(L) t e^{βt}, g(L) the largest measured gap of gradients at one head", moves_with="gap"),
        "linear": Column("g(L) t, the envelope if differences did not grow", moves_with="gap"),
        "curvature": Column("β, the largest norm of the Hessian of R_∞ between the two trajectories", moves_with="gap"),
        "compared": Column("Whether the claim compares distance and envelope at this time", "yes or no"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _envelope_claim(envelopes: Mapping[str, Envelope]) -> Claim:
    """Gap over envelope at the fixed times, the largest over tasks and lengths.

    Not at the first step, where the ratio is e^{-βη}, whatever the prompts do.
    """
    ratio = apart = 0.0
    for these in envelopes.values():
        at = [these.step_at(unit) for unit in UNITS]
        ratio = max(ratio, float(np.max(these.distance[at] / these.bound[at])))
        apart = max(apart, float(np.max(these.from_zero[at, None] / these.bound[at])))
    units = ", ".join(f"{unit:g}" for unit in UNITS)
    return Claim(
        id="trajectory-stability-envelope",
        statement=(
            f"When βt reaches {units} the distance between the two trajectories is below g(L) t e^{{βt}}, with β the "
            "curvature of R_∞ between them: the largest ratio of distance to envelope, over tasks and lengths."
        ),
        source="[BB26, Lemma D.1]",
        box="bb26-lemma-d-1",
        measured=ratio,
        expected=1.0,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("the finite head started at zero, where it would stay", apart),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a task: distance, envelope, and its linear part."""
    tasks = list(dict.fromkeys(table["task"]))
    columns = min(3, len(tasks))
    rows = -(-len(tasks) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(9.0, 1.6 + 2.3 * rows), sharex=True, sharey=True, squeeze=False)
    lengths = sorted(table["length"].unique().tolist())
    for panel in grid.flat[len(tasks) :]:
        panel.set_axis_off()
    for panel, task in zip(grid.flat, tasks, strict=False):
        mine = table[table["task"] == task]
        for length, colour in zip(lengths, sequence(len(lengths)), strict=True):
            curve = mine[mine["length"] == length]
            panel.plot(curve["time"], curve["gap"], color=colour, linewidth=2, label=f"$L={length}$")
            panel.plot(curve["time"], curve["envelope"], color=colour, linewidth=1.3, linestyle="--")
            panel.plot(curve["time"], curve["linear"], color=colour, linewidth=1.5, linestyle=":")
        for time in mine.loc[mine["compared"] == "yes", "time"].unique():
            panel.axvline(time, color=ink(), linewidth=0.8, alpha=0.6)
        panel.set_title(rf"{task}, $\beta={mine['curvature'].max():.1f}$", fontsize="medium")
    low, high = table["gap"].min(), table["linear"].max()
    grid[0, 0].set(yscale="log", ylim=(low / 1.5, 20 * high))
    for panel in grid[-1]:
        panel.set_xlabel("training time $t$")
    figure.supylabel("distance from the infinite prompt's parameters", fontsize="medium")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    handles += [legend_line("--", 1.3), legend_line(":", 1.5)]
    labels += [r"$g(L)\,t\,e^{\beta t}$", r"$g(L)\,t$"]
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure
