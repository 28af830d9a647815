r"""Gradients of sub-Gaussian tasks concentrate like $1/L$ at the start, half-way and at the end of training.

The exponent $r$ with which $\|\nabla\hat R_L-\nabla R_\infty\|^2$, a mean over single prompts on new episodes, falls
like $L^{-r}$, at three checkpoints, with 95 % confidence intervals. The fit has a correction of order $1/L$, and with
many lengths also one of order $1/\sqrt L$. The number below a task is the largest $H^2$ of its checkpoints. The last
task (shaded) is the control, whose tokens are not sub-Gaussian: its gradient does not concentrate. The table also has
the errors themselves.

Alt: Intervals of the exponent by task: the three intervals of each sub-Gaussian task are around one, marked "error
falls like 1/L", and those of the shaded control are near zero, far to the left, marked "no concentration".
"""

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.trajectory_stability.checkpoints import CHECKPOINTS, GradientErrors, Norms
from chapters.trajectory_stability.exponents import Rates, left_out
from chapters.trajectory_stability.problems import CONTROL, DIMENSION, sub_gaussian
from companion import Alternative, Claim, Column, Numbers, Table, WithheldClaim
from companion.figures.style import WIDE, ink, label, sequence
from lib.statistics import comparison_quantile, standard_error, tells_apart

# Half the width of a 95 % interval, in standard errors.
NORMAL = 1.96
# What the fit leaves out is known in order of magnitude; so many times that are allowed.
ALLOWED_ORDERS = 5


def numbers(norms: Norms, errors: Mapping[str, GradientErrors], rates: Rates) -> Numbers:
    """Return errors of gradients by task, checkpoint and length; claim their rates, and that of the control."""
    light = {name: left_out(of_task) for name, of_task in sub_gaussian(errors).items()}
    claims = (_rate_claim(sub_gaussian(rates), light), _norm_claim(sub_gaussian(norms)), _control_claim(rates[CONTROL]))
    return Numbers(_table(norms, errors, rates), claims)


