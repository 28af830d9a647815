r"""Errors of the two gradients against the length of the prompt, for Gaussian tokens of growing scale $\sigma$.

Mean squared Hilbert–Schmidt norm of the gradient at a finite prompt minus that at its law, over prompts and
queries. Points: simulated, with two standard errors. Solid (left): exact. Dashed: the form of the bound,
$c_1\sigma^6\ln L/L^{c_2/\sigma^2}$ for $\nabla_V$, $c_1\sigma^{12}(\ln L)^2/L^{c_2/\sigma^2}$ for $\nabla_U$. The
paper does not give the constants; one pair for each gradient was fitted to the points left of the dotted line.
The two panels share their axes: $\nabla_U$ errs more, and falls later.

Alt: Two log-log panels of error against prompt length with common axes, a series of points for each scale. Left, points
lie on solid falling curves, steepest for the smallest scale. Right, the points lie higher, most of all for large
scales, and fall more slowly. Dashed curves run above the points, further above for larger scales, more so on the right.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.gradient_concentration.gradient_errors import VALUE, PairedErrors
from chapters.gradient_concentration.marks import SIZE, SYMBOL
from chapters.gradient_concentration.theory import INFLATION, FittedBounds, ValueErrors, mean_errors
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import error_bars, few_decades, ink, legend_line, legend_with, markers, sequence
from lib.statistics import comparison_quantile


def numbers(measured: Mapping[float, PairedErrors], exact: ValueErrors, bounds: FittedBounds) -> Numbers:
    """Both errors beside the exact one of ∇_V and the bounds, which hold where they were not fitted."""
    claims = (_value_claim(measured, exact), *(_bound_claim(name, bounds, measured) for name in bounds.shapes))
    return Numbers(_table(measured, exact, bounds), claims)


def _table(measured: Mapping[float, PairedErrors], exact: ValueErrors, bounds: FittedBounds) -> Table:
    """Errors of both gradients against length by σ: simulated, exact for ∇_V, and the form of the bound."""
    frames = []
    for sigma, errors in measured.items():
        for name, bound in bounds.shapes.items():
            curve = errors.curve(name)
            base = {"gradient": SYMBOL[name], "sigma": sigma, "length": curve.lengths}
            known = exact.right[sigma] if name == VALUE else np.nan
            simulated = {"error": curve.mean, "std_error": curve.std_error}
            shape = {"bound": bound(sigma, curve.lengths), "fitted": curve.lengths <= bounds.fitted_up_to}
            frames.append(pd.DataFrame({**base, **simulated, "exact": known, **shape}))
    columns = {
        "gradient": Column("The gradient with respect to V or to U", "name"),
        "sigma": Column("Token scale σ"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "error": Column("Mean squared Hilbert–Schmidt norm of the gradient's error, in L²(ν)", std_error="std_error"),
        "std_error": Column("Standard error of the simulated mean", moves_with="error"),
        "exact": Column("What the error is by quadrature, for ∇_V"),
        "bound": Column("c₁ σ^p (ln L)^q / L^(c₂/σ²), p, q = 6, 1 for ∇_V and 12, 2 for ∇_U", moves_with="error"),
        "fitted": Column("Whether the constants of the bound were fitted to the error here"),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _value_claim(measured: Mapping[float, PairedErrors], exact: ValueErrors) -> Claim:
    """The simulated error of ∇_V against the exact one, worst over σ and L."""

    def worst(expected):
        return max(errors.curve(VALUE).deviations(expected[sigma]).max() for sigma, errors in measured.items())

    comparisons = mean_errors(measured, VALUE).size
    return Claim(
        id="gradient-concentration-value",
        statement=(
            f"At {comparisons} pairs of a token scale and a prompt length, the simulated error of ∇_V is the number of "
            "outputs times the exact error of the output: the worst deviation, in standard errors."
        ),
        source="derived here",
        box="gradient-gaps",
        measured=worst(exact.right),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        relation="≤",
        alternative=Alternative(f"query sizes τ were {INFLATION - 1:.0%} larger", worst(exact.wrong)),
    )


def _bound_claim(name: str, bounds: FittedBounds, measured: Mapping[float, PairedErrors]) -> Claim:
    """Simulated errors over the bound whose constants were fitted to the shorter half of the lengths."""
    lengths, errors, bound = next(iter(measured.values())).lengths, mean_errors(measured, name), bounds.shapes[name]
    tried = np.asarray(lengths) > bounds.fitted_up_to
    shape = bound(np.asarray(list(measured))[:, None], np.asarray(lengths)[tried])
    ratio, frozen = float(np.max(errors[:, tried] / shape)), float(np.max(errors[:, :1] / shape))
    return Claim(
        id=f"gradient-concentration-bound-{name}",
        statement=(
            f"With constants fitted up to L = {bounds.fitted_up_to}, c₁ σ^{bound.sigma_power} (ln L)^{bound.log_power}"
            f" / L^(c₂/σ²) bounds the simulated error of {SYMBOL[name]} for all σ up to L = {lengths[-1]}: the largest "
            "ratio of error to bound on the longer half."
        ),
        source="[BB26, Prop. 3.4]",
        box="bb26-prop-3-4",
        measured=ratio,
        expected=1.0,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative(f"errors stayed what they are at L = {lengths[0]}", frozen),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a gradient: simulated and exact errors, and the bound."""
    sigmas = sorted(table["sigma"].unique())
    figure, panels = plt.subplots(1, 2, figsize=SIZE, sharex=True, sharey=True)
    for panel, gradient in zip(panels, SYMBOL.values(), strict=True):
        part = table[table["gradient"] == gradient]
        for sigma, colour, marker in zip(sigmas, sequence(len(sigmas)), markers(len(sigmas)), strict=True):
            mine = part[part["sigma"] == sigma]
            panel.plot(mine["length"], mine["exact"], color=colour, linewidth=2)
            panel.plot(mine["length"], mine["bound"], color=colour, linewidth=1.4, linestyle="--")
            look = {"color": colour, "marker": marker, "label": rf"$\sigma={sigma:g}$"}
            error_bars(panel, mine["length"], mine["error"], mine["std_error"], **look)
        between = part[part["fitted"]]["length"].max() * part[~part["fitted"]]["length"].min()
        panel.axvline(between**0.5, color=ink(), linestyle=":", linewidth=1.5)
        panel.set(xscale="log", yscale="log", xlabel="prompt length $L$", title=rf"$\nabla_{gradient[-1]}$")
        few_decades(panel)
    panels[0].set_ylabel("mean squared error of the gradient")
    lines = {"exact": legend_line("-"), "form of the bound,\nconstants fitted": legend_line("--", 1.4)}
    legend_with(panels[1], lines, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
