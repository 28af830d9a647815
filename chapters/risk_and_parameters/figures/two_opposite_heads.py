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
from companion.figures.style import COLUMN, error_bars, ink, label, legend_line, legend_point, ticks_at
from lib.icl import valley_limit
from lib.statistics import standard_error

# Largest u at which the squared errors of one head have a variance that the simulation can measure.
MILD_TILT = 0.3
# Largest u at which the limit L → ∞ of two heads is compared with prompts of a few hundred tokens.
SMALL_TILT = 0.2


def numbers(outputs: Outputs, theory: Theory) -> Numbers:
    """Return 2R·L of one and of two heads at the best gain, simulated and in theory, and the claims on them."""
    groups = [
        {"kind": "linear", "heads": 1, "tilt": theory.tilts[[0, -1]], "error": theory.linear},
        {"kind": "exact", "heads": 1, "tilt": theory.tilts, "error": theory.one_exact},
        {"kind": "exact", "heads": 2, "tilt": theory.tilts, "error": theory.two_exact},
        {"kind": "limit", "heads": 2, "tilt": theory.tilts, "error": theory.two_limit},
    ]
    for heads, values in ((1, outputs.one), (2, outputs.two)):
        errors = outputs.length * outputs.best_gain_errors(values)
        simulated = {"error": errors.mean(axis=1), "std_error": standard_error(errors, axis=1)}
        groups.append({"kind": "simulated", "heads": heads, "tilt": outputs.tilts} | simulated)
    columns = {
        "kind": Column(
            "`linear`: the best linear head, exact, for any $u$. Softmax heads at the best gain: `exact`; `limit`, "
            "from that for $L → ∞$; `simulated`, one and two heads on the same prompts",
            "name",
        ),
        "heads": Column("Number of heads; two softmax heads are opposite"),
        "tilt": Column("$u$ of the head $A = uI$; the opposite head has $A = -uI$"),
        "error": Estimate("$2R·L$", std_error="std_error"),
    }
    table = Table.of(groups, columns)
    return Numbers(table, _claims(table.frame, theory, outputs.length))


def _claims(frame: pd.DataFrame, theory: Theory, length: int) -> Claims:
    claim = Claims("risk-and-parameters", source="derived here", box="two-opposite-heads")
    mild = frame[(frame["kind"] == "simulated") & (frame["tilt"] <= MILD_TILT)]
    one, two = mild[mild["heads"] == 1], mild[mild["heads"] == 2]
    there = np.isin(theory.tilts, one["tilt"])
    one_exact, two_exact = theory.one_exact[there], theory.two_exact[there]
    claim.agree(
        "one-head",
        f"Simulation and exact risk of one head agree at values of $u$ up to {MILD_TILT:g}",
        (one["error"] - one_exact) / one["std_error"],
        box="exact-risk-of-block-heads",
        rejects=("one head has the risk of two opposite heads", (one["error"] - two_exact) / one["std_error"]),
    )
    claim.agree(
        "two-heads-simulated",
        f"Simulation and exact risk of two opposite heads agree at values of $u$ up to {MILD_TILT:g}",
        (two["error"] - two_exact) / two["std_error"],
        source="measured here",
        box=None,
        rejects=("two opposite heads have the risk of one head", (two["error"] - one_exact) / two["std_error"]),
    )
    claim.equal(
        "two-heads",
        f"At $u = {theory.tilts[0]:g}$ and $L = {length:,}$ two opposite heads come within 5 % of the risk of the "
        "best linear head (ratio of the two exact risks).",
        theory.two_exact[0] / theory.linear,
        1,
        within=0.05,
        because="5 % for keys that are small but not zero",
        rejects=("one head with the same keys", theory.one_exact[0] / theory.linear),
    )
    small = theory.tilts <= SMALL_TILT
    tilts, limit = theory.tilts[small], theory.two_limit[small]
    uncorrelated = at_best_gain(np.asarray(valley_limit(tilts**2, DIMENSION)) / 2, length)
    claim.at_most(
        "opposite-law",
        f"Up to $u = {tilts.max():g}$ the exact risk of two heads at $L = {length:,}$ agrees with its limit "
        "for long prompts at the best gain, which accounts for the correlation of their fluctuations (largest relative "
        "difference).",
        np.abs(theory.two_exact[small] / limit - 1).max(),
        0,
        within=0.05,
        because="5 % for the finite prompt",
        rejects=("the fluctuations of the two heads are independent", np.abs(uncorrelated / limit - 1).max()),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw exact curves, the limit of two heads, and the simulated points on logarithmic axes."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.5))
    axes.set(xscale="log", yscale="log", xlabel=r"key $u$ of one head, $A=uI$, or of two, $A=\pm uI$")
    rows = dict(iter(table.groupby(["kind", "heads"])))
    ticks = rows["simulated", 1]["tilt"].tolist()
    for heads, mark, text in (
        (1, {"marker": "o", "color": "C0"}, "one head"),
        (2, {"marker": "s", "color": "C1"}, "two heads"),
    ):
        exact, points = rows["exact", heads], rows["simulated", heads]
        axes.plot(exact["tilt"], exact["error"], color=mark["color"], linewidth=2)
        error_bars(axes, points["tilt"], points["error"], points["std_error"], **mark)
        label(axes, ticks[1], np.interp(ticks[1], exact["tilt"], exact["error"]), text, mark["color"], xytext=(8, 11))
    limit, linear = rows["limit", 2], rows["linear", 1].iloc[0]
    axes.plot(limit["tilt"], limit["error"], color="C1", linestyle=":", linewidth=2)
    label(axes, *limit[["tilt", "error"]].iloc[-1], "two heads,\nlong prompts", "C1", xytext=(10, -3), fontsize=10)
    axes.axhline(linear["error"], color=ink(), linestyle="--", linewidth=1.3)
    label(axes, linear["tilt"], linear["error"], "best linear head", ink(), xytext=(0, -11))
    ticks_at(axes.xaxis, ticks)
    ticks_at(axes.yaxis, [20, 50, 100, 200, 500, 1000])
    axes.set(ylabel="mean square error times $L$", ylim=(20, 1.4 * rows["simulated", 1]["error"].max()))
    axes.legend([legend_line("-"), legend_point()], ["exact", "simulated"], loc="upper right", fontsize=10)
    return figure
