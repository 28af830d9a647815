r"""Both gradients converge as the prompt grows; for large token scales the bounds are far above the errors.

The vertical axis is the mean squared Hilbert–Schmidt norm of the error, over prompts and queries, for Gaussian tokens
of scale $\sigma$; points have two standard errors. The bounds are $c_1\sigma^6\ln L/L^{c_2/\sigma^2}$ for $\nabla_V$
and $c_1\sigma^{12}(\ln L)^2/L^{c_2/\sigma^2}$ for $\nabla_U$, with one pair of constants per gradient: $c_2$ is the
smallest $\sigma^2$ times the slope of the errors, and $c_1$ the smallest constant that bounds all points.

Alt: Two log-log panels of error against prompt length with common axes, a series of points for each scale. Left, points
are on solid falling curves, steepest for the smallest scale. Right, the points are higher, most of all for large
scales, and fall more slowly. Dashed curves run above the points: the lowest touches them, those of larger scales are
powers of ten above, more so on the right.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.concentration.gradient_errors import VALUE, PairedErrors
from chapters.concentration.gradient_theory import (
    LARGEST_GAIN,
    LENGTHS_FROM,
    OWN_POWERS,
    SCALES_FROM,
    LooseBound,
    SingleTokens,
    ValueErrors,
)
from chapters.concentration.style import SYMBOL, show_gap
from chapters.style import coloured
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, error_bars, few_decades, label, legend_line, legend_point, legend_with


def numbers(
    measured: Mapping[float, PairedErrors], exact: ValueErrors, bounds: Mapping[str, LooseBound], single: SingleTokens
) -> Numbers:
    """Return both errors with the exact one of ∇_V, and the claims on the bounds and on prompts of one token."""
    groups = []
    for sigma, errors in measured.items():
        for name, bound in bounds.items():
            curve = errors.curve(name)
            base = {"gradient": SYMBOL[name], "sigma": sigma, "length": curve.lengths}
            simulated = {"error": curve.mean, "std_error": curve.std_error}
            known = exact.right[sigma] if name == VALUE else np.nan
            groups.append({**base, **simulated, "exact": known, "bound": bound.shape(sigma, curve.lengths)})
    columns = {
        "gradient": Column("The gradient with respect to $V$ or to $U$", "name"),
        "sigma": Column("Token scale $σ$"),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "error": Estimate(
            "Mean squared Hilbert–Schmidt norm of the gradient's error, in $L²(ν)$", std_error="std_error"
        ),
        "exact": Column("Exact error by quadrature, for $∇_V$"),
        "bound": Column(
            "$c₁ σ^p (ln L)^q / L^{c₂/σ²}$, $(p, q) = (6, 1)$ for $∇_V$ and $(12, 2)$ for $∇_U$; constants as in the "
            "caption",
            moves_with="error",
        ),
    }
    return Numbers(Table.of(groups, columns), _claims(measured, exact, bounds, single))


def _claims(
    measured: Mapping[float, PairedErrors], exact: ValueErrors, bounds: Mapping[str, LooseBound], single: SingleTokens
) -> Claims:
    claim = Claims("gradient-concentration", source="[BB26, Prop. 3.4]", box="bb26-prop-3-4")
    curves = {sigma: errors.curve(VALUE) for sigma, errors in measured.items()}
    lengths = next(iter(measured.values())).lengths
    claim.agree(
        "value",
        f"At {len(curves) * len(lengths)} pairs of a token scale and a prompt length, the simulated error of $∇_V$ "
        "agrees with the number of outputs times the exact error of the output",
        [curve.deviations(exact.right[sigma]) for sigma, curve in curves.items()],
        rejects=(
            "all queries have the root mean square length $√d$",
            [curve.deviations(exact.wrong[sigma]) for sigma, curve in curves.items()],
        ),
        source="derived here",
        box="gradient-gaps",
    )
    wide = (
        bounds[VALUE].is_wide,
        "how far a bound is above all errors depends on their range; it is known for `scales` from at most "
        f"{SCALES_FROM[0]:g} to at least {SCALES_FROM[1]:g}, `gradient_lengths` from at most {LENGTHS_FROM[0]} to at "
        f"least {LENGTHS_FROM[1]}, and a `gain` of at most {LARGEST_GAIN:g}",
    )
    for name, bound in bounds.items():
        power, log_power = OWN_POWERS[name]
        claim.at_least(
            f"bound-{name}",
            f"With the smallest admissible constants, $c₁ σ^{{{bound.shape.sigma_power}}} "
            f"(ln L)^{{{bound.shape.log_power}}} / L^{{c₂/σ²}}$ is more than three powers of ten above the simulated "
            f"error of {SYMBOL[name]} somewhere between $L = {lengths[0]}$ and {lengths[-1]:,} ($c₂$: the slowest "
            "decay among the scales, $c₁$: the smallest constant that bounds all errors; measured: the largest number "
            "of powers of ten).",
            bound.looseness,
            3,
            because="a bound that is a thousand times too large somewhere does not tell the size of the error",
            rejects=(
                f"the form is $c₁ σ^{{{power}}} (ln L)^{{{log_power}}} / L^{{β(H)}}$, with the powers of a mean or "
                "covariance of tokens",
                bound.own_looseness,
            ),
            requires=wide,
        )
    claim.at_least(
        "bound-least",
        "No constants bring either bound within two powers of ten of the simulated errors at all $σ$ and "
        "lengths (measured: the powers of ten for the best pair, at the gradient with the smaller number).",
        min(bound.least_looseness for bound in bounds.values()),
        2,
        because="a bound that is a hundred times too large somewhere does not tell the size of the error",
        rejects=(
            "the forms have the powers of $σ$ and $ln L$ of a mean and a covariance of tokens, and the exponent "
            "of outputs",
            min(bound.own_looseness for bound in bounds.values()),
        ),
        requires=wide,
    )
    alone = [
        (errors.curve(name), single.exact[sigma][name]) for sigma, errors in single.measured.items() for name in SYMBOL
    ]
    claim.agree(
        "single-token",
        "The mean squared errors of the gradients of a prompt of one token are $d²σ²(1 + H²)$ for $∇_V$ and "
        "$d²σ⁴$ for $∇_U$, where both bounds are 0 because $ln 1 = 0$: simulated errors agree with them",
        [curve.deviations(np.asarray([expected])) for curve, expected in alone],
        rejects=("the bounds also hold for one token", [curve.deviations(np.zeros(1)) for curve, _ in alone]),
        box="one-token-gradients",
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per gradient: simulated and exact errors, and the bound."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.8), sharex=True, sharey=True)
    for panel, gradient in zip(panels, SYMBOL.values(), strict=True):
        part = table[table["gradient"] == gradient]
        for (sigma, rows), colour, marker in coloured(part.groupby("sigma")):
            panel.plot(rows["length"], rows["exact"], color=colour, linewidth=2)
            panel.plot(rows["length"], rows["bound"], color=colour, linewidth=1.4, linestyle="--")
            error_bars(panel, rows["length"], rows["error"], rows["std_error"], color=colour, marker=marker)
            end, name = rows.iloc[-1], rf"$\sigma={sigma:g}$"
            label(panel, end["length"], end["error"], name, colour)
            if panel is panels[1]:
                label(panel, end["length"], end["bound"], f"bound, {name}", colour)
        lower = part[part["sigma"] < sigma].groupby("sigma")["bound"].median()
        show_gap(panel, rows, "{} times too high", colour, lower)
        panel.set(xscale="log", yscale="log", xlabel="prompt length $L$")
        few_decades(panel)
    panels[0].set(title="gradient in $V$, tokens of scale $\\sigma$", ylabel="mean squared error of the gradient")
    panels[1].set_title("gradient in $U$: larger, falls more slowly")
    lines = {"bound, form only:\nits constants are fitted": legend_line("--", 1.4), "exact": legend_line("-")}
    legend_with(panels[0], {**lines, "simulated": legend_point()}, loc="upper left")
    return figure
