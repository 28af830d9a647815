r"""Both gradients converge as the prompt grows; for large token scales the bounds are far above the errors.

The vertical axis is the mean squared Hilbert–Schmidt norm of the error of the gradient, over prompts and queries, for
Gaussian tokens of scale $\sigma$. Points are simulated, with two standard errors; solid curves (left) are exact. Dashed
curves have the form of the bound: $c_1\sigma^6\ln L/L^{c_2/\sigma^2}$ for $\nabla_V$ and $c_1\sigma^{12}(\ln
L)^2/L^{c_2/\sigma^2}$ for $\nabla_U$. The constants are not known; the figure uses one pair per gradient, the
slowest decay rate among the scales and the smallest $c_1$ that bounds all points. The panels have the same axes: the
error of $\nabla_U$ is larger on average and falls more slowly, and its bound is further above.

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
    mean_errors,
)
from chapters.concentration.style import SYMBOL
from companion import Alternative, Claim, Column, Numbers, Table, WithheldClaim
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
from lib.statistics import comparison_quantile


def numbers(
    measured: Mapping[float, PairedErrors],
    exact: ValueErrors,
    bounds: Mapping[str, LooseBound],
    single: SingleTokens,
) -> Numbers:
    """Return both errors with the exact one of ∇_V, and the claims on the bounds and on prompts of one token."""
    loose = (_bound_claim(name, bound, measured) for name, bound in bounds.items())
    claims = (_value_claim(measured, exact), *loose, _least_claim(bounds), _single_claim(single))
    return Numbers(_table(measured, exact, bounds), claims)


def _table(measured: Mapping[float, PairedErrors], exact: ValueErrors, bounds: Mapping[str, LooseBound]) -> Table:
    """Return the table of errors by σ and length: simulated, exact for ∇_V, and the form of the bound."""
    frames = []
    for sigma, errors in measured.items():
        for name, bound in bounds.items():
            curve = errors.curve(name)
            base = {"gradient": SYMBOL[name], "sigma": sigma, "length": curve.lengths}
            known = exact.right[sigma] if name == VALUE else np.nan
            simulated = {"error": curve.mean, "std_error": curve.std_error}
            shape = bound.shape(sigma, curve.lengths)
            frames.append(pd.DataFrame({**base, **simulated, "exact": known, "bound": shape}))
    columns = {
        "gradient": Column("The gradient with respect to $V$ or to $U$", "name"),
        "sigma": Column("Token scale $σ$"),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "error": Column("Mean squared Hilbert–Schmidt norm of the gradient's error, in $L²(ν)$", std_error="std_error"),
        "std_error": Column("Standard error of the simulated mean", moves_with="error"),
        "exact": Column("Exact error by quadrature, for $∇_V$"),
        "bound": Column(
            "$c₁ σ^p (ln L)^q / L^{c₂/σ²}$, $(p, q) = (6, 1)$ for $∇_V$ and $(12, 2)$ for $∇_U$; constants as in the "
            "caption",
            moves_with="error",
        ),
    }
    return Table(pd.concat(frames, ignore_index=True), columns)


def _value_claim(measured: Mapping[float, PairedErrors], exact: ValueErrors) -> Claim:
    """Claim that the simulated error of ∇_V agrees with the exact one."""

    def worst(expected):
        return max(errors.curve(VALUE).deviations(expected[sigma]).max() for sigma, errors in measured.items())

    comparisons = mean_errors(measured, VALUE).size
    return Claim(
        id="gradient-concentration-value",
        statement=(
            f"At {comparisons} pairs of a token scale and a prompt length, the simulated error of $∇_V$ agrees "
            "with the number of outputs times the exact error of the output (measured: the largest deviation in "
            "standard errors)."
        ),
        source="derived here",
        box="gradient-gaps",
        measured=worst(exact.right),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        comparisons=comparisons,
        reason=f"99.9 % quantile of the largest of {comparisons} standard normal deviations",
        relation="≤",
        alternative=Alternative("all queries have the root mean square length $√d$", worst(exact.wrong)),
    )


def _if_wide(claim: Claim, bound: LooseBound) -> Claim | WithheldClaim:
    """Return a claim on the distance of a bound, withheld where that distance is not known."""
    if bound.is_wide:
        return claim
    return claim.withheld(
        "how far a bound is above all errors depends on their range; it is known for `scales` from at most "
        f"{SCALES_FROM[0]:g} to at least {SCALES_FROM[1]:g}, `gradient_lengths` from at most {LENGTHS_FROM[0]} to at "
        f"least {LENGTHS_FROM[1]}, and a `gain` of at most {LARGEST_GAIN:g}"
    )


def _bound_claim(name: str, bound: LooseBound, measured: Mapping[float, PairedErrors]) -> Claim | WithheldClaim:
    """Claim that the bound with the smallest constants is far above the simulated errors somewhere."""
    lengths, shape = next(iter(measured.values())).lengths, bound.shape
    power, log_power = OWN_POWERS[name]
    claim = Claim(
        id=f"gradient-concentration-bound-{name}",
        statement=(
            f"With the smallest admissible constants, $c₁ σ^{{{shape.sigma_power}}} (ln L)^{{{shape.log_power}}} "
            f"/ L^{{c₂/σ²}}$ is more than three powers of ten above the simulated error of {SYMBOL[name]} "
            f"somewhere between $L = {lengths[0]}$ and {lengths[-1]:,} ($c₂$: the slowest decay among the scales, "
            "$c₁$: the smallest constant that bounds all errors; measured: the largest number of powers of ten)."
        ),
        source="[BB26, Prop. 3.4]",
        box="bb26-prop-3-4",
        measured=bound.looseness,
        expected=3.0,
        tolerance=0.0,
        reason="a bound that is a thousand times too large somewhere does not tell the size of the error",
        relation="≥",
        alternative=Alternative(
            (
                f"the form is $c₁ σ^{{{power}}} (ln L)^{{{log_power}}} / L^{{β(H)}}$, with the powers of a mean or "
                "covariance of tokens"
            ),
            bound.own_looseness,
        ),
    )
    return _if_wide(claim, bound)


def _least_claim(bounds: Mapping[str, LooseBound]) -> Claim | WithheldClaim:
    """Claim that no constants bring the bound near the errors, at the gradient where they come closest."""
    claim = Claim(
        id="gradient-concentration-bound-least",
        statement=(
            "No constants bring either bound within two powers of ten of the simulated errors at all $σ$ and "
            "lengths (measured: the powers of ten for the best pair, at the gradient with the smaller number)."
        ),
        source="[BB26, Prop. 3.4]",
        box="bb26-prop-3-4",
        measured=min(bound.least_looseness for bound in bounds.values()),
        expected=2.0,
        tolerance=0.0,
        reason="a bound that is a hundred times too large somewhere does not tell the size of the error",
        relation="≥",
        alternative=Alternative(
            (
                "the forms have the powers of $σ$ and $ln L$ of a mean and a covariance of tokens, and the exponent "
                "of outputs"
            ),
            min(bound.own_looseness for bound in bounds.values()),
        ),
    )
    return _if_wide(claim, bounds[VALUE])


def _single_claim(single: SingleTokens) -> Claim:
    """Claim that both errors of prompts of one token are the exact ones."""

    def worst(expected):
        return max(
            float(errors.curve(name).deviations(np.asarray([expected(sigma, name)]))[0])
            for sigma, errors in single.measured.items()
            for name in SYMBOL
        )

    comparisons = len(SYMBOL) * len(single.measured)
    return Claim(
        id="gradient-concentration-single-token",
        statement=(
            "The mean squared errors of the gradients of a prompt of one token are $d²σ²(1 + H²)$ for $∇_V$ and "
            "$d²σ⁴$ for $∇_U$, where both bounds are 0 because $ln 1 = 0$ (measured: the largest deviation of "
            f"{comparisons} simulated errors in standard errors)."
        ),
        source="[BB26, Prop. 3.4]",
        box="one-token-gradients",
        measured=worst(lambda sigma, name: single.exact[sigma][name]),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        comparisons=comparisons,
        reason=f"99.9 % quantile of the largest of {comparisons} standard normal deviations",
        relation="≤",
        alternative=Alternative("the bounds also hold for one token", worst(lambda sigma, name: 0.0)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per gradient: simulated and exact errors, and the bound."""
    sigmas = sorted(table["sigma"].unique())
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.6), sharex=True, sharey=True)
    for panel, gradient in zip(panels, SYMBOL.values(), strict=True):
        part = table[table["gradient"] == gradient]
        for sigma, colour, marker in zip(sigmas, sequence(len(sigmas)), markers(len(sigmas)), strict=True):
            rows = part[part["sigma"] == sigma]
            panel.plot(rows["length"], rows["exact"], color=colour, linewidth=2)
            panel.plot(rows["length"], rows["bound"], color=colour, linewidth=1.4, linestyle="--")
            error_bars(panel, rows["length"], rows["error"], rows["std_error"], color=colour, marker=marker)
            if panel is panels[1]:
                label(panel, rows["length"].iloc[-1], rows["error"].iloc[-1], rf"$\sigma={sigma:g}$", colour)
                label(panel, rows["length"].iloc[-1], rows["bound"].iloc[-1], rf"bound, $\sigma={sigma:g}$", colour)
            if sigma == sigmas[-1]:
                panel.fill_between(rows["length"], rows["error"], rows["bound"], color=colour, alpha=0.1, linewidth=0)
                middle = rows.iloc[len(rows) // 2]
                excess = np.log10(middle["bound"] / middle["error"])
                place = middle["length"], np.sqrt(middle["bound"] * middle["error"])
                background = {"facecolor": panel.get_facecolor(), "edgecolor": "none", "pad": 2, "alpha": 0.85}
                words = {"xytext": (0, 0), "ha": "center", "fontsize": 12, "bbox": background, "zorder": 5}
                label(panel, *place, f"bound $10^{{{excess:.0f}}}$ times\ntoo high", colour, **words)
        panel.set(xscale="log", yscale="log", xlabel="prompt length $L$")
        panel.set_title(rf"gradient in ${gradient[-1]}$")
        few_decades(panel)
    panels[0].set_ylabel("mean squared error of the gradient")
    lines = {"form of the bound, least constants": legend_line("--", 1.4), "exact": legend_line("-")}
    legend_with(panels[0], {**lines, "simulated": legend_point()}, loc="upper left")
    return figure
