r"""On the text, the outputs of most heads are shrunk more than by the factor $1-P$ of a finite Gaussian prompt.

Horizontal axis: the participation $P$ that the exact theory of Gaussian prompts gives at the spread of the queries of a
head. Vertical axis: the slope of its outputs at the longest prompts, with two standard errors over prompts. Crosses:
the same heads on Gaussian tokens. Dashed: the slope for Gaussian prompts of this length.

Alt: Scatter with a dashed curve that falls from one on the left, with a logarithmic horizontal axis. Crosses are on the
curve. Points are mostly below it, on the right all of them but one, and on the left some are above it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.real_heads.head_slopes import Slopes
from chapters.real_heads.statistics import Control, HeadStatistics
from chapters.real_heads.style import GAUSSIAN, TEXT
from chapters.real_heads.tracked_tables import HEAD_COLUMNS, by_head
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, error_bars, ink, label, ticks_at
from lib.statistics import comparison_quantile


def numbers(heads: HeadStatistics, control: Control, slopes: Slopes) -> Numbers:
    """Return slopes on the text and on Gaussian tokens, and the claims on both."""
    on_text = {"expected": heads.expected_slope, "slope": heads.slope, "slope_se": slopes.errors}
    on_gaussian = {"gaussian_expected": control.expected_slope, "gaussian": control.slope}
    frame = by_head(**on_text, **on_gaussian, gaussian_se=control.slope_se)
    columns = {
        **HEAD_COLUMNS,
        "expected": Column(
            "$1 - P$ at the spread of the queries, weighted by $|o_{\\mathrm{lin}} - v̄|²$", moves_with="slope"
        ),
        "slope": Estimate("Best slope of the outputs against the linear prediction, on the text", std_error="slope_se"),
        "gaussian_expected": Column("Weighted $1 - P$ for the queries of the Gaussian prompts", moves_with="gaussian"),
        "gaussian": Estimate("Slope on Gaussian tokens with the same mean and covariance", std_error="gaussian_se"),
    }
    claim = Claims("real-heads", source="measured here")
    claim.agree(
        "control-slope",
        "On Gaussian tokens with the mean and covariance of its keys and values, the slope of every head is "
        "$1 - P$ at the spread of each query",
        slopes.deviations,
        within=comparison_quantile(slopes.deviations.size, samples=control.prompts),
        because=f"99.9 % quantile of the largest of {slopes.deviations.size} deviations of Student's $t$ distribution, "
        f"for standard errors from {control.prompts:,} prompts",
        rejects=("no shrinkage: a slope of 1", slopes.unshrunk),
        source="derived here",
        box="mean-output",
    )
    shortfall = slopes.shortfall
    claim.at_least(
        "shortfall",
        "On the text, slopes are smaller than on Gaussian tokens of the same spread (measured: the mean over heads "
        "of $1 - P$ minus the slope).",
        shortfall.value,
        comparison_quantile(1) * shortfall.std_error,
        because="without a shortfall, chance alone would exceed this value with a probability below 0.1 %",
        rejects=("the same heads on Gaussian tokens", shortfall.alternative),
        std_error=shortfall.std_error,
    )
    return Numbers(Table(frame, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw slopes against P, and the curve 1 - P."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    participations = np.geomspace(1e-3, 1.0, 200)
    axes.plot(participations, 1 - participations, color=ink(), linestyle="--", linewidth=1.2)
    axes.plot(1 - table["gaussian_expected"], table["gaussian"], "x", color=GAUSSIAN, markersize=6, zorder=3)
    look = {"marker": "o", "color": TEXT, "markersize": 5.5, "elinewidth": 1}
    error_bars(axes, 1 - table["expected"], table["slope"], table["slope_se"], **look)
    axes.set(xscale="log", xlim=(2e-3, 1.0), ylim=(0, 1.35))
    ticks_at(axes.xaxis, [0.003, 0.01, 0.03, 0.1, 0.3, 1])
    axes.set(xlabel="participation of Gaussian tokens, $P$", ylabel="slope against the linear prediction")
    label(axes, 0.12, 0.88, "finite Gaussian prompt, $1-P$", ink(), va="bottom", xytext=(0, 14))
    label(axes, 0.06, 1.0, "heads on Gaussian tokens", GAUSSIAN, va="bottom", xytext=(0, 14))
    below = (table["slope"] < table["expected"]).sum()
    text = f"heads on the text:\n{below} of {len(table)} shrunk more,\nbelow the curve"
    label(axes, 0.0025, 0.3, text, TEXT, xytext=(0, 0))
    return figure
