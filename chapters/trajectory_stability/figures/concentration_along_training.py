r"""The error of the gradient at three points of the trajectory.

Left: mean of $\|\nabla\hat R_L-\nabla R_\infty\|^2$ of single prompts on fresh episodes at the end of training, divided
by its value at the shortest prompt, with two standard errors, upwards only where a bar would nearly reach zero; one
series for each task, regressions in blue. Dotted: $1/L$. Right: the exponent $r$ of $L^{-r}$ at the start, half-way and
at the end, with 95 % confidence intervals; a correction of order $1/L$ is fitted along, and with many
lengths one of order $1/\sqrt L$ too. The number beside a task is the largest $H^2$ of its three checkpoints. The
last task is the control, whose tokens are not sub-Gaussian: its gradient does not concentrate.

Alt: Two panels. Left, a log-log chart: the series of the sub-Gaussian tasks fall together along a dotted line of slope
minus one, and the series of the Laplace control stays level or rises. Right, intervals by task: three for each of the
sub-Gaussian tasks lie around one, and those of the control lie near zero, far to the left.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.trajectory_stability.checkpoints import CHECKPOINTS, GradientErrors, Norms
from chapters.trajectory_stability.exponents import Rates
from chapters.trajectory_stability.problems import CONTROL, DIMENSION, sub_gaussian
from chapters.trajectory_stability.style import SIZE, length_ticks, power_line, series
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label, sequence
from lib.concentration import Rate
from lib.statistics import comparison_quantile, standard_error

# Of a 95 % interval.
NORMAL = 1.96


def numbers(norms: Norms, errors: Mapping[str, GradientErrors], rates: Rates) -> Numbers:
    """Errors of gradients by task, checkpoint and length; rates beyond Gaussian tokens, and of the control."""
    claims = (_rate_claim(sub_gaussian(rates)), _norm_claim(sub_gaussian(norms)), _control_claim(rates[CONTROL]))
    return Numbers(_table(norms, errors, rates), claims)


def _table(norms: Norms, errors: Mapping[str, GradientErrors], rates: Rates) -> Table:
    """Squared gap of one prompt's gradient by task, checkpoint and length, and the exponent of its fall."""
    frames = []
    for name, these in errors.items():
        for checkpoint, norm, gaps, rate in zip(
            CHECKPOINTS, norms[name], np.moveaxis(these.squared_gaps, 1, 0), rates[name], strict=True
        ):
            base = {"task": name, "checkpoint": checkpoint, "squared_norm": norm, "length": these.lengths}
            gap = {"gap": gaps.mean(axis=0), "gap_std_error": standard_error(gaps)}
            fitted = {"exponent": rate.exponent, "exponent_std_error": rate.std_error}
            frames.append(pd.DataFrame({**base, **gap, **fitted}))
    columns = {
        "task": Column("The task; the control's tokens are not sub-Gaussian", "name"),
        "checkpoint": Column("Where on the trajectory of infinite prompts", "name"),
        "squared_norm": Column("H², the largest ‖Γ^{1/2} U Γ_q^{1/2}‖² over the shared episodes"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "gap": Column("Mean of ‖gradient of one prompt's loss - that of its law‖²", std_error="gap_std_error"),
        "gap_std_error": Column("Standard error of the mean", moves_with="gap"),
        "exponent": Column(
            "r of gap ∝ L^-r, with a correction 1/L fitted along, and with many lengths 1/√L too",
            std_error="exponent_std_error",
        ),
        "exponent_std_error": Column("Standard error of r", moves_with="exponent"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _rate_claim(light: Rates) -> Claim:
    """All exponents of sub-Gaussian tasks are 1: the worst, in standard errors."""
    rates = [rate for of_task in light.values() for rate in of_task]

    def worst(exponent: float) -> float:
        return max(abs(rate.exponent - exponent) / rate.std_error for rate in rates)

    return Claim(
        id="trajectory-stability-rate",
        statement=(
            f"For {len(light)} sub-Gaussian tasks, at the start, half-way and at the end of training, the mean squared "
            f"error of the gradient falls like 1/L: the worst of {len(rates)} exponents is that many standard errors "
            "from 1."
        ),
        source="[BB26, Thm 4.3]",
        box="bb26-thm-4-3",
        measured=worst(1.0),
        expected=0.0,
        tolerance=comparison_quantile(len(rates)),
        relation="≤",
        alternative=Alternative("it fell like L^{-1/2}", worst(0.5)),
    )


def _norm_claim(light: Norms) -> Claim:
    """H² < ½ all along, the condition under which the exponent 1 is expected."""
    return Claim(
        id="trajectory-stability-norm",
        statement=(
            "At all checkpoints of the sub-Gaussian tasks H² stays below ½, where averages over queries fall like the "
            "error at one query: the largest H²."
        ),
        source="measured here",
        measured=max(float(norms.max()) for norms in light.values()),
        expected=0.5,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("training from a balanced start, which ends at H² = d^{-1/2}", DIMENSION**-0.5),
    )


def _control_claim(control: list[Rate]) -> Claim:
    """The control's exponents are below 1 by more than chance."""
    steepest = max(control, key=lambda rate: rate.exponent)
    bound = 1 - comparison_quantile(len(control)) * steepest.std_error
    return Claim(
        id="trajectory-stability-control",
        statement=(
            "Laplace tokens tilted beyond half their pole are not sub-Gaussian, and the error of their gradient falls "
            "more slowly than 1/L, beyond chance, at every checkpoint: the largest of the three exponents."
        ),
        source="derived here",
        box="laplace-control",
        measured=steepest.exponent,
        expected=bound,
        tolerance=0.0,
        relation="≤",
        std_error=steepest.std_error,
        alternative=Alternative("it fell like 1/L, as in the sub-Gaussian tasks", 1.0),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Relative errors at the end against the length; the exponents of all checkpoints by task."""
    tasks = list(dict.fromkeys(table["task"]))
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE, width_ratios=(1, 1.15))
    checkpoints = list(dict.fromkeys(table["checkpoint"]))
    end = table[table["checkpoint"] == checkpoints[-1]]
    firsts = end.groupby("task")["gap"].transform("first")
    end = end.assign(gap=end["gap"] / firsts, gap_std_error=end["gap_std_error"] / firsts)
    series(left, end, "gap", named=False)
    power_line(left, table["length"], 1.0, -1.0)
    left.set(xlabel="prompt length $L$", ylabel="squared error of the gradient, relative")
    low, high = table["length"].min(), table["length"].max()
    left.set_ylim(top=3 * end["gap"].max())
    label(left, high, 2 * end["gap"].max(), "Laplace (control)", ink(), xytext=(0, 0), ha="right")
    label(left, low, low / high, "the six others,\nalong $1/L$ (dotted)", "C0", xytext=(0, 0))
    left.set_title("at the end of training")
    for offset, checkpoint, colour in zip((-0.22, 0.0, 0.22), checkpoints, sequence(3), strict=True):
        mine = table[table["checkpoint"] == checkpoint].drop_duplicates("task")
        look = {"color": colour, "marker": "o", "markersize": 5, "linestyle": "", "capsize": 3, "label": checkpoint}
        places, interval = np.arange(len(mine)) + offset, NORMAL * mine["exponent_std_error"]
        right.errorbar(mine["exponent"], places, xerr=interval, **look)
    right.axvline(1, color=ink(), linewidth=1.5, linestyle=":")
    norms = table.groupby("task")["squared_norm"].max()
    right.set_yticks(range(len(tasks)), [f"{task}\n$H^2={norms[task]:.2f}$" for task in tasks])
    right.set(xlabel="exponent $r$", ylim=(len(tasks) - 0.5, -0.5), title="all along training")
    right.legend(loc="center left", title="checkpoint")
    length_ticks(left, table)
    headline(figure, "All along training, gradients of sub-Gaussian tasks concentrate like 1/L")
    return figure
