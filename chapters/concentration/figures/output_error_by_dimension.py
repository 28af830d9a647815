r"""Every dimension approaches the same slope of the error, higher dimensions at longer prompts.

The vertical axis is the mean square of $T[\hat\mu_L]-T[\mu]$ divided by that of $T[\mu]$, for isotropic Gaussian tokens
and queries in $d$ dimensions. Points are simulated, with two standard errors. All curves have the same $H$, but
$\tau^2=H^2\|z\|^2$ is of the order of $H^2d$, and the length beyond which the error falls nearly like $1/L$ grows
exponentially with it (a heuristic).

Alt: Log-log plot of relative error against prompt length from two to ten to the twelve, one solid curve for each
dimension, with points on the curves for short prompts. The curves are nearly parallel at the end; curves of higher
dimensions are further to the right.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.concentration.error_curve import ErrorCurve
from chapters.concentration.error_curves import as_columns
from chapters.concentration.exact_error import ExactError, dense_lengths
from chapters.concentration.style import length_axes
from chapters.style import coloured
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, error_bars, ink, label, legend_line, legend_point, legend_with


def numbers(curves: Mapping[int, ErrorCurve], exact_error: ExactError, norm: float) -> Numbers:
    """Return exact and simulated relative errors, and the claim that they agree."""
    dense = dense_lengths()
    groups = []
    for d, curve in curves.items():
        size = norm**2 * d
        error = exact_error(norm, d, dense) / size
        groups.append({"dimension": d, "kind": "exact", "length": dense, "error": error})
        groups.append({"dimension": d, "kind": "prompts", **as_columns(curve, size)})
    columns = {
        "dimension": Column("Dimension $d$ of tokens and queries"),
        "kind": Column("`exact`: by quadrature; `prompts`: simulated scores, exact means over everything else", "name"),
        "length": Column("Tokens in the prompt, $L$", "tokens"),
        "error": Estimate("Mean squared error, divided by the mean square $H²dσ²$ of the limit", std_error="std_error"),
    }
    pairs = sum(curve.lengths.size for curve in curves.values())
    claim = Claims("output-concentration", source="derived here", box="isotropic-error")
    claim.agree(
        "dimension",
        f"At {pairs} pairs of a dimension and a prompt length, the error of simulated scores, averaged "
        "exactly over the rest of the tokens and the length of the query, agrees with the quadrature",
        [curve.deviations(exact_error(norm, d, curve.lengths)) for d, curve in curves.items()],
        rejects=(
            "the error in dimension $d$ is $d$ times the error in dimension one",
            [curve.deviations(d * exact_error(norm, 1, curve.lengths)) for d, curve in curves.items()],
        ),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw exact curves and simulated points, in one colour per dimension."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    for (dimension, rows), colour, marker in coloured(table.groupby("dimension")):
        exact, prompts = (rows[rows["kind"] == kind] for kind in ("exact", "prompts"))
        axes.plot(exact["length"], exact["error"], color=colour, linewidth=2)
        error_bars(axes, prompts["length"], prompts["error"], prompts["std_error"], color=colour, marker=marker)
        name = f"$d={dimension}$" if dimension < table["dimension"].max() else f"dimension\n$d={dimension}$"
        label(axes, exact["length"].iloc[-1], exact["error"].iloc[-1], name, colour)
    axes.axhline(1, color=ink(), linestyle=":", linewidth=1.5)
    length_axes(axes, table[table["kind"] == "exact"])
    label(axes, exact["length"].max(), 1, "no better than output 0", ink(), ha="right", xytext=(-4, 8))
    axes.set_ylabel("mean squared error, relative")
    legend_with(axes, {"exact": legend_line("-"), "simulated": legend_point()}, loc="lower left")
    return figure
