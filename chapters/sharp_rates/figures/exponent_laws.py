r"""The error of small heads falls with exponent 1, and the error of larger heads with a smaller exponent $\beta(H)$.

Points are local slopes of the exact query-averaged error. Solid: $\beta(H)$, which is 1 for $H^2\le\frac12$ and, by a
heuristic, $\frac12(\sqrt{1+4/H^2}-1)$ beyond. Dashed: the form $c_2/\sigma^2$ of Prop. 3.1 for $U=I$, at
$\sigma=H\ge1$, with $c_2=\beta(1)$; by the heuristic no larger constant is valid for all $\sigma\ge1$. Dotted:
$1/(1+H^2)$, twice the exponent of [TSC].

Alt: Log-log chart of exponents against H squared. Exact points follow a solid curve, flat at one, then falling like
one over H squared. A dashed line starts on it at one and runs below it; a dotted curve below joins it at the right.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.sharp_rates.averaged_errors import DIMENSIONS, SMALL_SQUARED_NORMS, AveragedErrors, mean_fluctuation
from chapters.sharp_rates.parameters import NEXT_TERM, READ_AT
from chapters.sharp_rates.query_averages import exponent
from chapters.sharp_rates.slopes import SlopesAtOneLength
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label, ticks_at


def numbers(slopes: SlopesAtOneLength, averages: AveragedErrors) -> Numbers:
    """Return the slopes, their limit and two other exponents; claims on H = 1, the constant c₂ and small heads."""
    squared = slopes.squared_norms
    # Prop. 3.1 assumes σ ≥ 1, here up to the rounding of the grid
    applies = squared > 1 - 1e-9
    group = {
        "log_length": READ_AT,
        "squared_norm": squared,
        "slope": slopes.slope,
        "exponent": exponent(squared),
        "bound": np.where(applies, exponent(1.0) / squared, np.nan),
        "token_complexity": 1 / (1 + squared),
    }
    columns = {
        "log_length": Column("$ln L$ at which the slope is read"),
        "squared_norm": Column("$H² = ‖Γ^{1/2} U Γ_q^{1/2}‖_{\\mathrm{op}}²$"),
        "slope": Column("Exact local slope of the query-averaged mean square error at this length"),
        "exponent": Column("$β(H)$ [heuristic]"),
        "bound": Column("$c₂/σ²$ of Prop. 3.1 with $c₂ = β(1)$, at $σ = H ≥ 1$; empty for $H < 1$"),
        "token_complexity": Column(
            "$1/(1 + H²)$: twice the exponent $1/(2(1 + H²))$ that [TSC] gives for the error of output moments, "
            "not squared"
        ),
    }
    claim = Claims("sharp-rates", source="heuristic", box="average-exponent")
    claim.equal(
        "golden",
        "At $H = 1$ the error falls like $L$ to the power minus the inverse golden ratio, 0.618… (measured: the "
        f"local slope at $ln L = {READ_AT:g}$).",
        slopes.at_one,
        (np.sqrt(5) - 1) / 2,
        within=2 * NEXT_TERM,
        because="twice the next term of the heuristic, $1/(2 ln L)$",
        rejects=("the exponent is the one of output moments, $1/(1 + H²)$", 0.5),
    )
    claim.at_least(
        "one-constant",
        "With $c₂ = β(1)$ the exponent $c₂/σ²$ of Prop. 3.1 is not larger than the exponent of the error, for $U = I$, "
        f"$d = 1$, Gaussian tokens and queries, and {applies.sum()} scales $σ ≥ 1$ (measured: the smallest difference "
        f"between local slope and $c₂/σ²$ at $ln L = {READ_AT:g}$).",
        np.min((slopes.slope - exponent(1.0) / squared)[applies]),
        0.0,
        within=2 * NEXT_TERM,
        because="twice the next term of the heuristic, $1/(2 ln L)$",
        box="admissible-constant",
        rejects=(
            "the constant is $c₂ = 1$, which is sharp for large $σ$",
            np.min((slopes.slope - 1 / squared)[applies]),
        ),
    )
    _claim_averages(claim, averages)
    return Numbers(Table.of([group], columns), claim)


def _claim_averages(claim: Claims, averages: AveragedErrors) -> None:
    """Claim the power of ln L in the error at H = 1 by dimension, and the limit of L times the error for H² < ½."""
    near, far = averages.log_lengths[-2:]
    dimensions = np.asarray(DIMENSIONS)
    claim.at_most(
        "admissible",
        "For $U = I$, $σ = 1$ and Gaussian tokens and queries, the error times $L^{β(1)} / ln L$ is a constant times "
        "$(ln L)^{d/2 - 1}$ in $d = 1, 2, 3$ and $8$. If this power continues, the bound of Prop. 3.1 with $c₂ = β(1)$ "
        "holds at $σ = 1$ in $d = 1$ and $2$, and no $c₁$ makes it hold in $d = 3$ and $8$ (measured: the largest "
        f"distance of the power of $ln L$, between $ln L = {near:g}$ and ${far:g}$, from $d/2 - 1$).",
        np.max(np.abs(averages.powers - (dimensions / 2 - 1))),
        0.0,
        within=max(dimensions) ** 2 / 4 * (1 / near - 1 / far) / np.log(far / near),
        because="the next term of the slope after $d/(2 ln L)$, its square, integrated between the two lengths",
        box="admissible-constant",
        rejects=("the error has the factor $√(ln L)$ in every dimension", np.max(np.abs(averages.powers + 0.5))),
    )
    limits, unshifted = (
        [[mean_fluctuation(h, d, shifted=shifted) for d in DIMENSIONS] for h in SMALL_SQUARED_NORMS]
        for shifted in (True, False)
    )
    claim.at_most(
        "small-heads",
        r"For Gaussian tokens and queries and $H² < ½$, $L$ times the error tends to $\mathbb{E} e^{τ²}(d + τ²)$ "
        f"(measured: the largest relative distance at $ln L = {READ_AT:g}$, for "
        f"$H² = {', '.join(f'{h:g}' for h in SMALL_SQUARED_NORMS)}$ and $d = {', '.join(map(str, DIMENSIONS))}$).",
        np.max(np.abs(averages.scaled / limits - 1)),
        0.0,
        within=1e-9,
        because="the relative accuracy of $P$ and $Q$; large queries add only $L$ to the power $-(√(1 + 4/H²) - 3)/2$, "
        "at most $e^{-47}$",
        source="derived here",
        box="mean-fluctuation",
        rejects=(
            r"tokens of large weight have the mean of the infinite prompt: $\mathbb{E} e^{τ²} d$",
            np.max(np.abs(averages.scaled / unshifted - 1)),
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw β(H), the exact slopes and the two other exponents."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    norms, last = table["squared_norm"], table.iloc[-1]
    axes.vlines(0.5, last["bound"], 1, color=ink(), linewidth=1, alpha=0.5)
    label(axes, 0.5, last["bound"], "$H^2=½$", ink(), va="bottom")
    axes.plot(norms, table["exponent"], linewidth=2, color="C0")
    axes.plot(norms, table["slope"], "o", color="C0", markersize=6, fillstyle="none")
    curve = rf"$\beta(H)$, heuristic; points: exact slopes at $\ln L={table['log_length'].iloc[0]:g}$"
    label(axes, norms.min(), 1, curve, "C0", xytext=(0, 13))
    axes.plot(norms, table["bound"], "--", color=ink(), linewidth=1.5)
    label(axes, last["squared_norm"], last["bound"], "lower bound\nin the form of\nProp. 3.1", ink(), xytext=(6, 16))
    axes.plot(norms, table["token_complexity"], ":", color="C2", linewidth=2)
    other, start = "[TSC], the exponent\nof another error", table["token_complexity"].iloc[0]
    label(axes, norms.min(), start, other, "C2", xytext=(0, -40))
    axes.set(xscale="log", yscale="log", xlabel=r"size of the head, $H^2$", ylabel="exponent of the mean square error")
    axes.set_ylim(top=1.35)
    axes.set_xticks([0.125, 0.25, 0.5, 1, 2, 4, 8], labels=["1/8", "1/4", "1/2", "1", "2", "4", "8"])
    ticks_at(axes.yaxis, [0.1, 0.2, 0.5, 1])
    axes.minorticks_off()
    return figure
