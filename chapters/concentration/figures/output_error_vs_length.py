r"""For larger tokens the error decreases more slowly with the length, and it is far below the form of the bound.

The vertical axis is the mean square of $T[\hat\mu_L]-T[\mu]$ over prompts and queries, for Gaussian tokens of scale
$\sigma$; points have two standard errors. Dashed curves have the form $c_1\sigma^6\ln L/L^{c_2/\sigma^2}$ of the bound.
The constants are not known; the figure uses the pair that bounds all solid curves most tightly. At large scales the
bound rises with $L$ before it falls.

Alt: Log-log plot of error against prompt length from two to ten to the twelve. Solid curves fall, the lowest with
slope minus one and the highest barely; points are on them where prompts are short. Dashed curves of the same colours
run above them: the lowest touches its solid curve, the highest is many powers of ten above, rises at
first and is nearly flat then.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.concentration.bounds import BoundShape, looseness
from chapters.concentration.error_curve import ErrorCurve
from chapters.concentration.error_curves import as_columns
from chapters.concentration.exact_error import LONGEST, SHORTEST, ErrorsByScale, ExactError, errors_at_one_size
from chapters.concentration.experiment import DIMENSION
from chapters.concentration.gradient_theory import SCALES_FROM, covers
from chapters.concentration.proof_quantities import SimulatedProof
from chapters.concentration.style import length_axes, show_gap
from chapters.style import coloured
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import WIDE, error_bars, label, legend_line, legend_point, legend_with
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
    dense = exact.lengths
    fine = np.geomspace(SHORTEST, LONGEST, 8 * (dense.size - 1) + 1)
    groups = []
    for (sigma, curve), values in zip(curves.items(), exact.errors, strict=True):
        groups += [
            {"sigma": sigma, "kind": "exact", "length": dense, "error": values},
            {"sigma": sigma, "kind": "bound", "length": fine, "error": bound(sigma, fine)},
            {"sigma": sigma, "kind": "prompts", **as_columns(curve)},
        ]
    columns = {
        "sigma": Column("Token scale $σ$"),
        "kind": Column(
            "`exact`: by quadrature; `prompts`: simulated; `bound`: $c₁ σ⁶ ln L / L^{c₂/σ²}$, with the pair of "
            "constants that bounds all exact values most tightly",
            "name",
        ),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "error": Estimate("Mean squared error of the output, $𝔼 ‖T[μ̂_L] - T[μ]‖²$ in $L²(ν)$", std_error="std_error"),
    }
    return Numbers(Table.of(groups, columns), _claims(curves, exact_error, exact, bound, gain))


def _claims(
    curves: Mapping[float, ErrorCurve], exact_error: ExactError, exact: ErrorsByScale, bound: BoundShape, gain: float
) -> Claims:
    claim = Claims("output-concentration", source="derived here")
    lengths = next(iter(curves.values())).lengths
    simulated = np.stack([curve.mean for curve in curves.values()])
    std_errors = np.stack([curve.std_error for curve in curves.values()])
    right, wrong = (
        np.stack([sigma**2 * error(gain * sigma, DIMENSION, lengths) for sigma in curves])
        for error in (exact_error, errors_at_one_size)
    )
    claim.agree(
        "exact",
        f"At {simulated.size} pairs of a token scale and a prompt length, the error of simulated Gaussian "
        "prompts in $L²(ν)$ agrees with the exact one",
        (simulated - right) / std_errors,
        rejects=("all queries have the root mean square length $√d$", (simulated - wrong) / std_errors),
        requires=(
            tells_apart(right - wrong, std_errors, comparison_quantile(simulated.size)),
            "for scales this small the error hardly differs from that of queries of length $√d$: by less than twice "
            "the tolerance, so that the simulation cannot tell them apart",
        ),
        box="isotropic-error",
    )
    sigmas = np.asarray(exact.scales)[:, None]
    sharp = sigmas**2 * exact.lengths ** -np.asarray(rate_exponent(exact.gain * sigmas))
    claim.at_least(
        "bound",
        "No constants bring $c₁σ⁶ ln L / L^{c₂/σ²}$ within three powers of ten of the exact error at all $σ$ "
        f"and all $L$ from {SHORTEST} to $10^{{{np.log10(LONGEST):.0f}}}$ (measured: the largest logarithm "
        "to base ten of bound over error, for the pair of constants that minimises it).",
        looseness(bound(sigmas, exact.lengths), exact.errors),
        3,
        because="a bound that is a thousand times too large somewhere does not tell the size of the error",
        rejects=(
            "the form is $c₁σ²/L^{β(H)}$, with the variance of the tokens and the exponent of each curve",
            looseness(np.max(exact.errors / sharp) * sharp, exact.errors),
        ),
        requires=(
            covers(sigmas, SCALES_FROM),
            "how far a bound is above all errors depends on the scales; it is known for `scales` from at most "
            f"{SCALES_FROM[0]:g} to at least {SCALES_FROM[1]:g}",
        ),
        source="[BB26, Prop. 3.1]",
        box="bb26-prop-3-1",
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw exact curves, simulated points, and the tightest bound of the form."""
    figure, axes = plt.subplots(figsize=(WIDE, 5.2))
    for (sigma, rows), colour, marker in coloured(table.groupby("sigma")):
        exact, prompts, bound = (rows[rows["kind"] == kind] for kind in ("exact", "prompts", "bound"))
        axes.plot(exact["length"], exact["error"], color=colour, linewidth=2)
        axes.plot(bound["length"], bound["error"], color=colour, linewidth=1.4, linestyle="--")
        error_bars(axes, prompts["length"], prompts["error"], prompts["std_error"], color=colour, marker=marker)
        end, top = exact.iloc[-1], bound.iloc[-1]
        scale = "token scale\n" if sigma == table["sigma"].max() else ""
        label(axes, end["length"], end["error"], rf"{scale}$\sigma={sigma:g}$", colour)
        if top["error"] > 10 * end["error"]:
            label(axes, top["length"], top["error"], rf"bound, $\sigma={sigma:g}$", colour)
    # the curves of the largest scale
    logs = np.interp(np.log(bound["length"]), np.log(exact["length"]), np.log(exact["error"]))
    gap = pd.DataFrame({"length": bound["length"], "error": np.exp(logs), "bound": bound["error"]})
    lower = table[(table["kind"] == "bound") & (table["sigma"] < sigma)].groupby("sigma")["error"].median()
    show_gap(axes, gap, "the bound is {} times too high", colour, lower)
    length_axes(axes, table[table["kind"] == "exact"])
    axes.set_ylabel("mean squared error of the output")
    lines = {"form of the bound, tightest constants": legend_line("--", 1.4), "exact": legend_line("-")}
    legend_with(axes, {**lines, "simulated": legend_point()}, loc="lower left")
    return figure
