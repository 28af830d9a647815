r"""Error of the output against the length of the prompt, for Gaussian tokens of growing scale $\sigma$.

Mean square of $T[\hat\mu_L]-T[\mu]$ over prompts and queries. Points: simulated prompts, with two standard errors.
Solid: exact, from the integrals $P$ and $Q$. Dashed: the form $c_1\sigma^6\ln L/L^{c_2/\sigma^2}$ of the bound.
The paper does not give its constants; drawn is the one pair that bounds all solid curves most tightly.
Dash-dotted: slope $-1$. The larger the scale, the slower the decay, in the error as in the bound; but at
the larger scales no constants bring the bound near the error, and it rises with $L$ before it falls.

Alt: Log-log plot of error against prompt length from two to ten to the twelve. Solid curves fall, the lowest with
slope minus one and the highest barely; points lie on them where prompts are short. Dashed curves of the same colours
run above them: the lowest touches its solid curve, the highest lies many powers of ten above, rises at
first and is nearly flat then.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.output_concentration.error_curves import as_columns
from chapters.output_concentration.exact_error import LONGEST, SHORTEST, ErrorsByScale, ExactError, at_one_size
from chapters.output_concentration.experiment import DIMENSION
from chapters.output_concentration.proof_quantities import Parts
from chapters.output_concentration.style import coloured, length_axes
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, headline, label, legend_line, legend_point, legend_with
from lib.concentration import BoundShape, ErrorCurve, looseness
from lib.finite_prompt import rate_exponent
from lib.statistics import comparison_quantile


def numbers(
    parts: Mapping[float, Parts], exact_error: ExactError, exact: ErrorsByScale, bound: BoundShape, gain: float
) -> Numbers:
    """Exact and simulated errors, which agree, and how far above them the tightest bound of the paper's form lies."""
    curves = {sigma: these.error for sigma, these in parts.items()}
    claims = (_exact_claim(curves, exact_error, gain), _bound_claim(bound, exact))
    return Numbers(_table(curves, exact, bound), claims)


def _table(curves: Mapping[float, ErrorCurve], exact: ErrorsByScale, bound: BoundShape) -> Table:
    """Error against length by σ: exact, simulated, and the form of the bound."""
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
        "sigma": Column("Token scale σ"),
        "kind": Column(
            "`exact`: by quadrature; `prompts`: simulated; `bound`: c₁ σ⁶ ln L / L^(c₂/σ²), with the pair of constants "
            "that bounds all exact values most tightly",
            "name",
        ),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "error": Column("Mean squared error of the output, E ‖T[μ̂_L] - T[μ]‖² in L²(ν)", std_error="std_error"),
        "std_error": Column("Standard error of the simulated mean", moves_with="error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _exact_claim(curves: Mapping[float, ErrorCurve], exact_error: ExactError, gain: float) -> Claim:
    """Simulated against exact error, worst over σ and L."""

    def worst(error):
        return max(
            curve.deviations(sigma**2 * error(gain * sigma, DIMENSION, curve.lengths)).max()
            for sigma, curve in curves.items()
        )

    comparisons = sum(curve.lengths.size for curve in curves.values())
    return Claim(
        id="output-concentration-exact",
        statement=(
            f"At {comparisons} pairs of a token scale and a prompt length, the error of simulated Gaussian prompts in "
            "L²(ν) is the exact one: the worst deviation, in standard errors."
        ),
        source="derived here",
        box="isotropic-error",
        measured=worst(exact_error),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        relation="≤",
        alternative=Alternative("all queries had the root mean square length √d", worst(at_one_size)),
    )


def _bound_claim(bound: BoundShape, exact: ErrorsByScale) -> Claim:
    """How far above the exact errors the tightest bound of the form stands, and the sharp law in its place."""
    sigmas, lengths = np.asarray(exact.scales)[:, None], exact.lengths
    sharp = sigmas**2 * lengths ** -np.asarray(rate_exponent(exact.gain * sigmas))
    return Claim(
        id="output-concentration-bound",
        statement=(
            "No constants bring c₁σ⁶ ln L / L^(c₂/σ²) within three powers of ten of the exact error at all σ and all "
            f"L from {SHORTEST} to 10^{np.log10(LONGEST):.0f}: the powers of ten by which the tightest pair that "
            "bounds it lies above it, where it does most."
        ),
        source="[BB26, Prop. 3.1]",
        box="bb26-prop-3-1",
        measured=looseness(bound(sigmas, lengths), exact.errors),
        expected=3.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative(
            "the form were c₁σ²/L^β(H), the tokens' own scale and the exponent of each curve",
            looseness(np.max(exact.errors / sharp) * sharp, exact.errors),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Exact curves with points on them, and the tightest bound of the paper's form above."""
    sigmas = sorted(table["sigma"].unique())
    figure, axes = plt.subplots(figsize=(8.0, 5.2))
    for sigma, colour, marker in coloured(sigmas):
        mine = table[table["sigma"] == sigma]
        exact, prompts, bound = (mine[mine["kind"] == kind] for kind in ("exact", "prompts", "bound"))
        axes.plot(exact["length"], exact["error"], color=colour, linewidth=2)
        axes.plot(bound["length"], bound["error"], color=colour, linewidth=1.4, linestyle="--")
        error_bars(axes, prompts["length"], prompts["error"], prompts["std_error"], color=colour, marker=marker)
        apart = bound["error"].iloc[-1] > 10 * exact["error"].iloc[-1]
        for curve, name in ((exact, rf"$\sigma={sigma:g}$"), (bound, "its bound" if apart else "")):
            label(axes, curve["length"].iloc[-1], curve["error"].iloc[-1], name, colour)
    exact = table[table["kind"] == "exact"]
    length_axes(axes, exact, exact[exact["sigma"] == sigmas[0]])
    axes.set_ylabel("mean squared error of the output")
    lines = {"form of the bound, tightest constants": legend_line("--", 1.4), "exact": legend_line("-")}
    legend_with(axes, {**lines, "simulated": legend_point(), r"slope $-1$": legend_line("-.", 1.2)}, loc="lower left")
    headline(figure, "Larger tokens: slower decay, and far below the form of the bound")
    return figure
