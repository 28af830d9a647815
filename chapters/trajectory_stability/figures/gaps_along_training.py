r"""How far training on prompts of $L$ tokens strays from training on infinite ones.

Largest distance over training time between the parameters (left) and between the gradients that the two descents
follow (right), mean over runs with two standard errors. Both descents share episodes, start and step. The gap of
the gradients falls like $L^{-1/2}$ (dotted), that of single draws; the gap of the parameters faster, towards $1/L$
(dash-dotted), because fresh prompts at every step average the draws out and leave the bias. The gaps of the
control hardly fall, or grow. Blue: linear regression with Gaussian tokens, signs, uniform tokens and a mixture.

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
from chapters.trajectory_stability.style import SIZE, length_ticks, power_line, series
from chapters.trajectory_stability.trajectories import FinitePaths, InfinitePath, parameter_gaps
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label
from lib.concentration import straight_exponents
from lib.statistics import comparison_quantile, standard_error


def numbers(infinite: Mapping[str, InfinitePath], finite: Mapping[str, FinitePaths]) -> Numbers:
    """Both gaps by task and length; the parameters' falls at least like L^{-1/2}."""
    return Numbers(_table(infinite, finite), (_gap_claim(infinite, sub_gaussian(finite)),))


def _gradient_gaps(infinite: InfinitePath, finite: FinitePaths) -> Float[np.ndarray, "runs t k"]:
    """`‖∇R̂_L(θ_L(t)) - ∇R_∞(θ_∞(t))‖`."""
    return np.linalg.norm(finite.slopes - infinite.slopes[:, None], axis=-1)


def _table(infinite: Mapping[str, InfinitePath], finite: Mapping[str, FinitePaths]) -> Table:
    """Both gaps, the largest over time, by task and length."""
    frames = []
    for name, paths in finite.items():
        for kind, measure in (("parameters", parameter_gaps), ("gradient", _gradient_gaps)):
            largest = measure(infinite[name], paths).max(axis=1)
            slopes = straight_exponents(paths.lengths, largest)
            gap = {"gap": largest.mean(axis=0), "gap_std_error": standard_error(largest)}
            slope = {"exponent": slopes.mean(), "exponent_std_error": float(standard_error(slopes))}
            frames.append(pd.DataFrame({"task": name, "kind": kind, "length": paths.lengths, **gap, **slope}))
    columns = {
        "task": Column("The task; the control's tokens are not sub-Gaussian", "name"),
        "kind": Column("`parameters`: ‖θ_L(t) - θ_∞(t)‖; `gradient`: that of the two gradients followed", "name"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "gap": Column("The largest gap over training time, mean over runs", std_error="gap_std_error"),
        "gap_std_error": Column("Standard error of the mean", moves_with="gap"),
        "exponent": Column("r of gap ∝ L^-r, a straight line a run, mean", std_error="exponent_std_error"),
        "exponent_std_error": Column("Standard error of r, from runs", moves_with="exponent"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _gap_claim(infinite: Mapping[str, InfinitePath], light: Mapping[str, FinitePaths]) -> Claim:
    """By how many standard errors the exponent of the parameter gap falls short of ½, worst over tasks."""
    slopes = [
        straight_exponents(paths.lengths, parameter_gaps(infinite[name], paths).max(axis=1))
        for name, paths in light.items()
    ]
    errors = np.asarray([float(standard_error(runs)) for runs in slopes])
    means = np.asarray([runs.mean() for runs in slopes])
    return Claim(
        id="trajectory-stability-gap",
        statement=(
            f"For {len(light)} sub-Gaussian tasks, the largest distance over training time between the parameters of "
            "finite and infinite prompts falls at least like L^{-1/2}: by how many standard errors the slowest falls "
            "short."
        ),
        source="[BB26, Thm 4.3]",
        box="bb26-thm-4-3",
        measured=float(np.max((0.5 - means) / errors)),
        expected=0.0,
        tolerance=comparison_quantile(len(light)),
        relation="≤",
        alternative=Alternative("it did not fall", float(np.max(0.5 / errors))),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a kind of gap: a series a task under its name, and the power that it is to be held against."""
    figure, panels = plt.subplots(1, 2, figsize=SIZE)
    kinds = {
        "parameters": (r"parameters: $\|\theta_L-\theta_\infty\|$", -1.0, "$L^{-1}$", "-."),
        "gradient": ("gradients that are followed", -0.5, "$L^{-1/2}$", ":"),
    }
    for panel, (kind, (title, power, name, style)) in zip(panels, kinds.items(), strict=True):
        part = table[table["kind"] == kind]
        series(panel, part, "gap")
        panel.set(xlabel="prompt length $L$", title=title)
        low, high, top = part["length"].min(), part["length"].max(), 1.7 * part["gap"].max()
        power_line(panel, part["length"], top, power, style)
        middle, place = low * (high / low) ** 0.3, {"xytext": (6, 7), "ha": "left"}
        label(panel, middle, top * (middle / low) ** power, rf"slope of {name}", ink(), **place)
        length_ticks(panel, part)
    panels[0].set_ylabel("largest gap over training time")
    headline(figure, "Training on longer prompts stays closer; with heavy tails it hardly does")
    return figure
