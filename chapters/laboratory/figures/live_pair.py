r"""No pair of keys of the plane has a lower risk than the best pair with opposite keys.

In-context regression in 5 dimensions with label noise of variance 0.1; two heads have their best values. Left: the
excess risk, divided by that of debiased gradient descent, the limit of keys going to zero; numbers are values at steps
of the colour. Right: the ratio along the opposite pairs, and that of the chosen pair.

Alt: Two panels. Left, a square of two keys, strong blue along a dashed falling diagonal through the centre and faint
near the two axes, with a point. Right, a rising curve of the ratio along the opposite pairs, and the point above it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.laboratory.grids import Axis, Grid, Values
from chapters.laboratory.key_plane import LARGEST_KEY, coordinates
from chapters.laboratory.table_interpolation import between
from chapters.laboratory.trials import Trial
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, ticks_at

INTERPOLATION = 5e-4
BECAUSE = (
    "the largest Chebyshev coefficients beyond the nodes add up to 10⁻⁴; an interpolating polynomial can double this "
    "error, and the interpolation along the other axes again"
)
# Ratios at which the colour changes.
LEVELS = (1.05, 1.2, 1.5, 2.0, 4.0)
# Keys in a cut through the plane, of which every second is a pair that the claim on the best pair compares.
CUT = 121
# The setting of the static picture.
SHOWN = {"first": 0.4, "second": -0.1, "decade": 3.0}


def numbers(trial: Trial) -> Numbers:
    """Return the table, and claims on its interpolation error and on the best pair."""
    columns = {
        "log_length": Column("$ln L$, the logarithm of the prompt length"),
        "size": Column("$(ω₁² + ω₂²)/(0.36 (1 + q²))$, $q$ = product"),
        "product": Column("$q = 2ω₁ω₂/(ω₁² + ω₂²)$, -1 for opposite keys and 1 for equal keys"),
        "log_ratio": Column(
            "ln of the excess risk of the pair with its best values, in units of debiased gradient descent",
            absolute=1e-6,
        ),
    }
    every_second = tuple(Axis(axis.name, axis.nodes[::2]) for axis in trial.grid.axes)
    coarse = Grid(every_second, {"log_ratio": trial.grid.columns["log_ratio"][::2, ::2, ::2]})
    half = Trial(coarse, trial.places, trial.exact)
    claim = Claims("live", source="measured here")
    accurate = trial.requires(log_length=11, size=17, product=21)
    claim.at_most(
        "pair-read",
        "The page reads the logarithm of the least risk of a pair from its table with small errors (largest error "
        f"at {trial.settings} random pairs of keys up to {LARGEST_KEY:g} and lengths from 10 to 10⁴).",
        trial.error("log_ratio"),
        0,
        within=INTERPOLATION,
        because=BECAUSE,
        rejects=("every second node of each axis", half.error("log_ratio")),
        requires=accurate,
    )
    opposite, plane = _least_ratios(trial.grid)
    claim.at_most(
        "pair-best",
        "The pair of least risk has opposite keys (largest amount by which the best opposite pair exceeds the best "
        "pair of the plane, relative to it, at the lengths of the table).",
        np.max(opposite / plane - 1),
        0,
        within=INTERPOLATION,
        because=BECAUSE,
        rejects=("keys of zero, debiased gradient descent, are best", np.max(1 / plane - 1)),
        requires=accurate,
    )
    return Numbers(Table(trial.grid.frame, columns), claim)


def _least_ratios(grid: Grid) -> tuple[Values, Values]:
    """Return the least ratio of the opposite pairs, and that of all pairs, at each length of the table."""
    keys = np.linspace(-LARGEST_KEY, LARGEST_KEY, CUT)
    size, product = coordinates(keys[:, None], keys)
    ratios = [np.exp(grid.read("log_ratio", length, size, product)) for length in grid.axes[0].nodes]
    opposite = [np.fliplr(ratio).diagonal().min() for ratio in ratios]
    return np.asarray(opposite), np.asarray([ratio.min() for ratio in ratios])


def ratio(table: pd.DataFrame, log_length: float, first: Values, second: Values) -> Values:
    """Return the excess risks of pairs in units of debiased gradient descent, read from the table."""
    size, product = coordinates(first, second)
    return np.exp(between(table, "log_ratio", log_length=log_length, size=size, product=product))


def draw(table: pd.DataFrame) -> Figure:
    """Draw the plane of keys at one length and the ratio along the opposite pairs."""
    log_length, shown = SHOWN["decade"] * np.log(10.0), (SHOWN["first"], SHOWN["second"])
    figure, (plane, cut) = plt.subplots(1, 2, figsize=(WIDE, 4.2))
    keys = np.linspace(-LARGEST_KEY, LARGEST_KEY, CUT)
    values = ratio(table, log_length, keys, keys[:, None])
    single = ratio(table, log_length, 0.0, keys)
    for level in LEVELS:
        plane.contourf(keys, keys, values, [0, level], colors=["C0"], alpha=0.17)
        # the value of each step where its edge meets the pairs whose first key is zero
        edge = np.interp(level, single[CUT // 2 :], keys[CUT // 2 :])
        label(plane, 0, edge, f"{level:g}", ink(), xytext=(0, 0), ha="center", fontsize=10)
    plane.plot(keys, -keys, color="C0", linestyle="--", linewidth=1.5)
    label(plane, -0.55, 0.55, "opposite keys", "C0", xytext=(8, 4))
    plane.plot(*shown, "o", color="C4", markersize=9)
    label(plane, *shown, "this pair", "C4", xytext=(0, -14), ha="center")
    ends = (-LARGEST_KEY, LARGEST_KEY)
    plane.set(xlim=ends, ylim=ends, xlabel=r"first key, $\omega_1$", ylabel=r"second key, $\omega_2$")
    plane.set_title("excess risk, debiased descent = 1")
    plane.grid(visible=False)
    gaps = np.linspace(0, LARGEST_KEY, CUT)
    cut.plot(gaps, ratio(table, log_length, gaps, -gaps), color="C0", linewidth=2.5)
    label(cut, 0.5, ratio(table, log_length, 0.5, -0.5).item(), "opposite keys", "C0", ha="right", xytext=(-8, 4))
    cut.axhline(1, color="C1", linestyle=":", linewidth=2)
    label(cut, 0.59, 1.0, "debiased gradient descent", "C1", ha="right", va="top", xytext=(0, -6))
    place = (shown[0] - shown[1]) / 2, ratio(table, log_length, *shown).item()
    cut.plot(*place, "o", color="C4", markersize=9)
    label(cut, *place, "this pair", "C4", xytext=(0, 14), ha="center")
    cut.set(xlim=(0, LARGEST_KEY), ylim=(0.9, 3), yscale="log")
    ticks_at(cut.yaxis, [1, 1.5, 2, 3])
    cut.set(xlabel=r"half the difference, $(\omega_1-\omega_2)/2$", ylabel="excess risk, debiased descent = 1")
    cut.set_title(f"$L=10^{{{SHOWN['decade']:g}}}$", loc="right")
    return figure
