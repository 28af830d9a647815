r"""Two opposite heads with small keys come close to the risk of the best linear head.

Errors are at the best gain; the two heads have gains of opposite signs. One and two heads are simulated on the same
prompts; bars are two standard errors. Dotted: the error of two heads that follows from their limit for long prompts.
($\Sigma=I$, $d=5$, no noise.)

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
from companion import Claims, Column, Estimate, Numbers, Table
from companion.figures.style import COLUMN, error_bars, ink, label, legend_line, legend_point
from lib.icl import valley_limit
from lib.statistics import standard_error

# Largest u at which the squared errors of one head have a variance that the simulation can measure.
MILD_TILT = 0.3
# Largest u at which the limit L → ∞ of two heads is compared with prompts of a few hundred tokens.
SMALL_TILT = 0.2


def numbers(outputs: Outputs, theory: Theory) -> Numbers:
    """Return 2R·L of one and of two heads at the best gain, simulated and in theory, and the claims on them."""
    simulated = pd.DataFrame({"tilt": outputs.tilts})
    for name, values in (("one", outputs.one), ("two", outputs.two)):
        errors = outputs.best_gain_errors(values)
        simulated[f"{name}_simulated"] = outputs.length * errors.mean(axis=1)
        simulated[f"{name}_std_error"] = outputs.length * standard_error(errors, axis=1)
    exact = {"tilt": theory.tilts, "one_exact": theory.one_exact, "two_exact": theory.two_exact}
    limits = {"two_law": theory.two_limit, "linear": theory.linear}
    columns = {
        "tilt": Column("$u$ of the head $A = uI$; the opposite head has $A = -uI$"),
        "one_exact": Column("$2R·L$ of one head at the best gain, exact"),
        "two_exact": Column("$2R·L$ of two opposite heads at the best gain, exact"),
        "two_law": Column("$2R·L$ of two opposite heads at the best gain, from the limit $L → ∞$"),
        "linear": Column("$2R·L$ of the best linear head, exact"),
        "one_simulated": Estimate(
            "$2R·L$ of one head on simulated prompts (empty between the simulated $u$)", std_error="one_std_error"
        ),
        "two_simulated": Estimate("$2R·L$ of two opposite heads on the same prompts", std_error="two_std_error"),
    }
    table = Table(pd.DataFrame(exact | limits).merge(simulated, how="left", on="tilt"), columns)
    return Numbers(table, _claims(table.frame, outputs.length))


def _claims(frame: pd.DataFrame, length: int) -> Claims:
    claim = Claims("risk-and-parameters", source="derived here", box="two-opposite-heads")
    points = frame[frame["one_simulated"].notna()]
    mild = points[points["tilt"] <= MILD_TILT]
    claim.agree(
        "one-head",
        f"Simulation and exact risk of one head agree at values of $u$ up to {MILD_TILT:g}",
        (mild["one_simulated"] - mild["one_exact"]) / mild["one_std_error"],
        box="exact-risk-of-block-heads",
        rejects=(
            "one head has the risk of two opposite heads",
            (mild["one_simulated"] - mild["two_exact"]) / mild["one_std_error"],
        ),
    )
    claim.agree(
        "two-heads-simulated",
        f"Simulation and exact risk of two opposite heads agree at values of $u$ up to {MILD_TILT:g}",
        (mild["two_simulated"] - mild["two_exact"]) / mild["two_std_error"],
        source="measured here",
        box=None,
        rejects=(
            "two opposite heads have the risk of one head",
            (mild["two_simulated"] - mild["one_exact"]) / mild["two_std_error"],
        ),
    )
    smallest = points.loc[points["tilt"].idxmin()]
    claim.equal(
        "two-heads",
        f"At $u = {smallest['tilt']:g}$ and $L = {length:,}$ two opposite heads come within 5 % of the risk of the "
        "best linear head (ratio of the two exact risks).",
        smallest["two_exact"] / smallest["linear"],
        1,
        within=0.05,
        because="5 % for keys that are small but not zero",
        rejects=("one head with the same keys", smallest["one_exact"] / smallest["linear"]),
    )
    small = frame[frame["tilt"] <= SMALL_TILT]
    uncorrelated = at_best_gain(np.asarray(valley_limit(np.asarray(small["tilt"]) ** 2, DIMENSION)) / 2, length)
    claim.at_most(
        "opposite-law",
        f"Up to $u = {small['tilt'].max():g}$ the exact risk of two heads at $L = {length:,}$ agrees with its limit "
        "for long prompts at the best gain, which accounts for the correlation of their fluctuations (largest relative "
        "difference).",
        (small["two_exact"] / small["two_law"] - 1).abs().max(),
        0,
        within=0.05,
        because="5 % for the finite prompt",
        rejects=(
            "the fluctuations of the two heads are independent",
            (uncorrelated / small["two_law"] - 1).abs().max(),
        ),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw exact curves, the limit of two heads, and the simulated points on logarithmic axes."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    axes.set(xscale="log", yscale="log", ylabel="mean square error times $L$")
    axes.set_xlabel(r"key $u$ of one head, $A=uI$, or of two, $A=\pm uI$")
    points = table[table["one_simulated"].notna()]
    for name, mark, text in (
        ("one", {"marker": "o", "color": "C0"}, "one head"),
        ("two", {"marker": "s", "color": "C1"}, "two heads"),
    ):
        axes.plot(table["tilt"], table[f"{name}_exact"], color=mark["color"], linewidth=2)
        error_bars(axes, points["tilt"], points[f"{name}_simulated"], points[f"{name}_std_error"], **mark)
        place = points.sort_values("tilt").iloc[1]
        label(axes, place["tilt"], place[f"{name}_exact"], text, mark["color"], xytext=(8, 11))
    axes.plot(table["tilt"], table["two_law"], color="C1", linestyle=":", linewidth=2)
    last = table.sort_values("tilt").iloc[-1]
    label(axes, last["tilt"], last["two_law"], "two heads,\nlong prompts", "C1", xytext=(10, -3), fontsize=10)
    linear = table["linear"].iloc[0]
    axes.axhline(linear, color=ink(), linestyle="--", linewidth=1.3)
    label(axes, table["tilt"].min(), linear, "best linear head", ink(), xytext=(0, -11))
    ticks = points["tilt"].tolist()
    axes.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    levels = [20, 50, 100, 200, 500, 1000]
    axes.set_yticks(levels, labels=[str(level) for level in levels])
    axes.minorticks_off()
    axes.set_ylim(20, 1.4 * points["one_simulated"].max())
    handles = [legend_line("-"), legend_point()]
    axes.legend(handles, ["exact", "simulated"], loc="upper right", fontsize=10)
    return figure
