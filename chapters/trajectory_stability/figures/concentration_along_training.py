r"""If training starts at small tilts, the squared error of gradients of sub-Gaussian tasks falls like $1/L$ throughout.

The exponent $r$ with which $\|\nabla\hat R_L-\nabla R_\infty\|^2$, a mean over single prompts on new episodes, falls
like $L^{-r}$, at three checkpoints, with 95 % confidence intervals. The fit has a correction of order $1/L$, and with
six or more lengths also one of order $1/\sqrt L$. In the control the error falls slowly at the start and later not
visibly.

Alt: Intervals of the exponent by task: the three intervals of each sub-Gaussian task are around one, marked "error
falls like 1/L", and those of the shaded control are near zero, far to the left, marked "no concentration".
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.trajectory_stability.checkpoints import CHECKPOINTS, GradientErrors, Norms
from chapters.trajectory_stability.exponents import Rates, left_out
from chapters.trajectory_stability.problems import CONTROL, DIMENSION, sub_gaussian
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, ink, label, sequence
from lib.statistics import comparison_quantile, standard_error, tells_apart

# The terms that the fit leaves out are known in order of magnitude; this multiple of it is allowed.
ALLOWED_ORDERS = 5


def numbers(norms: Norms, errors: Mapping[str, GradientErrors], rates: Rates) -> Numbers:
    """Return errors of gradients by task, checkpoint and length; claim their rates, and that of the control."""
    groups = [
        {
            "task": name,
            "checkpoint": checkpoint,
            "squared_norm": norms[name][place],
            "length": measured.lengths,
            "gap": measured.squared_gaps[:, place].mean(axis=0),
            "gap_std_error": standard_error(measured.squared_gaps[:, place]),
            "exponent": rates[name][place].exponent,
            "exponent_std_error": rates[name][place].std_error,
        }
        for name, measured in errors.items()
        for place, checkpoint in enumerate(CHECKPOINTS)
    ]
    columns = {
        "task": Column("The task; the control's tokens are not sub-Gaussian", "name"),
        "checkpoint": Column("Checkpoint on the trajectory of infinite prompts", "name"),
        "squared_norm": Column("Largest $H² = ‖Γ^{1/2} U Γ_q^{1/2}‖²$ over the shared episodes"),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "gap": Estimate("Mean of ‖gradient of one prompt's loss - gradient for the infinite prompt‖²"),
        "exponent": Estimate(
            "Exponent $r$ in gap ∝ $L^{-r}$, fitted with a correction $1/L$, and with many lengths also with $1/√L$"
        ),
    }
    return Numbers(Table.of(groups, columns), _claims(norms, errors, rates))


def _claims(norms: Norms, errors: Mapping[str, GradientErrors], rates: Rates) -> Claims:
    claim = Claims("trajectory-stability", source="measured here")
    light = [rate for of_task in sub_gaussian(rates).values() for rate in of_task]
    exponents, std_errors = np.array([(rate.exponent, rate.std_error) for rate in light]).T
    missing = np.concatenate([left_out(of_task) for of_task in sub_gaussian(errors).values()])
    tolerance = comparison_quantile(len(light)) + ALLOWED_ORDERS * np.max(missing / std_errors)
    claim.at_most(
        "rate",
        f"For {len(sub_gaussian(rates))} sub-Gaussian tasks, at the start, half-way and at the end of training, the "
        "mean squared error of the gradient falls like $1/L$ (measured: the largest distance of an exponent from 1, in "
        "standard errors).",
        np.max(np.abs(exponents - 1) / std_errors),
        0,
        within=tolerance,
        because=f"99.9 % quantile of the largest of {len(light)} standard normal deviations, and {ALLOWED_ORDERS} "
        "times the effect of the first power of $(d + 2)/L$ that the fit leaves out",
        comparisons=len(light),
        source="[BB26, Thm 4.3]",
        box="bb26-thm-4-3",
        rejects=("it falls like $L^{-1/2}$", np.max(np.abs(exponents - 0.5) / std_errors)),
        requires=(
            tells_apart(np.full(len(light), 0.5), std_errors, tolerance),
            "the simulation cannot tell the exponent from ½: more `prompts`, or `lengths` that are longer and differ "
            "more, help",
        ),
    )
    claim.at_most(
        "norm",
        "At all checkpoints of the sub-Gaussian tasks $H²$ is below ½, where for Gaussian tokens averages over queries "
        "fall like the error at one query (measured: the largest $H²$).",
        max(of_task.max() for of_task in sub_gaussian(norms).values()),
        0.5,
        because="the condition of the theory",
        rejects=("training has a balanced start, and ends at $H² = d^{-1/2}$", DIMENSION**-0.5),
    )
    control = rates[CONTROL]
    steepest = max(control, key=lambda rate: rate.exponent)
    claim.at_most(
        "control",
        "Laplace tokens tilted beyond half their pole are not sub-Gaussian, and the error of their gradient falls more "
        "slowly than $1/L$, by more than chance, at every checkpoint (measured: the largest of the three exponents).",
        steepest.exponent,
        1 - comparison_quantile(len(control)) * steepest.std_error,
        because=f"1 less the 99.9 % quantile of {len(control)} standard normal deviations, times the standard error",
        std_error=steepest.std_error,
        source="derived here",
        box="laplace-control",
        rejects=("it falls like $1/L$, as for the sub-Gaussian tasks", 1),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the exponents of all checkpoints by task."""
    tasks, checkpoints = list(dict.fromkeys(table["task"])), list(dict.fromkeys(table["checkpoint"]))
    figure, axes = plt.subplots(figsize=(WIDE, 5.2))
    axes.axhspan(len(tasks) - 1.5, len(tasks) - 0.5, color=ink(), alpha=0.07, linewidth=0)
    for offset, checkpoint, colour in zip((-0.25, 0.0, 0.25), checkpoints, sequence(3), strict=True):
        fitted = table[table["checkpoint"] == checkpoint].drop_duplicates("task")
        look = {"color": colour, "marker": "o", "markersize": 6, "linestyle": "", "capsize": 3}
        # half the width of a 95 % interval
        places, interval = np.arange(len(fitted)) + offset, 1.96 * fitted["exponent_std_error"]
        axes.errorbar(fitted["exponent"], places, xerr=interval, **look)
        name = "half-way" if checkpoint == "half-way" else f"{checkpoint} of training"
        left = (fitted["exponent"] - interval).iloc[0]
        label(axes, left, offset, name, colour, xytext=(-8, 0), ha="right", fontsize=10)
    for exponent, words in ((0, "no concentration"), (1, "error falls like $1/L$")):
        axes.axvline(exponent, color=ink(), linewidth=1.5, linestyle=":")
        label(axes, exponent, -0.5, words, ink(), xytext=(0, 4), ha="center", va="bottom")
    light, middle = len(tasks) - 1, {"xytext": (0, 0), "ha": "center", "linespacing": 1.3}
    label(axes, 0.45, light / 2, "tasks with sub-Gaussian tokens:\nall near $1/L$", ink(), **middle)
    label(axes, 0.65, light, "control: tokens with\nexponential tails", ink(), **middle)
    axes.set_yticks(range(len(tasks)), [task.removesuffix(" (control)") for task in tasks])
    axes.set(xlabel="exponent $r$: squared gradient error falls like $L^{-r}$", ylim=(light + 0.5, -0.5))
    axes.grid(visible=False, axis="y")
    return figure
