"""Pictures of `trajectory_stability`: training on finite prompts beside training on infinite ones."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from lib.experiments.result import Result
from lib.plotting.style import ink, sequence

SIZE = (9.0, 4.8)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
CHECKPOINTS = ("start", "half-way", "end")
# Of a 95 % interval.
NORMAL = 1.96


def concentration_along_training(result: Result) -> Figure:
    r"""The error of the gradient at three points of the trajectory.

    Left: mean of $\|\nabla\hat R_L-\nabla R_\infty\|^2$ of single prompts on fresh episodes at the end of training,
    divided by its value at the shortest prompt, with two standard errors; one series for each task. Dotted: $1/L$.
    Right: the exponent $r$ of $L^{-r}$ at the start, half-way and at the end, with 95 % confidence intervals; a
    correction of order $1/L$ is fitted along. The number beside a task is the largest $H^2$ of its three checkpoints.
    The last task is the control, whose tokens are not sub-Gaussian: its gradient does not concentrate.

    Alt: Two panels. Left, a log-log chart: the series of six tasks fall together along a dotted line of slope minus
    one, and the series of the Laplace control stays level or rises. Right, intervals by task: three for each of the
    six tasks lie around one, and those of the control lie near zero, far to the left.
    """
    frame = result.tables["concentration_along_training"].frame
    tasks = list(dict.fromkeys(frame["task"]))
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE, width_ratios=(1, 1.15))
    end = frame[frame["checkpoint"] == CHECKPOINTS[-1]]
    firsts = end.groupby("task")["gap"].transform("first")
    end = end.assign(gap=end["gap"] / firsts, gap_std_error=end["gap_std_error"] / firsts)
    _series(left, end, "gap")
    _law(left, frame["length"], 1.0, -1.0)
    left.set(xscale="log", yscale="log", xlabel="prompt length $L$")
    left.set_ylabel("squared error of the gradient, relative")
    left.set_ylim(bottom=0.4 * end["gap"].min())
    handles, labels = left.get_legend_handles_labels()
    handles, labels = [*handles, _line(":", 1.5)], [*labels, r"$\propto 1/L$"]
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="small")
    for offset, checkpoint, colour in zip((-0.22, 0.0, 0.22), CHECKPOINTS, sequence(3), strict=True):
        mine = frame[frame["checkpoint"] == checkpoint].drop_duplicates("task")
        right.errorbar(
            mine["exponent"],
            np.arange(len(mine)) + offset,
            xerr=NORMAL * mine["exponent_std_error"],
            color=colour,
            marker="o",
            markersize=5,
            linestyle="",
            capsize=3,
            label=checkpoint,
        )
    right.axvline(1, color=ink(), linewidth=1.5, linestyle=":")
    norms = frame.groupby("task")["squared_norm"].max()
    right.set_yticks(range(len(tasks)), [f"{task}\n$H^2={norms[task]:.2f}$" for task in tasks], fontsize="small")
    right.set(xlabel="exponent $r$", ylim=(len(tasks) - 0.5, -0.5))
    right.legend(loc="center left", fontsize="small", title="checkpoint", title_fontsize="small")
    _lengths(left, frame)
    return figure


def gaps_along_training(result: Result) -> Figure:
    r"""How far training on prompts of $L$ tokens strays from training on infinite ones.

    Largest distance over training time between the parameters (left) and between the gradients that the two descents
    follow (right), mean over runs with two standard errors. Both descents share episodes, start and step. The gap of
    the gradients falls like $L^{-1/2}$ (dotted), that of single draws; the gap of the parameters faster, towards $1/L$
    (dash-dotted), because fresh prompts at every step average the draws out and leave the bias. The gaps of the
    control hardly fall, or grow.

    Alt: Two log-log panels of gap against prompt length. Six series fall in each, on the left with a slope between a
    half and one, on the right with a slope near a half. The series of the Laplace control is level on the left
    and level or rising on the right.
    """
    frame = result.tables["gaps_along_training"].frame
    figure, panels = plt.subplots(1, 2, figsize=SIZE)
    titles = {"parameters": r"parameters: $\|\theta_L-\theta_\infty\|$", "gradient": "gradients"}
    for panel, (kind, title) in zip(panels, titles.items(), strict=True):
        part = frame[frame["kind"] == kind]
        _series(panel, part, "gap")
        top = part["gap"].max()
        _law(panel, part["length"], 1.6 * top, -0.5)
        _law(panel, part["length"], 1.6 * top, -1.0, "-.")
        panel.set(xscale="log", yscale="log", xlabel="prompt length $L$", title=title)
        _lengths(panel, part)
    panels[0].set_ylabel("largest gap over training time")
    handles, labels = panels[0].get_legend_handles_labels()
    handles += [_line(":", 1.5), _line("-.", 1.5)]
    labels += [r"$\propto L^{-1/2}$", r"$\propto L^{-1}$"]
    panels[1].legend(handles, labels, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def gronwall_envelope(result: Result) -> Figure:
    r"""The distance between the trajectories, and Grönwall's envelope.

    Solid: $\|\theta_L(t)-\theta_\infty(t)\|$, root mean square over runs, at a short, a middle and a long prompt.
    Dashed: the envelope $g(L)\,t\,e^{\beta t}$, with $g(L)$ the largest measured gap of the gradients at one head and
    $\beta$ the largest curvature of $R_\infty$ along its own trajectory. Dotted: $g(L)\,t$, the envelope if
    differences did not grow. The vertical axis is cut above; the dashed curves go on.

    Alt: One panel for each of six tasks, distance against time on a logarithmic axis. Three solid curves rise and
    level off, lower for longer prompts; dotted curves run somewhat above them and dashed curves leave upwards at once.
    """
    frame = result.tables["gronwall_envelope"].frame
    tasks = list(dict.fromkeys(frame["task"]))
    columns = min(3, len(tasks))
    rows = -(-len(tasks) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(9.0, 1.6 + 2.3 * rows), sharex=True, sharey=True, squeeze=False)
    lengths = sorted(frame["length"].unique().tolist())
    for panel in grid.flat[len(tasks) :]:
        panel.set_axis_off()
    for panel, task in zip(grid.flat, tasks, strict=False):
        mine = frame[frame["task"] == task]
        for length, colour in zip(lengths, sequence(len(lengths)), strict=True):
            curve = mine[mine["length"] == length]
            panel.plot(curve["time"], curve["gap"], color=colour, linewidth=2, label=f"$L={length}$")
            panel.plot(curve["time"], curve["envelope"], color=colour, linewidth=1.3, linestyle="--")
            panel.plot(curve["time"], curve["linear"], color=colour, linewidth=1.5, linestyle=":")
        panel.set_title(rf"{task}, $\beta={mine['curvature'].max():.1f}$", fontsize="medium")
    low, high = frame["gap"].min(), frame["linear"].max()
    grid[0, 0].set(yscale="log", ylim=(low / 1.5, 20 * high))
    for panel in grid[-1]:
        panel.set_xlabel("training time $t$")
    figure.supylabel("distance from the infinite prompt's parameters", fontsize="medium")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    handles += [_line("--", 1.3), _line(":", 1.5)]
    labels += [r"$g(L)\,t\,e^{\beta t}$", r"$g(L)\,t$"]
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


def risk_transfer(result: Result) -> Figure:
    r"""The risk of training on finite prompts.

    Left: $R_L(\theta_L(t))$ against time for the task of sign covariates, from the fresh prompts of each step and
    averaged over runs, and $R_\infty(\theta_\infty(t))$ (dashed). Right: what is left above the infinite prompt's risk
    at the end, $\varepsilon(L)=R_L(\theta_L)-R_\infty(\theta_\infty)$, mean over the last quarter of training with two
    standard errors, for all sub-Gaussian tasks. Dotted: $1/L$.

    Alt: Two panels. Left, falling curves of risk against time, lower for longer prompts, the longest close to a
    dashed curve. Right, a log-log chart: the excess of six tasks falls with the prompt length, nearly as fast as a
    dotted line of slope minus one.
    """
    frame = result.tables["risk_transfer"].frame
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE)
    curves, ends = frame[frame["excess"].isna()], frame[frame["excess"].notna()]
    lengths = sorted(curves["length"].unique().tolist())
    for length, colour in zip(lengths, sequence(len(lengths)), strict=True):
        mine = curves[curves["length"] == length]
        left.plot(mine["time"], mine["risk"], color=colour, linewidth=1.6, label=f"$L={length}$")
    limit = curves[curves["length"] == lengths[0]]
    left.plot(limit["time"], limit["infinite"], color=ink(), linestyle="--", linewidth=1.8, label=r"$L=\infty$")
    left.set(yscale="log", xlabel="training time $t$", ylabel="risk", title=f"{curves['task'].iloc[0]}")
    left.set_ylim(top=3 * curves["risk"].max())
    left.legend(loc="upper right", fontsize="small", ncols=2)
    _series(right, ends, "excess")
    _law(right, ends["length"], 1.6 * ends["excess"].max(), -1.0)
    right.set(xscale="log", yscale="log", xlabel="prompt length $L$", title=r"excess risk $\varepsilon(L)$ at the end")
    handles, labels = right.get_legend_handles_labels()
    right.legend([*handles, _line(":", 1.5)], [*labels, r"$\propto 1/L$"], loc="center left", bbox_to_anchor=(1.0, 0.5))
    _lengths(right, ends)
    return figure


def _series(axes: Axes, frame, column: str) -> None:
    """Against the prompt length, a series a task, with two standard errors."""
    tasks = list(dict.fromkeys(frame["task"]))
    for index, (task, colour) in enumerate(zip(tasks, _colours(tasks), strict=True)):
        mine = frame[frame["task"] == task]
        axes.errorbar(
            mine["length"],
            mine[column],
            2 * mine[f"{column}_std_error"],
            color=colour,
            marker=MARKERS[index % len(MARKERS)],
            markersize=5.5,
            linewidth=1.2,
            capsize=2,
            label=task,
        )


def _colours(tasks: list[str]) -> list:
    """The cycle for the tasks; ink for the control, which comes last."""
    return [ink() if "control" in task else f"C{index}" for index, task in enumerate(tasks)]


def _law(axes: Axes, lengths, height: float, power: float, style: str = ":") -> None:
    low, high = lengths.min(), lengths.max()
    axes.plot([low, high], [height, height * (high / low) ** power], color=ink(), linestyle=style, linewidth=1.5)


def _lengths(axes: Axes, frame) -> None:
    """Ticks where prompts were drawn."""
    lengths = sorted(frame["length"].unique().tolist())
    axes.set_xticks(lengths, [f"{length:g}" for length in lengths])
    axes.xaxis.set_minor_locator(NullLocator())


def _line(style: str, width: float = 2) -> Line2D:
    return Line2D([], [], color=ink(), linestyle=style, linewidth=width)