def _table(norms: Norms, errors: Mapping[str, GradientErrors], rates: Rates) -> Table:
    """Return the squared gap of one prompt's gradient by task, checkpoint and length, with the fitted exponent."""
    frames = []
    for name, measured in errors.items():
        for checkpoint, norm, gaps, rate in zip(
            CHECKPOINTS, norms[name], np.moveaxis(measured.squared_gaps, 1, 0), rates[name], strict=True
        ):
            base = {"task": name, "checkpoint": checkpoint, "squared_norm": norm, "length": measured.lengths}
            gap = {"gap": gaps.mean(axis=0), "gap_std_error": standard_error(gaps)}
            fitted = {"exponent": rate.exponent, "exponent_std_error": rate.std_error}
            frames.append(pd.DataFrame({**base, **gap, **fitted}))
    columns = {
        "task": Column("The task; the control's tokens are not sub-Gaussian", "name"),
        "checkpoint": Column("Checkpoint on the trajectory of infinite prompts", "name"),
        "squared_norm": Column("Largest $H² = ‖Γ^{1/2} U Γ_q^{1/2}‖²$ over the shared episodes"),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "gap": Column(
            "Mean of ‖gradient of one prompt's loss - gradient for the infinite prompt‖²", std_error="gap_std_error"
        ),
        "gap_std_error": Column("Standard error of the mean", moves_with="gap"),
        "exponent": Column(
            "Exponent $r$ in gap ∝ $L^{-r}$, fitted with a correction $1/L$, and with many lengths also with $1/√L$",
            std_error="exponent_std_error",
        ),
        "exponent_std_error": Column("Standard error of $r$", moves_with="exponent"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _rate_claim(light: Rates, missing: Mapping[str, np.ndarray]) -> Claim | WithheldClaim:
    """Claim that all exponents of sub-Gaussian tasks are 1; `missing` are their changes by what the fit leaves out."""
    rates = [rate for of_task in light.values() for rate in of_task]
    std_errors = np.array([rate.std_error for rate in rates])
    bias = ALLOWED_ORDERS * float(np.max(np.concatenate([missing[name] for name in light]) / std_errors))

    def worst(exponent: float) -> float:
        return max(abs(rate.exponent - exponent) / rate.std_error for rate in rates)

    claim = Claim(
        id="trajectory-stability-rate",
        statement=(
            f"For {len(light)} sub-Gaussian tasks, at the start, half-way and at the end of training, the mean squared "
            "error of the gradient falls like $1/L$ (measured: the largest distance of an exponent from 1, in standard "
            "errors)."
        ),
        source="[BB26, Thm 4.3]",
        box="bb26-thm-4-3",
        measured=worst(1.0),
        expected=0.0,
        tolerance=comparison_quantile(len(rates)) + bias,
        reason=(
            f"99.9 % quantile of the largest of {len(rates)} standard normal deviations, and {ALLOWED_ORDERS} times "
            "the effect of the first power of $(d + 2)/L$ that the fit leaves out"
        ),
        relation="≤",
        comparisons=len(rates),
        alternative=Alternative("it falls like $L^{-1/2}$", worst(0.5)),
    )
    if tells_apart(np.full(len(rates), 0.5), std_errors, claim.tolerance):
        return claim
    return claim.withheld(
        "the simulation cannot tell the exponent from ½: more `prompts`, or `lengths` that are longer and differ more, "
        "help"
    )


def _norm_claim(light: Norms) -> Claim:
    """Claim that H² < ½ at all checkpoints, the condition under which the exponent 1 is expected."""
    return Claim(
        id="trajectory-stability-norm",
        statement=(
            "At all checkpoints of the sub-Gaussian tasks $H²$ is below ½, where averages over queries fall like the "
            "error at one query (measured: the largest $H²$)."
        ),
        source="measured here",
        measured=max(float(norms.max()) for norms in light.values()),
        expected=0.5,
        tolerance=0.0,
        reason="the condition of the theory",
        relation="≤",
        alternative=Alternative("training has a balanced start, and ends at $H² = d^{-1/2}$", DIMENSION**-0.5),
    )


def _control_claim(control: list[Any]) -> Claim:
    """Claim that the exponents of the control are below 1 by more than chance."""
    steepest = max(control, key=lambda rate: rate.exponent)
    bound = 1 - comparison_quantile(len(control)) * steepest.std_error
    return Claim(
        id="trajectory-stability-control",
        statement=(
            "Laplace tokens tilted beyond half their pole are not sub-Gaussian, and the error of their gradient falls "
            "more slowly than $1/L$, by more than chance, at every checkpoint (measured: the largest of the three "
            "exponents)."
        ),
        source="derived here",
        box="laplace-control",
        measured=steepest.exponent,
        expected=bound,
        tolerance=0.0,
        reason=f"1 less the 99.9 % quantile of {len(control)} standard normal deviations, times the standard error",
        relation="≤",
        std_error=steepest.std_error,
        alternative=Alternative("it falls like $1/L$, as for the sub-Gaussian tasks", 1.0),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw the exponents of all checkpoints by task."""
    tasks, checkpoints = list(dict.fromkeys(table["task"])), list(dict.fromkeys(table["checkpoint"]))
    figure, axes = plt.subplots(figsize=(WIDE, 5.0))
    axes.axhspan(len(tasks) - 1.5, len(tasks) - 0.5, color=ink(), alpha=0.07, linewidth=0)
    for offset, checkpoint, colour in zip((-0.22, 0.0, 0.22), checkpoints, sequence(3), strict=True):
        fitted = table[table["checkpoint"] == checkpoint].drop_duplicates("task")
        look = {"color": colour, "marker": "o", "markersize": 6, "linestyle": "", "capsize": 3, "label": checkpoint}
        places, interval = np.arange(len(fitted)) + offset, NORMAL * fitted["exponent_std_error"]
        axes.errorbar(fitted["exponent"], places, xerr=interval, **look)
    for exponent, words in ((0, "no concentration"), (1, "error falls like $1/L$")):
        axes.axvline(exponent, color=ink(), linewidth=1.5, linestyle=":")
        label(axes, exponent, -0.5, words, ink(), xytext=(0, 4), ha="center", va="bottom")
    norms = table.groupby("task")["squared_norm"].max()
    axes.set_yticks(range(len(tasks)), [f"{task}\n$H^2={norms[task]:.2f}$" for task in tasks])
    axes.set(xlabel="exponent $r$ of the error, $L^{-r}$", ylim=(len(tasks) - 0.5, -0.5))
    axes.legend(loc="upper left", bbox_to_anchor=(0.4, 0.8), title="checkpoint")
    return figure
