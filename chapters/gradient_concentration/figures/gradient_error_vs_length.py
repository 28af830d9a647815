r"""Errors of the two gradients against the length of the prompt, for Gaussian tokens of growing scale $\sigma$.

Mean squared Hilbert–Schmidt norm of the gradient at a finite prompt minus that at its law, over prompts and
queries. Points: simulated, with two standard errors. Solid (left): exact. Dashed: the form of the bound,
$c_1\sigma^6\ln L/L^{c_2/\sigma^2}$ for $\nabla_V$, $c_1\sigma^{12}(\ln L)^2/L^{c_2/\sigma^2}$ for $\nabla_U$. The
paper does not give the constants; one pair for each gradient was chosen here, the least that bounds all points.
The two panels share their axes: $\nabla_U$ errs more, and falls later; its bound lies further above.

Alt: Two log-log panels of error against prompt length with common axes, a series of points for each scale. Left, points
lie on solid falling curves, steepest for the smallest scale. Right, the points lie higher, most of all for large
scales, and fall more slowly. Dashed curves run above the points: the lowest touches them, those of larger scales lie
powers of ten above, more so on the right.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.gradient_concentration.gradient_errors import VALUE, PairedErrors
from chapters.gradient_concentration.style import SIZE, SYMBOL
from chapters.gradient_concentration.theory import (
    OWN_POWERS,
    LooseBound,
    SingleTokens,
    ValueErrors,
    mean_errors,
)
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import (
    error_bars,
    few_decades,
    headline,
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
    """Both errors beside the exact one of ∇_V, and how far above them the tightest bounds lie; one token alone."""
    loose = (_bound_claim(name, bound, measured) for name, bound in bounds.items())
    claims = (_value_claim(measured, exact), *loose, _least_claim(bounds), _single_claim(single))
    return Numbers(_table(measured, exact, bounds), claims)


def _table(measured: Mapping[float, PairedErrors], exact: ValueErrors, bounds: Mapping[str, LooseBound]) -> Table:
    """Errors of both gradients against length by σ: simulated, exact for ∇_V, and the form of the bound."""
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
        "gradient": Column("The gradient with respect to V or to U", "name"),
        "sigma": Column("Token scale σ"),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "error": Column("Mean squared Hilbert–Schmidt norm of the gradient's error, in L²(ν)", std_error="std_error"),
        "std_error": Column("Standard error of the simulated mean", moves_with="error"),
        "exact": Column("What the error is by quadrature, for ∇_V"),
        "bound": Column(
            "c₁ σ^p (ln L)^q / L^(c₂/σ²), p, q = 6, 1 for ∇_V and 12, 2 for ∇_U; least pair that bounds all",
            moves_with="error",
        ),
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
        alternative=Alternative("all queries had the root mean square length √d", worst(exact.wrong)),
    )


def _bound_claim(name: str, bound: LooseBound, measured: Mapping[float, PairedErrors]) -> Claim:
    """How far above the simulated errors the tightest bound of the form stands, and the tokens' own law."""
    lengths, shape = next(iter(measured.values())).lengths, bound.shape
    power, log_power = OWN_POWERS[name]
    return Claim(
        id=f"gradient-concentration-bound-{name}",
        statement=(
            f"With the least admissible constants c₁ σ^{shape.sigma_power} (ln L)^{shape.log_power} / L^(c₂/σ²) lies "
            f"more than three powers of ten above the simulated error of {SYMBOL[name]} somewhere between "
            f"L = {lengths[0]} and {lengths[-1]}: how many, at most (c₂ the slowest decay among the scales, c₁ the "
            "least that bounds all errors)."
        ),
        source="[BB26, Prop. 3.4]",
        box="bb26-prop-3-4",
        measured=bound.looseness,
        expected=3.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative(
            f"the form were c₁ σ^{power} (ln L)^{log_power} / L^β(H), the tokens' own powers", bound.own_looseness
        ),
    )


def _least_claim(bounds: Mapping[str, LooseBound]) -> Claim:
    """What no constants do better, at the gradient where they come closest."""
    return Claim(
        id="gradient-concentration-bound-least",
        statement=(
            "No constants bring either bound within two powers of ten of the simulated errors at all σ and lengths: "
            "the powers of ten that the best pair leaves, at the gradient where it leaves fewer."
        ),
        source="[BB26, Prop. 3.4]",
        box="bb26-prop-3-4",
        measured=min(bound.least_looseness for bound in bounds.values()),
        expected=2.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative(
            "the forms had the tokens' own powers of σ and of ln L, and the exponent of outputs",
            min(bound.own_looseness for bound in bounds.values()),
        ),
    )


def _single_claim(single: SingleTokens) -> Claim:
    """Both errors of prompts of one token, worst over gradients and σ."""

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
            "A prompt of one token misses the gradients of its law by mean squares of d²σ²(1 + H²) for ∇_V and d²σ⁴ "
            "for ∇_U, where both bounds, with ln 1 = 0, are 0: the worst deviation of "
            f"{comparisons} simulated errors, in standard errors."
        ),
        source="[BB26, Prop. 3.4]",
        box="one-token-gradients",
        measured=worst(lambda sigma, name: single.exact[sigma][name]),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        relation="≤",
        alternative=Alternative("the bounds held for one token", worst(lambda sigma, name: 0.0)),
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
            error_bars(panel, mine["length"], mine["error"], mine["std_error"], color=colour, marker=marker)
            if panel is panels[1]:
                label(panel, mine["length"].iloc[-1], mine["error"].iloc[-1], rf"$\sigma={sigma:g}$", colour)
                label(panel, mine["length"].iloc[-1], mine["bound"].iloc[-1], "its bound", colour)
        panel.set(xscale="log", yscale="log", xlabel="prompt length $L$")
        panel.set_title(rf"gradient in ${gradient[-1]}$")
        few_decades(panel)
    panels[0].set_ylabel("mean squared error of the gradient")
    lines = {"form of the bound, least constants": legend_line("--", 1.4), "exact": legend_line("-")}
    legend_with(panels[0], {**lines, "simulated": legend_point()}, loc="upper left")
    headline(figure, "Gradients concentrate, for large scales far below the form of the bound")
    return figure
