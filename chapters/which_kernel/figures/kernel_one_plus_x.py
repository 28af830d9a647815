r"""The kernel $1+x$ has an infinite error at every length drawn, which simulations of long prompts do not show.

Weights $1+x$ are divided by their sum, which can come close to zero. Of $n$ prompts the one with the sum closest to
zero is left out; a finite error of the rest would be a horizontal line. Solid curves are exact; points are simulated,
with two standard errors. Dotted: debiased gradient descent, for which the sum is exactly one.

With $X=(\omega|x_q|\bar g)^2$, where $\bar g$ is the mean of the standardised scores, prompts with $|1-X|\le\delta$
are left out, and $\delta\le\frac12$ is such that this has probability $1/n$, or is $\frac12$ if it is rarer.

Alt: Chart with two logarithmic axes. Each curve is first horizontal, near a dotted line of its colour, and then rises
in proportion to n. Longer prompts rise later, the longest many decades later. Points at small n are on the curves.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.style import coloured
from chapters.which_kernel.linear_kernel import PER_DECADE, CutErrors
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, error_bars, few_decades, ink, label
from lib.statistics import comparison_quantile, tells_apart

# The growth is claimed if the part of the error that does not grow yet is below this, so that a constant error is far
# outside the tolerance.
LARGEST_FLAT = 0.4


def numbers(errors: Sequence[CutErrors]) -> Numbers:
    """Return exact and simulated errors by length and count, and the claims on simulation and on growth."""
    groups = []
    for error in errors:
        shared = {"length": error.length, "debiased": error.debiased}
        counts, there = error.prompts, error.simulated_prompts
        exact = pd.DataFrame({"prompts": [*counts, *there], "error": [*error.exact, *error.exact_there]})
        # some of the simulated n are on the grid of the curve
        exact = exact.round({"prompts": 6}).drop_duplicates("prompts").sort_values("prompts")
        groups += [
            exact.assign(kind="exact", **shared),
            shared | {"kind": "simulated", "prompts": there, "error": error.simulated, "std_error": error.std_error},
        ]
    columns = {
        "kind": Column("`exact` or `simulated`", "name"),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "prompts": Column("Number $n$ of prompts of which one is left out"),
        "error": Estimate("Mean square error of the remaining prompts", std_error="std_error"),
        "debiased": Column("Mean square error of debiased gradient descent"),
    }
    return Numbers(Table.of(groups, columns), _claims(errors))


def _claims(errors: Sequence[CutErrors]) -> Claims:
    """Claim that exact and simulated errors agree, and that the error grows in proportion to n at every length."""
    claim = Claims("which-kernel", source="derived here", box="one-plus-x")
    exact, debiased = (
        np.concatenate([(error.simulated - getattr(error, theory)) / error.std_error for error in errors])
        for theory in ("exact_there", "debiased")
    )
    tolerance = comparison_quantile(exact.size)
    claim.agree(
        "cut-errors",
        f"At {exact.size} pairs of a length and a share of prompts that is left out, theory and simulation of the "
        "kernel $1 + x$ agree",
        exact,
        rejects=("the sum of the weights may be replaced by its mean, which gives debiased gradient descent", debiased),
        requires=(
            any(tells_apart(error.exact_there - error.debiased, error.std_error, tolerance) for error in errors),
            "the errors differ from that of debiased gradient descent by less than twice the tolerance, so that the "
            "simulation cannot tell them apart; more `prompts`, a shorter prompt or a larger `cut_key` help",
        ),
    )
    first, before, last = np.array([error.exact[[0, -1 - PER_DECADE, -1]] for error in errors]).T
    farthest = np.argmax(np.abs(last / before - 10))
    flat = first[farthest] / before[farthest]
    claim.equal(
        "infinite-error",
        f"At {len(errors)} prompt lengths, ten times as many prompts have ten times the error at the end of the axis "
        "(measured: the ratio farthest from ten).",
        last[farthest] / before[farthest],
        10,
        within=10 * flat + 0.01,
        because="the part of the error that does not grow, and one per mille for the quadrature",
        comparisons=len(errors),
        rejects=("the error is finite, as short simulations of the longest prompts suggest", 1),
        requires=(
            flat < LARGEST_FLAT,
            f"at the end of the axis {flat:.0%} of the error do not grow yet for one of the lengths; with shorter "
            "prompts, a larger `cut_key` or more `decades` it grows",
        ),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the exact curves, simulated points and debiased gradient descent, in one colour per length."""
    figure, axes = plt.subplots(figsize=(WIDE, 4.6))
    axes.set(xscale="log", yscale="log", xlabel="number $n$ of prompts; the worst one is left out")
    lengths = sorted(table["length"].unique())
    # the curves are drawn up to this error
    top = 1e4 * table["debiased"].min()
    for length, colour, marker in coloured(lengths):
        rows = table[table["length"] == length]
        curve, points = rows[rows["kind"] == "exact"], rows[rows["kind"] == "simulated"]
        axes.plot(curve["prompts"], curve["error"], color=colour, linewidth=2)
        axes.axhline(rows["debiased"].iloc[0], color=colour, linestyle=":", linewidth=1.3)
        error_bars(axes, points["prompts"], points["error"], points["std_error"], color=colour, marker=marker)
        where = {"xytext": (-6, 0), "ha": "right"} if length == lengths[0] else {"xytext": (10, 0)}
        end = curve[curve["error"] < 0.2 * top].iloc[-1]
        label(axes, end["prompts"], end["error"], f"$L={length}$", colour, **where)
    few_decades(axes)
    last, simulated = table.loc[table["error"] < top, "prompts"].max(), table[table["kind"] == "simulated"]["prompts"]
    axes.set(ylabel="mean square error of the rest", xlim=(5, 10 * last), ylim=(0.5 * table["debiased"].min(), top))
    axes.axvspan(5, 1.5 * simulated.max(), color=ink(), alpha=0.08, linewidth=0)
    label(axes, 5.5, 0.3 * top, "simulated", ink(), xytext=(0, 0))
    label(axes, 2e5, 0.004 * top, "grows like $n$:\nthe mean is infinite", ink(), xytext=(0, 0))
    above = {"ha": "right", "va": "bottom", "xytext": (-4, 3)}
    label(axes, 10 * last, table["debiased"].max(), "debiased gradient descent", ink(), **above)
    axes.set_title("pair of heads with the kernel $1+x$", fontsize=11)
    return figure
