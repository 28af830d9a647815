r"""The risk at the end of training approaches that of infinite prompts nearly like $1/L$.

Left: the risk $R_L(\theta_L(t))$ for covariates of random signs, from the new prompts of each step, averaged over runs
(thin) and over nine recorded times (thick). Right: the excess $\varepsilon(L)=R_L(\theta_L)-R_\infty(\theta_\infty)$, a
mean over the last quarter of training with two standard errors, for all sub-Gaussian tasks.

Alt: Two panels. Left, falling curves of risk against time, lower for longer prompts, the longest close to a dashed
curve. Right, a log-log chart: the excess of every task falls with the prompt length, nearly as fast as a dotted line of
slope minus one.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.style import coloured_rows
from chapters.trajectory_stability.parameters import SHOWN
from chapters.trajectory_stability.problems import sub_gaussian
from chapters.trajectory_stability.style import length_ticks, power_line, series
from chapters.trajectory_stability.trajectories import FinitePaths, InfinitePath
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, ink, label, ticks_at
from lib.statistics import comparison_quantile, standard_error

# Recorded steps of one moving average of a noisy risk.
WINDOW = 9


def numbers(infinite: Mapping[str, InfinitePath], finite: Mapping[str, FinitePaths]) -> Numbers:
    """Return risks during training and the excess at the end; claim that it falls at least like L^{-1/2}."""
    light = sub_gaussian(finite)
    excess = {name: _excess(infinite[name], paths) for name, paths in light.items()}
    lengths, limit = light[SHOWN].lengths, infinite[SHOWN]
    during, groups = {"kind": "risk", "task": SHOWN, "time": limit.times}, []
    for length, risks in zip(lengths, np.moveaxis(light[SHOWN].risks, 2, 0), strict=True):
        risk = {"risk": risks.mean(axis=0), "risk_std_error": standard_error(risks)}
        groups.append({**during, "length": length, **risk})
    groups.append({**during, "length": np.inf, "risk": limit.risks})
    for name, runs in excess.items():
        at_end = {"time": limit.times[-1], "risk": runs.mean(axis=0), "risk_std_error": standard_error(runs)}
        groups.append({"kind": "excess", "task": name, "length": lengths, **at_end})
    columns = {
        "kind": Column("`risk` during training, or `excess`: a mean over the last quarter of training", "name"),
        "task": Column("The task", "name"),
        "length": Column("Tokens in the prompt, $L$; may be infinite", "tokens"),
        "time": Column("Training time $t$: step size times number of steps; its end, for the excess"),
        "risk": Estimate("$R_L(θ_L(t))$, from the new prompts of each step; for the excess $R_L(θ_L) - R_∞(θ_∞)$"),
    }
    decay = np.sqrt(lengths[-1] / lengths[0])
    ratios, errors = [], []
    for runs in excess.values():
        first, last = runs[:, 0], runs[:, -1]
        ratio = last.mean() / first.mean()
        ratios.append(decay * ratio)
        errors.append(decay * standard_error(last - ratio * first) / first.mean())
    worst = int(np.argmax(ratios))
    claim = Claims("trajectory-stability", source="[BB26, Thm 4.3]", box="bb26-thm-4-3")
    claim.at_most(
        "risk",
        f"For {len(excess)} sub-Gaussian tasks, the excess of training on prompts of $L$ tokens over the risk of "
        f"infinite prompts falls from $L = {lengths[0]:,}$ to ${lengths[-1]:,}$ at least like $L^{{-1/2}}$ "
        "(measured: the largest ratio of the excess at the longest prompts to such a decay).",
        ratios[worst],
        1,
        within=comparison_quantile(len(excess)) * errors[worst],
        because=f"99.9 % quantile of the largest of {len(excess)} normal deviations, times the standard error",
        std_error=errors[worst],
        comparisons=len(excess),
        rejects=("it does not fall", decay),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw curves of risk against time, and the excess at the end against the length."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.8), width_ratios=(1, 1.3))
    curves, ends = (table[table["kind"] == kind] for kind in ("risk", "excess"))
    for length, path, colour in coloured_rows(curves[np.isfinite(curves["length"])], "length"):
        average = path["risk"].rolling(WINDOW, center=True, min_periods=WINDOW).mean()
        left.plot(path["time"], path["risk"], color=colour, linewidth=0.8, alpha=0.5)
        left.plot(path["time"], average, color=colour, linewidth=2.2)
        # the label is at the mean height of the noisy end
        label(left, path["time"].iloc[-1], path["risk"].iloc[-len(path) // 4 :].mean(), f"$L={length:g}$", colour)
    limit = curves[np.isinf(curves["length"])]
    left.plot(limit["time"], limit["risk"], color=ink(), linestyle="--", linewidth=1.8)
    label(left, limit["time"].iloc[-1], limit["risk"].iloc[-1], r"$L=\infty$", ink())
    left.set(yscale="log", xlabel="training time $t$", ylabel="risk", title="risk during training")
    ticks_at(left.yaxis, (0.02, 0.05, 0.1, 0.2, 0.5))
    left.text(0.97, 0.98, "thick: moving average", ha="right", va="top", fontsize=10, transform=left.transAxes)
    series(right, ends, "risk")
    low, high, top = ends["length"].min(), ends["length"].max(), 1.6 * ends["risk"].max()
    power_line(right, ends["length"], top, -1.0)
    middle = low * (high / low) ** 0.4
    label(right, middle, top * low / middle, r"slope of $1/L$", ink(), xytext=(5, 7))
    right.set(xlabel="prompt length $L$", title=r"excess risk $\varepsilon(L)$ at the end")
    length_ticks(right, ends)
    return figure


def _excess(infinite: InfinitePath, finite: FinitePaths) -> Float[np.ndarray, "runs k"]:
    """Return `R_L(θ_L(t)) - R_∞(θ_∞(t))`, a mean over the last quarter of training."""
    late = slice(-((len(infinite.times) - 1) // 4), None)
    return (finite.risks[:, late] - infinite.risks[late, None]).mean(axis=1)
