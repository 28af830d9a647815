r"""The kernel $1+x$ has an infinite error at every length drawn, which simulations of long prompts do not show.

The heads of a pair have weights $1+x$, divided by their sum over the prompt, which can come close to zero. Of $n$
prompts the one with the sum closest to zero is left out; the vertical axis is the mean square error of the rest, so
that a finite error would be a horizontal line. Solid curves are exact, one per length. Points are simulated, with two
standard errors. The dotted lines are debiased gradient descent, for which the sum is exactly one.

With $X=(\omega|x_q|\bar g)^2$, where $\bar g$ is the mean of the standardised scores, prompts with
$|1-X|\le\delta$ are left out, and $\delta\le\frac12$ is such that this has probability $1/n$, or is $\frac12$ if it is
rarer.

Alt: Chart with two logarithmic axes. Each curve is first horizontal, near a dotted line of its colour, and then rises
in proportion to n. Longer prompts rise later, the longest many decades later. Points at small n are on the curves.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.which_kernel.linear_kernel import PER_DECADE, CutErrors
from companion import Alternative, Claim, Column, Estimate, Numbers, Table, WithheldClaim
from companion.figures.style import (
    WIDE,
    error_bars,
    few_decades,
    label,
    legend_line,
    legend_point,
    legend_with,
    markers,
    sequence,
)
from lib.statistics import tells_apart

# The curves are drawn up to this error, in units of the smallest.
TALLEST = 1e4
# The growth is claimed if at most this part of the error does not grow yet: an error that never grows is then far away.
LARGEST_FLAT = 0.4


def numbers(errors: Sequence[CutErrors]) -> Numbers:
    """Return exact and simulated errors by length and count, and the claims on simulation and on growth."""
    groups = []
    for error in errors:
        shared = {"length": error.length, "debiased": error.debiased}
        points = {"simulated": error.simulated, "simulated_std_error": error.std_error, "exact": error.exact_there}
        groups += [
            shared | {"prompts": error.prompts, "exact": error.exact},
            shared | {"prompts": error.simulated_prompts} | points,
        ]
    columns = {
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "prompts": Column("Number $n$ of prompts of which one is left out"),
        "exact": Column("Mean square error of the remaining prompts, exact"),
        "debiased": Column("Mean square error of debiased gradient descent"),
        "simulated": Estimate("The same error over simulated prompts"),
    }
    return Numbers(Table.of(groups, columns), (_simulation_claim(errors), _growth_claim(errors)))


def _simulation_claim(errors: Sequence[CutErrors]) -> Claim | WithheldClaim:
    """Claim that exact and simulated errors agree."""

    def worst(theory: Sequence) -> float:
        return max(float(np.max(np.abs(e.simulated - t) / e.std_error)) for e, t in zip(errors, theory, strict=True))

    count = sum(error.simulated.size for error in errors)
    claim = Claim.consistent(
        "which-kernel-cut-errors",
        f"At {count} pairs of a length and a share of prompts that is left out, theory and simulation of the kernel "
        "$1 + x$ agree (measured: the largest deviation in standard errors).",
        worst([error.exact_there for error in errors]),
        comparisons=count,
        source="derived here",
        box="one-plus-x",
        alternative=Alternative(
            "the sum of the weights may be replaced by its mean, which gives debiased gradient descent",
            worst([error.debiased for error in errors]),
        ),
    )
    if any(tells_apart(each.exact_there - each.debiased, each.std_error, claim.tolerance) for each in errors):
        return claim
    return claim.withheld(
        "the errors differ from that of debiased gradient descent by less than twice the tolerance, so that the "
        "simulation cannot tell them apart; more `prompts`, a shorter prompt or a larger `cut_key` help"
    )


def _growth_claim(errors: Sequence[CutErrors]) -> Claim | WithheldClaim:
    """Claim that the error diverges at every length: at the end of the axis it grows in proportion to n."""
    before = -1 - PER_DECADE
    ratios = [error.exact[-1] / error.exact[before] for error in errors]
    farthest = max(range(len(errors)), key=lambda k: abs(ratios[k] - 10))
    flat = errors[farthest].exact[0] / errors[farthest].exact[before]
    claim = Claim.equal(
        "which-kernel-infinite-error",
        f"At {len(errors)} prompt lengths, ten times as many prompts have ten times the error at the end of the axis "
        "(measured: the ratio farthest from ten).",
        ratios[farthest],
        10.0,
        within=10 * flat + 0.01,
        because="the part of the error that does not grow, and one per mille for the quadrature",
        source="derived here",
        box="one-plus-x",
        comparisons=len(errors),
        alternative=Alternative("the error is finite, as short simulations of the longest prompts suggest", 1.0),
    )
    if flat < LARGEST_FLAT:
        return claim
    return claim.withheld(
        f"at the end of the axis {flat:.0%} of the error do not grow yet for one of the lengths; with shorter prompts, "
        "a larger `cut_key` or more `decades` it grows"
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw the exact curves, simulated points and debiased gradient descent, in one colour per length."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.6))
    axes.set(xscale="log", yscale="log", xlabel="number $n$ of prompts, of which one is left out")
    axes.set_ylabel("mean square error of the rest")
    lengths = sorted(table["length"].unique())
    top = TALLEST * table["debiased"].min()
    for length, colour, marker in zip(lengths, sequence(len(lengths)), markers(len(lengths)), strict=True):
        rows = table[table["length"] == length]
        curve, points = rows[rows["simulated"].isna()], rows[rows["simulated"].notna()]
        axes.plot(curve["prompts"], curve["exact"], color=colour, linewidth=2)
        axes.axhline(rows["debiased"].iloc[0], color=colour, linestyle=":", linewidth=1.3)
        simulated = points["prompts"], points["simulated"], points["simulated_std_error"]
        error_bars(axes, *simulated, color=colour, marker=marker)
        where = {"xytext": (-6, 0), "ha": "right"} if length == lengths[0] else {"xytext": (10, 0)}
        end = curve[curve["exact"] < 0.2 * top].iloc[-1]
        label(axes, end["prompts"], end["exact"], f"$L={length}$", colour, **where)
    few_decades(axes)
    axes.set_ylim(0.5 * table["debiased"].min(), top)
    axes.set_xlim(5, 1e5 * table.loc[table["exact"] < top, "prompts"].max())
    lines = {"exact": legend_line("-"), "debiased gradient descent": legend_line(":", 1.3), "simulated": legend_point()}
    legend_with(axes, lines, loc="center right", bbox_to_anchor=(1.0, 0.45))
    return figure
