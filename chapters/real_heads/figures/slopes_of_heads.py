r"""On the text most heads are shrunk more than by the factor $1-P$ of a finite Gaussian prompt.

Across: $1-P$, what the exact theory of Gaussian prompts says of the slope between a head's outputs and the linear
prediction, at the spread of its own queries. Up: the best slope, at the longest prompts. Points: heads on the text,
with two standard errors over prompts. Crosses: the same heads on Gaussian tokens. On the dashed line the two are
equal.

Alt: Scatter with a dashed diagonal. Crosses lie on the diagonal from lower left to upper right. Points lie around and
mostly below it, further below on the left, and a few above at its right end.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import PRNGKeyArray
from matplotlib.figure import Figure

from chapters.real_heads.statistics import Control, Heads, HeadStatistics, Measured, bootstrap
from chapters.real_heads.style import GAUSSIAN, SIZE, TEXT
from chapters.real_heads.tracked_tables import names_of_heads
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, headline, ink, label
from lib.statistics import comparison_quantile, student_quantile


@dataclass(frozen=True)
class Slopes:
    """By how much slopes fall short of 1 - P in the mean over heads; `other` is what Gaussian tokens' do.

    `deviations` are those of drawn Gaussian prompts from the exact slope, in standard errors; `unshrunk` those from 1.
    """

    errors: Heads
    shortfall: Measured
    deviations: Heads
    unshrunk: Heads


def compare_slopes(heads: HeadStatistics, control: Control, *, key: PRNGKeyArray) -> Slopes:
    """The best slopes against those of Gaussian tokens."""

    def shortfall(these) -> float:
        return float(np.mean(these.expected_slope - these.slope))

    errors = bootstrap(lambda these: these.slope, heads, key=key)
    error = float(bootstrap(shortfall, heads, key=key))
    deviations, unshrunk = ((control.slope - expected) / control.slope_se for expected in (control.expected_slope, 1.0))
    return Slopes(errors, Measured(shortfall(heads), error, shortfall(control)), deviations, unshrunk)


def numbers(heads: HeadStatistics, control: Control, slopes: Slopes) -> Numbers:
    """Slopes of heads on the text and on Gaussian tokens."""
    return Numbers(_table(heads, control, slopes), (_control_claim(slopes, control), _shortfall_claim(slopes)))


def _table(heads: HeadStatistics, control: Control, slopes: Slopes) -> Table:
    """A row a head."""
    frame = pd.DataFrame(
        {
            **names_of_heads(),
            "expected": heads.expected_slope.ravel(),
            "slope": heads.slope.ravel(),
            "slope_se": slopes.errors.ravel(),
            "gaussian_expected": control.expected_slope.ravel(),
            "gaussian": control.slope.ravel(),
            "gaussian_se": control.slope_se.ravel(),
        }
    )
    columns = {
        "layer": Column("Layer, from 0"),
        "head": Column("Head of the layer, from 0"),
        "expected": Column("1 - P at the spread of the head's queries, weighted by |o_lin - v̄|²", moves_with="slope"),
        "slope": Column("Best slope of its outputs against the linear prediction, text", std_error="slope_se"),
        "slope_se": Column("Its standard error over prompts", moves_with="slope"),
        "gaussian_expected": Column("1 - P of the queries asked in Gaussian prompts", moves_with="gaussian"),
        "gaussian": Column("Slope on Gaussian tokens of the same mean and covariance", std_error="gaussian_se"),
        "gaussian_se": Column("Its standard error over prompts", moves_with="gaussian"),
    }
    return Table(frame[list(columns)], columns)


def _control_claim(slopes: Slopes, control: Control) -> Claim:
    return Claim(
        id="real-heads-control-slope",
        statement=(
            "On Gaussian tokens with the mean and covariance of a head's own keys and values its slope is 1 - P, at "
            f"each query's own spread: the worst of {slopes.deviations.size} deviations, in standard errors."
        ),
        source="derived here",
        box="mean-output",
        measured=float(np.max(np.abs(slopes.deviations))),
        expected=0.0,
        tolerance=student_quantile(slopes.deviations.size, control.prompts),
        alternative=Alternative("no shrinkage: a slope of 1", float(np.max(np.abs(slopes.unshrunk)))),
    )


def _shortfall_claim(slopes: Slopes) -> Claim:
    found = slopes.shortfall
    return Claim(
        id="real-heads-shortfall",
        statement=(
            "On the text slopes are smaller than those of Gaussian tokens of the same spread: by how much they fall "
            "short of 1 - P, in the mean over heads."
        ),
        source="measured here",
        measured=found.value,
        # what no shortfall reaches by chance, as prompts go
        expected=comparison_quantile(1) * found.std_error,
        tolerance=0.0,
        std_error=found.std_error,
        relation="≥",
        alternative=Alternative("the same heads on Gaussian tokens", found.other),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Slopes against 1 - P."""
    figure, axes = plt.subplots(figsize=SIZE)
    axes.axline((0, 0), slope=1, color=ink(), linestyle="--", linewidth=1.2)
    axes.plot(
        table["gaussian_expected"],
        table["gaussian"],
        "x",
        color=GAUSSIAN,
        markersize=6,
        label="Gaussian tokens",
        zorder=3,
    )
    look = {"marker": "o", "color": TEXT, "markersize": 5.5, "elinewidth": 1, "label": "text"}
    error_bars(axes, table["expected"], table["slope"], table["slope_se"], **look)
    axes.set(xlim=(0, 1.05), ylim=(0, 1.35))
    axes.set(xlabel="exact for Gaussian tokens, $1-P$", ylabel="best slope of a head's outputs")
    label(axes, 0.3, 0.3, "as Gaussian tokens would", ink(), xytext=(8, -8))
    axes.legend(loc="upper left")
    headline(figure, "Text shrinks most answers more than a finite Gaussian prompt would")
    return figure
