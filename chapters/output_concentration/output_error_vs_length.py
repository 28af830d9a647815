r"""Error of the output against the length of the prompt, for Gaussian tokens of growing scale $\sigma$.

Mean square of $T[\hat\mu_L]-T[\mu]$ over prompts and queries. Points: simulated prompts, with two standard errors.
Solid: exact, from the integrals $P$ and $Q$. Dashed: the form $c_1\sigma^6\ln L/L^{c_2/\sigma^2}$ of the bound.
The paper does not give its constants; one pair of them was fitted here to the solid curves left of the dotted
line, and serves all $\sigma$. Dash-dotted: slope $-1$. The larger the scale, the slower the decay, in the error as
in the bound; the powers of $\sigma$ make the bound generous.

Alt: Log-log plot of error against prompt length from two to ten to the twelve. Solid curves fall, the lowest with
slope minus one and the highest barely; points lie on them where prompts are short. Dashed curves of the same colours
run above them, further above for larger scales. A dotted vertical line stands at a million.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.output_concentration.anatomy import Parts
from chapters.output_concentration.error_curves import as_columns
from chapters.output_concentration.exact_error import LONGEST, SPLIT, ErrorsByScale, ExactError
from chapters.output_concentration.marks import coloured, length_axes
from chapters.output_concentration.scene import DIMENSION
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import error_bars, ink, legend_line, legend_with
from lib.concentration import BoundShape, ErrorCurve
from lib.statistics import comparison_quantile

# The wrong theory that the exact curve must be told from: query sizes τ this much too large.
INFLATION = 1.05


def numbers(
    parts: Mapping[float, Parts], exact_error: ExactError, exact: ErrorsByScale, bound: BoundShape, gain: float
) -> Numbers:
    """Exact and simulated errors and the form of the bound; the first two agree, and the third holds where untried."""
    curves = {sigma: these.error for sigma, these in parts.items()}
    claims = (_exact_claim(curves, exact_error, gain), _bound_claim(bound, exact))
    return Numbers(_table(curves, exact, bound), claims)


def _table(curves: Mapping[float, ErrorCurve], exact: ErrorsByScale, bound: BoundShape) -> Table:
    """Error against length by σ: exact, simulated, and the form of the bound."""
    dense = exact.lengths
    frames = []
    for (sigma, curve), values in zip(curves.items(), exact.errors, strict=True):
        shape = pd.DataFrame({"sigma": sigma, "length": dense, "error": bound(sigma, dense)})
        frames += [
            pd.DataFrame({"sigma": sigma, "kind": "exact", "length": dense, "error": values}),
            shape.assign(kind=np.where(dense <= SPLIT, "fitted", "bound")),
            pd.DataFrame({"sigma": sigma, "kind": "prompts", **as_columns(curve)}),
        ]
    columns = {
        "sigma": Column("Token scale σ"),
        "kind": Column(
            "`exact`: by quadrature; `prompts`: simulated; `fitted`, `bound`: c₁ σ⁶ ln L / L^(c₂/σ²), where its two "
            "constants were fitted to the exact values, and beyond",
            "name",
        ),
        "length": Column("Tokens in the prompt, L", "tokens"),
        "error": Column("Mean squared error of the output, E ‖T[μ̂_L] - T[μ]‖² in L²(ν)", std_error="std_error"),
        "std_error": Column("Standard error of the simulated mean", moves_with="error"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _exact_claim(curves: Mapping[float, ErrorCurve], exact_error: ExactError, gain: float) -> Claim:
    """Simulated against exact error, worst over σ and L."""

    def worst(inflation):
        return max(
            curve.deviations(sigma**2 * exact_error(inflation * gain * sigma, DIMENSION, curve.lengths)).max()
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
        measured=worst(1.0),
        expected=0.0,
        tolerance=comparison_quantile(comparisons),
        relation="≤",
        alternative=Alternative(f"query sizes τ were {INFLATION - 1:.0%} larger", worst(INFLATION)),
    )


def _bound_claim(bound: BoundShape, exact: ErrorsByScale) -> Claim:
    """The exact errors over the bound whose constants were fitted to shorter prompts."""
    untried = exact.lengths > SPLIT
    sigmas, lengths, errors = np.asarray(exact.scales), exact.lengths[untried], exact.errors[:, untried]
    ratio, blind = (
        float(np.max(errors / shape))
        for shape in (bound(sigmas[:, None], lengths), sigmas[:, None] ** 6 * bound(1.0, lengths))
    )
    return Claim(
        id="output-concentration-bound",
        statement=(
            f"With constants fitted up to L = 10^{np.log10(SPLIT):.0f}, c₁σ⁶ ln L / L^(c₂/σ²) bounds the exact error "
            f"for all σ up to L = 10^{np.log10(LONGEST):.0f}: the largest ratio of error to bound on the longer half."
        ),
        source="[BB26, Prop. 3.1]",
        box="bb26-prop-3-1",
        measured=ratio,
        expected=1.0,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("the rate were L^-c₂ at every σ", blind),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Exact curves with points on them, the bound above, and where its constants were fitted."""
    sigmas = sorted(table["sigma"].unique())
    figure, axes = plt.subplots(figsize=(8.0, 5.2))
    for sigma, colour, marker in coloured(sigmas):
        mine = table[table["sigma"] == sigma]
        exact, prompts = (mine[mine["kind"] == kind] for kind in ("exact", "prompts"))
        bound = mine[mine["kind"].isin(["fitted", "bound"])]
        axes.plot(exact["length"], exact["error"], color=colour, linewidth=2)
        axes.plot(bound["length"], bound["error"], color=colour, linewidth=1.4, linestyle="--")
        look = {"color": colour, "marker": marker, "label": rf"$\sigma={sigma:g}$"}
        error_bars(axes, prompts["length"], prompts["error"], prompts["std_error"], **look)
    exact = table[table["kind"] == "exact"]
    least = exact[exact["sigma"] == sigmas[0]]
    middle, low = table[table["kind"] == "fitted"]["length"].max(), least["error"].iloc[-1]
    axes.axvline(middle, color=ink(), linestyle=":", linewidth=1.5)
    axes.annotate("fitted left of here", (middle, low), (-6, 2), textcoords="offset points", ha="right")
    length_axes(axes, exact, least)
    axes.set_ylabel("mean squared error of the output")
    lines = {"exact": legend_line("-"), "form of the bound,\nconstants fitted": legend_line("--", 1.4)}
    lines[r"slope $-1$"] = legend_line("-.", 1.2)
    legend_with(axes, lines, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
