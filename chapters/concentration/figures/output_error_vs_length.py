r"""For larger tokens the error decreases more slowly with the length, and it is far below the form of the bound.

The vertical axis is the mean square of $T[\hat\mu_L]-T[\mu]$ over prompts and queries, for Gaussian tokens of scale
$\sigma$. Points are simulated, with two standard errors; solid curves are exact, from the integrals $P$ and $Q$. Dashed
curves have the form $c_1\sigma^6\ln L/L^{c_2/\sigma^2}$ of the bound. The constants are not known; the figure
uses the pair that bounds all solid curves most tightly. The dash-dotted line has slope $-1$. No pair of constants
brings the bound near the error at all scales, and at larger ones the bound rises with $L$ before it falls. The grey
tick on the axis is the longest prompt of {doc}`real_heads`.

Alt: Log-log plot of error against prompt length from two to ten to the twelve. Solid curves fall, the lowest with
slope minus one and the highest barely; points are on them where prompts are short. Dashed curves of the same colours
run above them: the lowest touches its solid curve, the highest is many powers of ten above, rises at
first and is nearly flat then.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from chapters.concentration.bounds import BoundShape, looseness
from chapters.concentration.error_curves import as_columns
from chapters.concentration.exact_error import LONGEST, SHORTEST, ErrorsByScale, ExactError, errors_at_one_size
from chapters.concentration.experiment import DIMENSION
from chapters.concentration.gradient_theory import SCALES_FROM, covers
from chapters.concentration.proof_quantities import SimulatedProof
from chapters.concentration.style import coloured, length_axes
from chapters.style import mark_real_prompt
from companion import Alternative, Claim, Column, Numbers, Table, WithheldClaim
from companion.figures.style import WIDE, error_bars, label, legend_line, legend_point, legend_with
from lib.concentration import ErrorCurve
from lib.finite_prompt import rate_exponent
from lib.statistics import comparison_quantile, tells_apart


def numbers(
    proofs: Mapping[float, SimulatedProof],
    exact_error: ExactError,
    exact: ErrorsByScale,
    bound: BoundShape,
    gain: float,
) -> Numbers:
    """Return exact and simulated errors with the tightest bound, and the claims on both."""
    curves = {sigma: proof.error for sigma, proof in proofs.items()}
    claims = (_exact_claim(curves, exact_error, gain), _bound_claim(bound, exact))
    return Numbers(_table(curves, exact, bound), claims)


def _table(curves: Mapping[float, ErrorCurve], exact: ErrorsByScale, bound: BoundShape) -> Table:
    """Return the table of exact errors, simulated errors and the form of the bound, by σ and length."""
    dense = exact.lengths
    fine = np.geomspace(SHORTEST, LONGEST, 8 * (dense.size - 1) + 1)
    frames = []
    for (sigma, curve), values in zip(curves.items(), exact.errors, strict=True):
        shape = pd.DataFrame({"sigma": sigma, "length": fine, "error": bound(sigma, fine)})
        frames += [
            pd.DataFrame({"sigma": sigma, "kind": "exact", "length": dense, "error": values}),
            shape.assign(kind="bound"),
            pd.DataFrame({"sigma": sigma, "kind": "prompts", **as_columns(curve)}),
        ]
    columns = {
        "sigma": Column("Token scale $σ$"),
        "kind": Column(
            (
                "`exact`: by quadrature; `prompts`: simulated; `bound`: $c₁ σ⁶ ln L / L^{c₂/σ²}$, with the pair of "
                "constants that bounds all exact values most tightly"
            ),
            "name",
        ),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "error": Column("Mean squared error of the output, $𝔼 ‖T[μ̂_L] - T[μ]‖²$ in $L²(ν)$", std_error="std_error"),
        "std_error": Column("Standard error of the simulated mean", moves_with="error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _exact_claim(curves: Mapping[float, ErrorCurve], exact_error: ExactError, gain: float) -> Claim | WithheldClaim:
    """Claim that simulated and exact errors agree."""

    def worst(error):
        return max(
            curve.deviations(sigma**2 * error(gain * sigma, DIMENSION, curve.lengths)).max()
            for sigma, curve in curves.items()
        )

    comparisons = sum(curve.lengths.size for curve in curves.values())
    claim = Claim(
        id="output-concentration-exact",
        statement=(
            f"At {comparisons} pairs of a token scale and a prompt length, the error of simulated Gaussian "
            "prompts in $L²(ν)$ agrees with the exact one (measured: the largest deviation in standard errors)."
        ),
        source="derived here",
        box="isotropic-error",
        measured=worst(exact_error),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        reason=f"99.9 % quantile of the largest of {comparisons} standard normal deviations",
        comparisons=comparisons,
        relation="≤",
        alternative=Alternative("all queries have the root mean square length $√d$", worst(errors_at_one_size)),
    )
    for sigma, curve in curves.items():
        norm, lengths = gain * sigma, curve.lengths
        away = exact_error(norm, DIMENSION, lengths) - errors_at_one_size(norm, DIMENSION, lengths)
        if tells_apart(sigma**2 * away, curve.std_error, claim.tolerance):
            return claim
    return claim.withheld(
        "for scales this small the error hardly differs from that of queries of length $√d$: by less than twice "
        "the tolerance, so that the simulation cannot tell them apart"
    )


def _bound_claim(bound: BoundShape, exact: ErrorsByScale) -> Claim | WithheldClaim:
    """Claim that even the tightest bound of the form is far above the exact errors somewhere."""
    sigmas, lengths = np.asarray(exact.scales)[:, None], exact.lengths
    sharp = sigmas**2 * lengths ** -np.asarray(rate_exponent(exact.gain * sigmas))
    claim = Claim(
        id="output-concentration-bound",
        statement=(
            "No constants bring $c₁σ⁶ ln L / L^{c₂/σ²}$ within three powers of ten of the exact error at all $σ$ "
            f"and all $L$ from {SHORTEST} to $10^{{{np.log10(LONGEST):.0f}}}$ (measured: the largest logarithm "
            "to base ten of bound over error, for the pair of constants that minimises it)."
        ),
        source="[BB26, Prop. 3.1]",
        box="bb26-prop-3-1",
        measured=looseness(bound(sigmas, lengths), exact.errors),
        expected=3.0,
        tolerance=0.0,
        reason="a bound that is a thousand times too large somewhere does not tell the size of the error",
        relation="≥",
        alternative=Alternative(
            "the form is $c₁σ²/L^{β(H)}$, with the variance of the tokens and the exponent of each curve",
            looseness(np.max(exact.errors / sharp) * sharp, exact.errors),
        ),
    )
    if covers(sigmas, SCALES_FROM):
        return claim
    return claim.withheld(
        "how far a bound is above all errors depends on the scales; it is known for `scales` from at most "
        f"{SCALES_FROM[0]:g} to at least {SCALES_FROM[1]:g}"
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw exact curves, simulated points, and the tightest bound of the form."""
    sigmas = sorted(table["sigma"].unique())
    figure, axes = plt.subplots(figsize=(WIDE, 5.2))
    for sigma, colour, marker in coloured(sigmas):
        rows = table[table["sigma"] == sigma]
        exact, prompts, bound = (rows[rows["kind"] == kind] for kind in ("exact", "prompts", "bound"))
        axes.plot(exact["length"], exact["error"], color=colour, linewidth=2)
        axes.plot(bound["length"], bound["error"], color=colour, linewidth=1.4, linestyle="--")
        error_bars(axes, prompts["length"], prompts["error"], prompts["std_error"], color=colour, marker=marker)
        separate = bound["error"].iloc[-1] > 10 * exact["error"].iloc[-1]
        bound_name = rf"bound, $\sigma={sigma:g}$" if separate else ""
        for curve, name in ((exact, rf"$\sigma={sigma:g}$"), (bound, bound_name)):
            label(axes, curve["length"].iloc[-1], curve["error"].iloc[-1], name, colour)
        if sigma == sigmas[-1]:
            _gap(axes, exact, bound, colour)
    exact = table[table["kind"] == "exact"]
    length_axes(axes, exact, exact[exact["sigma"] == sigmas[0]])
    axes.set_ylabel("mean squared error of the output")
    lines = {"form of the bound, tightest constants": legend_line("--", 1.4), "exact": legend_line("-")}
    legend_with(axes, {**lines, "simulated": legend_point(), r"slope $-1$": legend_line("-.", 1.2)}, loc="lower left")
    mark_real_prompt(axes)
    return figure


def _gap(axes: Axes, exact: pd.DataFrame, bound: pd.DataFrame, colour: tuple) -> None:
    """Shade the gap between the exact error and its bound, and write by how much the bound is too high."""
    logs = np.interp(np.log(bound["length"]), np.log(exact["length"]), np.log(exact["error"]))
    axes.fill_between(bound["length"], np.exp(logs), bound["error"], color=colour, alpha=0.1, linewidth=0)
    middle = len(bound) // 2
    ratio = np.log10(bound["error"].iloc[middle]) - logs[middle] / np.log(10)
    place = bound["length"].iloc[middle], np.exp((np.log(bound["error"].iloc[middle]) + logs[middle]) / 2)
    background = {"facecolor": axes.get_facecolor(), "edgecolor": "none", "pad": 2, "alpha": 0.85}
    words = {"xytext": (0, -4), "ha": "center", "fontsize": 12, "bbox": background, "zorder": 5}
    label(axes, *place, f"the bound is $10^{{{ratio:.0f}}}$ times too high", colour, **words)
