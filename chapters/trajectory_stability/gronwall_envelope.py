r"""The distance between the trajectories, and Grönwall's envelope.

Solid: $\|\theta_L(t)-\theta_\infty(t)\|$, root mean square over runs, at a short, a middle and a long prompt.
Dashed: the envelope $g(L)\,t\,e^{\beta t}$, with $g(L)$ the largest measured gap of the gradients at one head and
$\beta$ the largest curvature of $R_\infty$ along its own trajectory. Dotted: $g(L)\,t$, the envelope if
differences did not grow. The vertical axis is cut above; the dashed curves go on.

Alt: One panel for each of six tasks, distance against time on a logarithmic axis. Three solid curves rise and
level off, lower for longer prompts; dotted curves run somewhat above them and dashed curves leave upwards at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.trajectory_stability.marks import line
from chapters.trajectory_stability.scenes import sub_gaussian
from chapters.trajectory_stability.trajectories import Course, FinitePaths, InfinitePath, parameter_gaps
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import sequence
from lib.statistics import standard_error

# Central differences of the gradient, in double precision.
DIFFERENCE = 1e-4


@dataclass(frozen=True)
class Envelope:
    """Of one task: the distance of each run from the infinite path, and what the envelope is made of."""

    times: Float[np.ndarray, " t"]
    lengths: tuple[int, ...]
    gaps: Float[np.ndarray, "runs t k"]
    prompt_noise: Float[np.ndarray, " k"]
    curvature: float

    @property
    def bound(self) -> Float[np.ndarray, "t k"]:
        """`g(L) t e^{βt}`."""
        times = self.times[:, None]
        return self.prompt_noise * times * np.exp(self.curvature * times)


def measure(
    courses: Mapping[str, Course], infinite: Mapping[str, InfinitePath], finite: Mapping[str, FinitePaths]
) -> dict[str, Envelope]:
    """By sub-Gaussian task: g(L) from the prompts drawn, β from the infinite path."""
    return {
        name: Envelope(
            infinite[name].times,
            finite[name].lengths,
            parameter_gaps(infinite[name], finite[name]),
            prompt_noise(course, finite[name]),
            curvature(course, infinite[name]),
        )
        for name, course in sub_gaussian(courses).items()
    }


def prompt_noise(course: Course, finite: FinitePaths) -> Float[np.ndarray, " k"]:
    """g(L): `‖∇R̂_L - ∇R_∞‖` at θ_L(t), root mean square over runs, the largest over time."""
    heads = finite.heads
    slopes = course.programs.read_laws(heads.reshape(-1, heads.shape[-1]), course.episodes)[1].mean(axis=0)
    gaps = np.linalg.norm(finite.slopes - slopes.reshape(heads.shape), axis=-1)
    return _root_mean_square(gaps).max(axis=0)


def curvature(course: Course, path: InfinitePath) -> float:
    """β: the largest norm of the Hessian of R_∞ along θ_∞, at nine times, by central differences."""
    times = np.linspace(0, len(path.times) - 1, 9).round().astype(int)
    centres = path.heads[times]
    moves = DIFFERENCE * np.eye(centres.shape[1])
    probes = (centres[:, None, None] + np.stack([moves, -moves])).reshape(-1, centres.shape[1])
    slopes = course.programs.read_laws(probes, course.episodes)[1].mean(axis=0)
    up, down = np.moveaxis(slopes.reshape(len(times), 2, len(moves), -1), 1, 0)
    return float(np.linalg.norm((up - down) / (2 * DIFFERENCE), ord=2, axis=(1, 2)).max())


def _root_mean_square(gaps: Float[np.ndarray, "runs ..."]) -> Float[np.ndarray, "..."]:
    """Over runs."""
    return np.sqrt(np.mean(gaps**2, axis=0))


def numbers(envelopes: Mapping[str, Envelope]) -> Numbers:
    """Distance and envelope against time; the distance stays below."""
    return Numbers(_table(envelopes), (_envelope_claim(envelopes),))


def _table(envelopes: Mapping[str, Envelope]) -> Table:
    """Gap and envelope against time, at the shortest, a middle and the longest length."""
    frames = []
    for name, these in envelopes.items():
        times, lengths = these.times[1:], these.lengths
        for index in sorted({0, len(lengths) // 2, len(lengths) - 1}):
            square = these.gaps[:, 1:, index] ** 2
            gap = np.sqrt(square.mean(axis=0))
            frames.append(
                pd.DataFrame(
                    {
                        "task": name,
                        "length": lengths[index],
                        "time": times,
                        "gap": gap,
                        "std_error": standard_error(square) / (2 * gap),
                        "envelope": these.bound[1:, index],
                        "linear": these.prompt_noise[index] * times,
                        "curvature": these.curvature,
                    }
                )
            )
    columns = {
        "task": Column("The task", "name"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "time": Column("Step size times step, t"),
        "gap": Column("‖θ_L(t) - θ_∞(t)‖, root mean square over runs", std_error="std_error"),
        "std_error": Column("Its standard error", std_error="std_error"),
        "envelope": Column("g(L) t e^{βt}, g(L) the largest measured gap between gradients at one head"),
        "linear": Column("g(L) t, the envelope if differences did not grow"),
        "curvature": Column("β, the largest norm of the Hessian of R_∞ along the infinite trajectory"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _envelope_claim(envelopes: Mapping[str, Envelope]) -> Claim:
    """Gap over envelope, the largest over tasks, lengths and time."""
    gaps = {name: _root_mean_square(these.gaps)[1:] for name, these in envelopes.items()}
    ratio = max(float(np.max(gaps[name] / these.bound[1:])) for name, these in envelopes.items())
    frozen = max(float(np.max(gaps[name][:, 0] / these.bound[1:, -1])) for name, these in envelopes.items())
    lengths = next(iter(envelopes.values())).lengths
    return Claim(
        id="trajectory-stability-envelope",
        statement=(
            "At every length and all along training the distance between the two trajectories stays below g(L) t "
            "e^{βt}, with β the curvature of R_∞ along its own trajectory: the largest ratio of distance to envelope."
        ),
        source="[BB26, Thm 4.3]",
        measured=ratio,
        expected=1.0,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative(f"at L = {lengths[-1]} the distance were that at L = {lengths[0]}", frozen),
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
        panel.set_title(rf"{task}, $\beta={mine['curvature'].max():.1f}$", fontsize="medium")
    low, high = table["gap"].min(), table["linear"].max()
    grid[0, 0].set(yscale="log", ylim=(low / 1.5, 20 * high))
    for panel in grid[-1]:
        panel.set_xlabel("training time $t$")
    figure.supylabel("distance from the infinite prompt's parameters", fontsize="medium")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    handles += [line("--", 1.3), line(":", 1.5)]
    labels += [r"$g(L)\,t\,e^{\beta t}$", r"$g(L)\,t$"]
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure
