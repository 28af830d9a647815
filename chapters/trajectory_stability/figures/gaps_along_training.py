r"""Training on longer prompts stays closer to training on infinite prompts, and for Laplace tokens it hardly does.

Each point is the largest gap over training time between parameters (left) or gradients (right) of the two descents,
which share episodes, start and steps; a mean over runs with two standard errors. Gaps of gradients, which are not
squared, fall roughly like $L^{-1/2}$, those of parameters faster. Blue: regressions with Gaussian tokens, signs,
uniform tokens and a mixture.

Alt: Two log-log panels of gap against prompt length. The series of the sub-Gaussian tasks fall in each, on the left
with a slope between a half and one, on the right with a slope near a half. The series of the Laplace control is level
on the left and level or rising on the right.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.trajectory_stability.problems import sub_gaussian
from chapters.trajectory_stability.style import length_ticks, power_line, series
from chapters.trajectory_stability.trajectories import FinitePaths, InfinitePath, parameter_gaps
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, ink, label
from lib.statistics import comparison_quantile, standard_error


def numbers(infinite: Mapping[str, InfinitePath], finite: Mapping[str, FinitePaths]) -> Numbers:
    """Return both gaps by task and length; claim that the gap of parameters falls at least like L^{-1/2}."""
    groups = []
    for name, paths in finite.items():
        for kind, measure in (("parameters", parameter_gaps), ("gradient", _gradient_gaps)):
            largest = measure(infinite[name], paths).max(axis=1)
            slopes = _straight_exponents(paths.lengths, largest)
            gap = {"gap": largest.mean(axis=0), "gap_std_error": standard_error(largest)}
            slope = {"exponent": slopes.mean(), "exponent_std_error": standard_error(slopes)}
            groups.append({"task": name, "kind": kind, "length": paths.lengths, **gap, **slope})
    columns = {
        "task": Column("The task; the control's tokens are not sub-Gaussian", "name"),
        "kind": Column(
            "`parameters`: $‖θ_L(t) - θ_∞(t)‖$; `gradient`: distance of the gradients of the two descents", "name"
        ),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "gap": Estimate("Largest gap over training time, mean over runs"),
        "exponent": Estimate("Exponent $r$ in gap ∝ $L^{-r}$: mean of one straight line per run"),
    }
    table = Table.of(groups, columns)
    of_parameters = table.frame[table.frame["kind"] == "parameters"].groupby("task").first()
    light = of_parameters.loc[list(sub_gaussian(finite))]
    claim = Claims("trajectory-stability", source="[BB26, Thm 4.3]", box="bb26-thm-4-3")
    claim.at_most(
        "gap",
        f"For {len(light)} sub-Gaussian tasks, the largest distance over training time between the parameters of "
        "finite and infinite prompts falls at least like $L^{-1/2}$ (measured: ½ less the exponent, in standard "
        "errors, for the task that is slowest in this unit).",
        ((0.5 - light["exponent"]) / light["exponent_std_error"]).max(),
        0,
        within=comparison_quantile(len(light)),
        because=f"99.9 % quantile of the largest of {len(light)} standard normal deviations",
        comparisons=len(light),
        rejects=("it does not fall", (0.5 / light["exponent_std_error"]).max()),
    )
    return Numbers(table, claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per kind of gap: one series per task, and two powers of L for comparison."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.8))
    titles = {"parameters": r"parameters: $\|\theta_L-\theta_\infty\|$", "gradient": "gradients of the two descents"}
    for panel, (kind, title) in zip(panels, titles.items(), strict=True):
        part = table[table["kind"] == kind]
        series(panel, part, "gap")
        panel.set(xlabel="prompt length $L$", title=title)
        low, high, top = part["length"].min(), part["length"].max(), 3.5 * part["gap"].max()
        left, right = (low * (high / low) ** place for place in (0.3, 0.65))
        for power, name, style in ((-0.5, "$L^{-1/2}$", ":"), (-1.0, "$L^{-1}$", "-.")):
            power_line(panel, pd.Series([left, right]), top, power, style)
            label(panel, right, top * (right / left) ** power, f"slope of {name}", ink())
        length_ticks(panel, part)
    panels[0].set_ylabel("largest gap over training time")
    return figure


def _straight_exponents(lengths: list[int], errors: Float[np.ndarray, "*rows k"]) -> Float[np.ndarray, "*rows"]:
    """Return minus the slope of the least-squares line through `ln error` against `ln L`, for each row."""
    logs = np.log(np.asarray(lengths, float))
    centred = logs - logs.mean()
    return np.asarray(-(np.log(errors) @ centred) / (centred @ centred))


def _gradient_gaps(infinite: InfinitePath, finite: FinitePaths) -> Float[np.ndarray, "runs t k"]:
    """Return `‖∇R̂_L(θ_L(t)) - ∇R_∞(θ_∞(t))‖`."""
    return np.linalg.norm(finite.slopes - infinite.slopes[:, None], axis=-1)
