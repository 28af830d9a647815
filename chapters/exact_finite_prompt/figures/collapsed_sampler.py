r"""A prompt drawn as $L$ numbers and one vector has the same output distribution as a prompt drawn as $L$ vectors.

The figure shows the distribution functions of the two coordinates of the output: the vertical axis is the fraction of
prompts with an output below the value on the horizontal axis. Lines are quantiles of the collapsed sampler, in bands of
two standard errors. Points are quantiles of plain prompts, every fifth of a hundred, with bars of two standard errors.
Neighbouring quantiles come from the same outputs and move together.

Alt: Line chart of two distribution functions, S-shaped curves that rise from zero to one. Points with short bars, from
plain prompts, are on both curves over their whole range.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.exact_finite_prompt.prompt_samplers import Samplers
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, label, legend_line, legend_point, legend_with


def numbers(samplers: Samplers) -> Numbers:
    """Return the quantiles of both samplers, and the claim that tests find no difference."""
    probabilities = np.linspace(0.01, 0.99, 99)
    groups = []
    for coordinate in range(samplers.plain.shape[1]):
        samples = samplers.plain[:, coordinate], samplers.collapsed[:, coordinate]
        plain, collapsed = (np.quantile(sample, probabilities) for sample in samples)
        plain_se, collapsed_se = (quantile_error(sample, probabilities) for sample in samples)
        quantiles = {"plain": plain, "plain_se": plain_se, "collapsed": collapsed, "collapsed_se": collapsed_se}
        difference = (collapsed - plain) / np.hypot(plain_se, collapsed_se)
        groups.append({"coordinate": coordinate + 1, "chance": probabilities, **quantiles, "difference": difference})
    columns = {
        "coordinate": Column("Coordinate of the output"),
        "chance": Column("Probability of an output below the quantile"),
        "plain": Estimate("Quantile of plain prompts, $L$ vectors each", std_error="plain_se"),
        "collapsed": Estimate(
            "Quantile of the collapsed sampler, $L$ numbers and one vector each", std_error="collapsed_se"
        ),
        "difference": Column("Collapsed minus plain, in standard errors of the difference", moves_with="collapsed"),
    }
    from scipy.stats import ks_2samp  # the import takes a second, and only this function needs it

    angles = np.linspace(0, np.pi, 5)[:-1]
    directions = np.stack([np.cos(angles), np.sin(angles)])
    plain, collapsed, scores_only = (
        each @ directions for each in (samplers.plain, samplers.collapsed, samplers.scores_only)
    )
    claim = Claims("exact-finite-prompt", source="derived here", box="collapse")
    claim.at_least(
        "collapsed",
        f"Kolmogorov-Smirnov tests on {len(angles)} projections of {len(plain):,} outputs each find no "
        "difference between the collapsed sampler and plain prompts (measured: the smallest p-value).",
        ks_2samp(plain, collapsed, method="asymp").pvalue.min(),
        1e-3 / len(angles),
        because=f"{len(angles)} tests together reject a correct sampler with probability at most 0.001",
        rejects=(
            "a sampler that draws the scores and omits the rest of the tokens",
            ks_2samp(plain, scores_only, method="asymp").pvalue.min(),
        ),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw one distribution function per coordinate: a line for the collapsed sampler, points for plain prompts."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    places = ({"xytext": (10, -2)}, {"xytext": (-10, 2), "ha": "right"})
    looks = zip(table.groupby("coordinate"), ("C0", "C1"), ("o", "s"), places, strict=True)
    for (coordinate, rows), colour, marker, place in looks:
        quantile, margin = rows["collapsed"], 2 * rows["collapsed_se"]
        axes.plot(quantile, rows["chance"], color=colour, linewidth=1.5)
        axes.fill_betweenx(rows["chance"], quantile - margin, quantile + margin, color=colour, alpha=0.25, linewidth=0)
        some = rows.iloc[4::5]
        look = {"color": colour, "marker": marker, "markersize": 5, "linestyle": "", "capsize": 2, "elinewidth": 1.5}
        axes.errorbar(some["plain"], some["chance"], xerr=2 * some["plain_se"], **look)
        middle = rows.iloc[(rows["chance"] - 0.72).abs().argmin()]
        label(axes, middle["plain"], middle["chance"], f"coordinate {coordinate}", colour, **place)
    axes.set(xlabel="output of a prompt", ylabel="fraction of prompts below", ylim=(0, 1))
    lines = {"$L$ numbers and\none vector (collapsed)": legend_line("-", 1.5), "$L$ vectors (plain)": legend_point()}
    legend_with(axes, lines, loc="lower right", title="prompts drawn as", alignment="left")
    return figure


def quantile_error(samples: np.ndarray, chances: np.ndarray, *, width: float = 0.01) -> np.ndarray:
    """Return the standard errors of quantiles; densities come from the quantiles at `chances` ± `width`."""
    density = 2 * width / (np.quantile(samples, chances + width) - np.quantile(samples, chances - width))
    return np.sqrt(chances * (1 - chances) / len(samples)) / density
