r"""With one scale per task the averaged bound tends to zero for normal tasks, and not if tails are too heavy.

The curves are $(\ln L)^4\,\mathbb E_w L^{-1/\sigma_w^2}$ with $\sigma_w^2=1+\|w\|^2$, for task vectors $w$ in the plane
with covariance $I$. The assumption of the theorem requires that the curve tends to zero. One scale serves all bounded
tasks, and no single scale all normal ones. For Student tasks of $n$ degrees of freedom the curve approaches a power
$4-n/2$ of $\ln L$.

Alt: A log-log chart of the averaged bound against the logarithm of the prompt length. All curves rise together at
first. The curve of bounded tasks falls first, that of normal tasks later and as steeply, that of one Student
distribution falls slowly along a dotted line, and that of the other rises along another dotted line.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.trajectory_stability.task_scales import (
    ENDS,
    HEAVY,
    LIGHT,
    LOG_LENGTHS,
    LONG,
    Curves,
    student,
    student_correction,
    student_power,
)
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label


def numbers(curves: Curves) -> Numbers:
    """Return four averaged bounds; claim that normal tasks satisfy the condition and heavy-tailed ones do not."""
    groups = [{"law": law, "kind": "bound", "log_length": LOG_LENGTHS, "value": curve} for law, curve in curves.items()]
    for n in (LIGHT, HEAVY):
        line = curves[student(n)][-1] * (LOG_LENGTHS / LOG_LENGTHS[-1]) ** student_power(n)
        groups.append({"law": student(n), "kind": "line", "log_length": LOG_LENGTHS, "value": line})
    columns = {
        "law": Column("Distribution of the task vectors", "name"),
        "kind": Column("`bound`, or `line`: for Student distributions, the power of $ln L$ through its end", "name"),
        "log_length": Column("$ln L$, for prompts of $L$ tokens"),
        "value": Column("$(ln L)⁴ 𝔼 L^{-1/σ_w²}$, $σ_w² = 1 + ‖w‖²$; largest $σ_w$ for bounded tasks", absolute=1e-30),
    }
    claim = Claims("trajectory-stability", box="task-wise-scale")
    laws = ("normal", student(HEAVY))
    at_one, at_long, at_before, at_end = np.searchsorted(LOG_LENGTHS, [1.0, LONG, *ENDS])
    normal, heavy = (curves[law][at_long] / curves[law][at_one] for law in laws)
    claim.at_most(
        "task-scale",
        "With one scale per task the bound averaged over normal tasks tends to zero, although no single scale serves "
        rf"them all (measured: $(ln L)⁴ \mathbb{{E}} L^{{-1/σ_w²}}$ at $ln L = {LONG:,g}$, relative to its value at "
        "$ln L = 1$).",
        normal,
        1,
        because="it has fallen below its first value, although the logarithm raises it by some hundreds at first",
        source="[BB26, Assumption 4.2]",
        rejects=(f"tasks have a Student distribution, $n = {HEAVY}$, with the same covariance", heavy),
    )
    normal, heavy = (np.log(curves[law][at_end] / curves[law][at_before]) / np.log(ENDS[1] / ENDS[0]) for law in laws)
    claim.equal(
        "heavy-tasks",
        f"Averaged over Student tasks with $n = {HEAVY}$ degrees of freedom, the bound grows like "
        f"$(ln L)^{{4 - n/2}}$ (measured: its power of $ln L$ near $ln L = {ENDS[1]:,g}$).",
        heavy,
        student_power(HEAVY),
        within=student_correction(HEAVY, ENDS[0]),
        because="the next term of the expansion",
        source="derived here",
        rejects=("tasks are normal with the same covariance", normal),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one curve per distribution, with its fate, and the powers that the Student curves approach."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.8))
    low, high = 1e-8, 1e9
    fates = {True: "grows: no bound", False: "tends to 0"}
    for index, (law, rows) in enumerate(table.groupby("law", sort=False)):
        curve, line = (rows[rows["kind"] == kind] for kind in ("bound", "line"))
        inside = curve[(curve["value"] > low) & (curve["value"] < high)]
        axes.plot(curve["log_length"], curve["value"], color=f"C{index}", linewidth=2.4)
        shown = line[(line["value"] < 1e6) & (line["log_length"] > 30)]
        axes.plot(shown["log_length"], shown["value"], color=f"C{index}", linewidth=1.2, linestyle=":")
        grows = inside["value"].iloc[-1] > inside["value"].iloc[-2]
        kind, _, freedom = str(law).partition(", ")
        name = f"{kind} tasks{freedom and ', $' + freedom.replace(' ', '') + '$'}:\n{fates[grows]}"
        place = {"bounded": {"ha": "right", "xytext": (-8, 14)}, "normal": {"xytext": (8, 14)}}.get(kind, {})
        label(axes, *inside[["log_length", "value"]].iloc[-1], name, f"C{index}", **place)
        if len(shown) and not grows:
            power, words = shown.iloc[0], {"xytext": (0, 7), "ha": "left", "va": "bottom", "fontsize": 10}
            label(axes, power["log_length"], power["value"], "dotted: power of $\\ln L$", f"C{index}", **words)
    real = np.log(1e6)
    axes.axvline(real, color=ink(), linewidth=1, alpha=0.5)
    label(axes, real, low, "prompts of a\nmillion tokens", ink(), xytext=(-6, 14), ha="right", fontsize=10, alpha=0.7)
    axes.set(xscale="log", yscale="log", ylim=(low, high), xlim=(1, table["log_length"].max()))
    axes.set(xlabel=r"logarithm of the prompt length, $\ln L$", ylabel="bound, averaged over tasks")
    return figure
