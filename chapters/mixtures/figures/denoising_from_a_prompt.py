r"""On a finite prompt the error of the exact denoiser falls much more slowly than one over the prompt length.

Random tasks, each with one prompt of $L$ noisy tokens and one query; bars: two standard errors. Upper points: the
residual layer that equals the Bayes denoiser of every task on its infinite prompt. Lower points: the same head with
its scores divided by four. Solid: the exact limit for large $L$. Dashed: powers of $L$; $-0.618$ is the exponent of one
Gaussian component at $H=1$.

Alt: Two rows of points falling on logarithmic axes. The lower row is on a solid line of slope minus one for long
prompts. The upper row falls less steeply than a dashed line of slope minus 0.618.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.mixtures.finite_prompts import SIZES, exponent
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, error_bars, ink, label

# The exponent of one Gaussian component at H = 1 (chapter `sharp_rates`), and the middle between it and 1.
GOLDEN = (np.sqrt(5) - 1) / 2
HALFWAY = (1 + GOLDEN) / 2


def numbers(errors: dict[str, pd.DataFrame]) -> Numbers:
    """Return the mean square errors with standard errors, one row per head and length, and the claims."""
    limit = errors["limit"][0]
    groups = [
        {
            "size": size,
            "length": errors[name].columns,
            "error": errors[name].mean(),
            "std_error": errors[name].sem(),
            "limit": limit.mean() / errors[name].columns if name == "quarter" else np.nan,
        }
        for name, size in SIZES.items()
    ]
    columns = {
        "size": Column("Size $H$ of the tilt, relative to that of the exact denoiser"),
        "length": Column("Prompt length $L$", "tokens"),
        "error": Estimate("Mean square distance to the output of the infinite prompt", std_error="std_error"),
        "limit": Column("Exact limit for large $L$, mean over the same tasks", moves_with="error"),
    }
    claim = Claims("mixture-denoising")
    (slow, std_error), (quarter, _) = exponent(errors["denoiser"]), exponent(errors["quarter"])
    claim.at_least(
        "exponent",
        "The square error of the exact denoiser on a finite prompt falls more slowly than $1/L$ (exponent over all "
        "lengths).",
        slow,
        -HALFWAY,
        because="halfway between 1 and the exponent of one Gaussian component at $H = 1$, the inverse golden ratio",
        source="measured here",
        std_error=std_error,
        rejects=("it falls like $1/L$, as at a quarter of the scores", quarter),
    )
    longest = max(errors["quarter"].columns)
    scaled = longest * errors["quarter"][longest]
    ratio = scaled / limit
    claim.equal(
        "limit",
        f"At a quarter of the scores, $L$ times the square error at $L = {longest:,}$ is the limit from the "
        "log-moment-generating function (mean over tasks of their ratio).",
        ratio.mean(),
        1.0,
        because="99.9 % quantile of one standard normal deviation; the correction of order $1/L$ is far smaller",
        source="derived here",
        box="prop-fluctuation",
        std_error=ratio.sem(),
        rejects=("the limit is the variance without a tilt", (scaled / errors["untilted"][0]).mean()),
    )
    return Numbers(Table.of(groups, columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw the errors of both heads against the length, with the limit and two slopes."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$")
    axes.set_ylabel("mean square distance\nto the output on the infinite prompt")
    looks = {
        1.0: ("C1", "o", "exact denoiser, size of the tilt $H=1$", GOLDEN, "$L^{-0.618}$"),
        0.25: ("C0", "s", "quarter of its scores, $H=1/4$", 1.0, "$1/L$"),
    }
    for size, (colour, marker, text, slope, power) in looks.items():
        rows = table[table["size"] == size].sort_values("length")
        error_bars(axes, rows["length"], rows["error"], rows["std_error"], color=colour, marker=marker)
        first, last = rows.iloc[0], rows.iloc[-1]
        guide = 1.25 * first["error"] * (rows["length"] / first["length"]) ** -slope
        axes.plot(rows["length"], guide, color=ink(), linestyle="--", linewidth=1)
        label(axes, last["length"], guide.iloc[-1], power, ink(), va="bottom" if slope == 1.0 else "top")
        label(axes, first["length"], guide.iloc[0], text, colour, va="bottom", xytext=(0, 8))
    limit = table[table["limit"].notna()].sort_values("length")
    axes.plot(limit["length"], limit["limit"], color="C0", linewidth=1.2)
    label(axes, limit["length"].iloc[1], limit["limit"].iloc[1], "limit", "C0", ha="right", va="top", xytext=(-4, -4))
    axes.margins(y=0.12)
    return figure
