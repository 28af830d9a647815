r"""Two opposite heads with small keys come close to the risk of the best linear head.

Mean square error times $L$ at the best gain, against the parameter $u$ of the head $A=uI$. Solid: the exact errors of
one head, and of the head and its opposite $A=-uI$ together, with gains of opposite signs. Circles and squares: one and
two heads on the same simulated prompts, with two standard errors. Dotted: the error of two heads that
follows from their limit for long prompts, at the best gain. Dashed: the best linear head. ($\Sigma=I$, $d=5$, no
noise.)

Alt: Log-log chart. Circles on a solid curve fall steeply from small u to a minimum well above the dashed line, and
rise again. Squares on a second solid curve lie just above the dashed horizontal line at small u and rise slowly beyond;
a dotted curve follows them and then rises faster.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.risk_and_parameters.isotropic_heads import DIMENSION
from chapters.risk_and_parameters.opposite_heads import Outputs, Theory, at_best_gain
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import COLUMN, error_bars, ink
from lib.icl import valley_limit
from lib.statistics import standard_error

# Largest u at which the squared errors of one head have a variance that the simulation can measure.
MILD_TILT = 0.3
# Largest u at which the limit L → ∞ of two heads is compared with prompts of a few hundred tokens.
SMALL_TILT = 0.2


def numbers(outputs: Outputs, theory: Theory) -> Numbers:
    """Return the errors of one and of two heads, simulated and in theory, and the claims on them."""
    table = _table(outputs, theory)
    simulated = table.frame[table.frame["one_simulated"].notna()]
    claims = (
        _one_head_claim(simulated),
        _simulated_pair_claim(simulated),
        _two_heads_claim(simulated, outputs.length),
        _limit_claim(table.frame, outputs.length),
    )
    return Numbers(table, claims)


def _table(outputs: Outputs, theory: Theory) -> Table:
    """Return 2R·L of one head and of two opposite heads at the best gain, simulated and in theory."""
    frame = pd.DataFrame({"tilt": outputs.tilts})
    for name, values in (("one", outputs.one), ("two", outputs.two)):
        errors = outputs.best_gain_errors(values)
        frame[f"{name}_simulated"] = outputs.length * errors.mean(axis=1)
        frame[f"{name}_std_error"] = outputs.length * standard_error(errors, axis=1)
    exact = {
        "tilt": theory.tilts,
        "one_exact": theory.one_exact,
        "two_exact": theory.two_exact,
        "two_law": theory.two_limit,
        "linear": theory.linear,
    }
    columns = {
        "tilt": Column("$u$ of the head $A = uI$; the opposite head has $A = -uI$"),
        "one_exact": Column("$2R·L$ of one head at the best gain, exact"),
        "two_exact": Column("$2R·L$ of two opposite heads at the best gain, exact"),
        "two_law": Column("$2R·L$ of two opposite heads at the best gain, from the limit $L → ∞$"),
        "linear": Column("$2R·L$ of the best linear head, exact"),
        "one_simulated": Column(
            "$2R·L$ of one head on simulated prompts (empty between the simulated $u$)", std_error="one_std_error"
        ),
        "one_std_error": Column("Standard error of one_simulated", moves_with="one_simulated"),
        "two_simulated": Column("$2R·L$ of two opposite heads on the same prompts", std_error="two_std_error"),
        "two_std_error": Column("Standard error of two_simulated", moves_with="two_simulated"),
    }
    return Table(pd.DataFrame(exact).merge(frame, how="left", on="tilt")[list(columns)], columns)


def _one_head_claim(points: pd.DataFrame) -> Claim:
    """Compare one simulated head with the exact risk."""
    mild = points[points["tilt"] <= MILD_TILT]

    def worst(column: str) -> float:
        return float(np.max(np.abs(mild["one_simulated"] - mild[column]) / mild["one_std_error"]))

    return Claim.consistent(
        "risk-and-parameters-one-head",
        f"Simulation and exact risk of one head agree at values of $u$ up to {MILD_TILT:g} (largest deviation in "
        "standard errors).",
        worst("one_exact"),
        comparisons=len(mild),
        source="derived here",
        box="exact-risk-of-block-heads",
        alternative=Alternative("one head has the risk of two opposite heads", worst("two_exact")),
    )


def _simulated_pair_claim(points: pd.DataFrame) -> Claim:
    """Compare two simulated heads with the exact risk."""
    mild = points[points["tilt"] <= MILD_TILT]

    def worst(column: str) -> float:
        return float(np.max(np.abs(mild["two_simulated"] - mild[column]) / mild["two_std_error"]))

    return Claim.consistent(
        "risk-and-parameters-two-heads-simulated",
        f"Simulation and exact risk of two opposite heads agree at values of $u$ up to {MILD_TILT:g} (largest "
        "deviation in standard errors).",
        worst("two_exact"),
        comparisons=len(mild),
        source="measured here",
        alternative=Alternative("two opposite heads have the risk of one head", worst("one_exact")),
    )


def _two_heads_claim(points: pd.DataFrame, length: int) -> Claim:
    """Compare two heads at the smallest u with the best linear head."""
    smallest = points.loc[points["tilt"].idxmin()]
    return Claim(
        id="risk-and-parameters-two-heads",
        statement=(
            f"At $u = {smallest['tilt']:g}$ and $L = {length:,}$ two opposite heads come within 5 % of the risk of "
            "the best linear head (ratio of the two exact risks)."
        ),
        source="derived here",
        box="two-opposite-heads",
        measured=smallest["two_exact"] / smallest["linear"],
        expected=1.0,
        tolerance=0.05,
        reason="5 % for keys that are small but not zero",
        alternative=Alternative("one head with the same keys", smallest["one_exact"] / smallest["linear"]),
    )


def _limit_claim(curve: pd.DataFrame, length: int) -> Claim:
    """Compare the exact risk of two heads with the limit L → ∞ at small u."""
    small = curve[curve["tilt"] <= SMALL_TILT]
    uncorrelated = at_best_gain(np.asarray(valley_limit(np.asarray(small["tilt"]) ** 2, DIMENSION)) / 2, length)

    def worst(simulated) -> float:
        return float(np.max(np.abs(simulated / small["two_law"] - 1)))

    return Claim(
        id="risk-and-parameters-opposite-law",
        statement=(
            f"Up to $u = {small['tilt'].max():g}$ the exact risk of two heads at $L = {length:,}$ agrees with its "
            "limit for long prompts at the best gain, which accounts for the correlation of their fluctuations "
            "(largest relative difference)."
        ),
        source="derived here",
        box="two-opposite-heads",
        measured=worst(small["two_exact"]),
        expected=0.0,
        tolerance=0.05,
        reason="5 % for the finite prompt",
        alternative=Alternative("the fluctuations of the two heads are independent", worst(uncorrelated)),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw exact curves, the limit of two heads, and the simulated points on logarithmic axes."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    axes.set(xscale="log", yscale="log", xlabel="$u$ of the head $A=uI$", ylabel="mean square error times $L$")
    points = table[table["one_simulated"].notna()]
    for name, mark, text in (
        ("one", {"marker": "o", "color": "C0"}, "one head"),
        ("two", {"marker": "s", "color": "C1"}, "two heads"),
    ):
        axes.plot(table["tilt"], table[f"{name}_exact"], color=mark["color"], linewidth=2, label=f"{text}, exact")
        simulated, error = points[f"{name}_simulated"], points[f"{name}_std_error"]
        error_bars(axes, points["tilt"], simulated, error, **mark, label=f"{text}, simulated")
    axes.plot(
        table["tilt"], table["two_law"], color="C1", linestyle=":", linewidth=2, label=r"two heads, $L\,\to\,\infty$"
    )
    axes.axhline(table["linear"].iloc[0], color=ink(), linestyle="--", linewidth=1.3, label="best linear head")
    ticks = points["tilt"].tolist()
    axes.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    levels = [20, 50, 100, 200, 500, 1000]
    axes.set_yticks(levels, labels=[str(level) for level in levels])
    axes.minorticks_off()
    axes.set_ylim(20, 1.4 * points["one_simulated"].max())
    axes.legend(loc="upper right")
    return figure
