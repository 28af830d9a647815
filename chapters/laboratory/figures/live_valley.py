r"""On finite prompts even the best softmax head with two parameters has a higher risk than the best linear head.

A head has the factors $u$ of its scores and $b$ of its output, in $d$ dimensions, on prompts of $L$ tokens. Blue: its
excess risk, divided by that of the best linear head. Dashed: the valley $bu=1$ of the heads that are exact on infinite
prompts. Right: the same ratio, with the best $b$ for each $u$.

Alt: Two panels. Left, a plane of two parameters with a blue valley along a dashed horizontal line, and a point in it.
Right, a curve of the risk along the valley, with a minimum well above a dotted horizontal line.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.figure import Figure

from chapters.laboratory.ranges import LARGEST_VALLEY_GAIN, VALLEY_TILTS
from chapters.laboratory.table_interpolation import between
from chapters.laboratory.trials import Trial
from chapters.laboratory.valley_risks import LARGEST_DECADE, SHORTEST
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label

Risks = Float[np.ndarray, "..."]
# Ratios to the risk of the best linear head at which the colour changes, and the setting of the static picture.
LEVELS = (4, 10, 30, 100, 300)
SHOWN = {"dimension": 5.0, "noise": 0.0, "decade": 4.0, "tilt": 0.6, "share": 0.9}


def numbers(trial: Trial) -> Numbers:
    """Return the table, and the claim on the error of risks that are computed from it."""
    columns = {
        "dimension": Column("Dimension $d$ of the covariates"),
        "log_length": Column("$ln L$, the logarithm of the prompt length"),
        "tilt": Column("$u$, where $A = uI$"),
        "noise": Column("$s²$, the variance of the label noise"),
        "log_shrink": Column(
            "ln of the coefficient of $bu(1 - bu)$ in $2(R_L - R_∞)$, from the smaller mean", absolute=1e-6
        ),
        "log_spread": Column("ln of the coefficient of $(bu)²$ in $2(R_L - R_∞)$, from the variance", absolute=1e-6),
        "log_linear": Column("ln of the excess risk of the best linear head, its risk minus $½s²$", absolute=1e-6),
    }
    claim = Claims("live", source="measured here")
    claim.at_most(
        "valley-read",
        "The laboratory computes the excess risks of a head and of the best linear head from its table with "
        f"small errors (largest relative error at {trial.settings} random heads and lengths from "
        f"{SHORTEST:g} to $10^{{{LARGEST_DECADE}}}$).",
        _error(trial, trial.grid.read),
        0,
        within=1e-3,
        because="at most one unit of the third digit of a reading",
        rejects=("straight lines between the same nodes", _error(trial, trial.read_straight)),
        requires=trial.requires(log_length=14, tilt=18),
    )
    return Numbers(Table(trial.grid.frame, columns), claim)


def _error(trial: Trial, read) -> float:
    shrink, spread = (np.exp(read(name, *trial.places)) for name in ("log_shrink", "log_spread"))
    excess = _excess(trial.places[0], trial.exact["share"], shrink, spread)
    linear = read("log_linear", *trial.places) - trial.exact["log_linear"]
    return float(max(np.max(np.abs(excess / trial.exact["excess"] - 1)), np.max(np.abs(linear))))


def draw(table: pd.DataFrame) -> Figure:
    """Draw the plane of heads at one length and the floor of its valley."""
    d = SHOWN["dimension"]
    chosen = table[(table["dimension"] == d) & (table["noise"] == SHOWN["noise"])]
    log_length, tilts = SHOWN["decade"] * np.log(10.0), np.linspace(*VALLEY_TILTS, 200)
    parts = ("log_shrink", "log_spread", "log_linear")
    shrink, spread, linear = (np.exp(between(chosen, part, log_length=log_length, tilt=tilts)) for part in parts)
    figure, (plane, floor) = plt.subplots(1, 2, figsize=(WIDE, 4.2))
    shares = np.linspace(0, LARGEST_VALLEY_GAIN, 201)
    ratio = _excess(d, shares[:, None], shrink, spread) / linear
    for level in LEVELS:
        plane.contourf(tilts, shares, ratio, [0, level], colors=["C0"], alpha=0.2)
    plane.axhline(1, color=ink(), linestyle="--", linewidth=1.5)
    label(plane, 0.98, 1, "unbiased", ink(), xytext=(0, 7), ha="right")
    label(plane, SHOWN["tilt"], SHOWN["share"], "this head", "C4", xytext=(0, -15), ha="center", fontsize=12)
    upper, middle = shares > 1, np.argmin(np.abs(tilts - 0.5))
    for level in LEVELS[2:]:
        edge = np.interp(level, ratio[upper, middle], shares[upper])
        above = {"xytext": (0, -1), "ha": "center", "va": "bottom", "fontsize": 10}
        label(plane, tilts[middle], edge, f"$\\times\\,{level}$", "C0", **above)
    plane.plot(SHOWN["tilt"], SHOWN["share"], "o", color="C4", markersize=9)
    scores = {"xlim": VALLEY_TILTS, "xlabel": "factor of the scores, $u$"}
    plane.set(ylim=(0, LARGEST_VALLEY_GAIN), ylabel="gain $bu$ (1 = unbiased)", **scores)
    plane.grid(visible=False)
    share = (2 * d - shrink) / (2 * (d - shrink + spread))
    lowest = _excess(d, share, shrink, spread) / linear
    floor.plot(tilts, lowest, color="C0", linewidth=2.5)
    best = tilts[lowest.argmin()], lowest.min()
    text, arrow = f"best softmax head:\n{best[1]:.1f} times the risk", {"arrowstyle": "->", "color": "C0"}
    label(floor, *best, text, "C0", ha="center", va="bottom", xytext=(20, 102))
    floor.annotate("", best, (0, 100), textcoords="offset points", arrowprops=arrow)
    floor.axhline(1, color="C1", linestyle=":", linewidth=2)
    label(floor, 0.98, 1.0, "best linear head", "C1", va="bottom", xytext=(0, 6), ha="right")
    at_point = [np.interp(SHOWN["tilt"], tilts, part) for part in (shrink, spread)]
    here = _excess(d, SHOWN["share"], *at_point) / linear[0]
    floor.plot(SHOWN["tilt"], here, "o", color="C4", markersize=9)
    label(floor, SHOWN["tilt"], here, "this head,\n$b$ not the best", "C4", ha="center", va="bottom", xytext=(4, 7))
    floor.set(ylim=(0.5, 1000), yscale="log", ylabel="excess risk, best linear head = 1", **scores)
    floor.set_title(f"in-context regression, $d={d:.0f}$, $L=10^{{{SHOWN['decade']:g}}}$", fontsize=11, loc="right")
    return figure


def _excess(dimension: Risks | float, share: Risks | float, shrink: Risks, spread: Risks) -> Risks:
    """Return R_L - ½s² at bu = share, a polynomial in bu with the coefficients of the table."""
    return (dimension * (1 - share) ** 2 + share * (1 - share) * shrink + share**2 * spread) / 2
