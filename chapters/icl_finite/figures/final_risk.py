r"""After training to the end, the length that a small risk needs is proportional to the inverse of this risk.

Left, for one dimension: the risk of the exact flow after infinite time (solid), at the time when the descents stop
(dashed), and at the head $(A^*,b^*)$ where the infinite flow ends (dotted), and the risk of the best linear attention
(orange). Points are the last losses of the descents, with two standard errors over seeds. Right: the least length
$L(\varepsilon)$ at which the risk after infinite time is below $\varepsilon$ (solid), and the same for the head
$(A^*,b^*)$ (dotted), in several dimensions and up to lengths far beyond real prompts.

Alt: Left, log-log chart of risk against length. Solid, dashed and dotted lines fall with length, the solid one
lowest of the three, an orange one below all; points are on the dashed line. Right, length against accuracy, over many
decades: solid lines of slope minus one, and dotted ones above them that rise faster.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from chapters.icl_finite.descents import StochasticDescents
from chapters.icl_finite.exact_flows import Flows, IsotropicProblem
from chapters.icl_finite.parameters import WAITED
from chapters.icl_finite.style import MARKERS
from chapters.icl_finite.valley_search import FinalRisk
from chapters.wording import listing
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label, legend_line, sequence
from lib.icl import LinearRegression
from lib.statistics import standard_error

# Distance in ln L between the longest descents and the end of the curves of the left panel.
BEYOND = 2.5


def longest_drawn(lengths: list[int]) -> float:
    """Return the largest ln L of the left panel, which is beyond the longest descents."""
    return float(np.log(max(lengths))) + BEYOND


def numbers(problem: IsotropicProblem, flows: Flows, runs: list[StochasticDescents], risks: list[FinalRisk]) -> Numbers:
    """Return final risks by length and dimension, and the claims on the end of the flow and the exponent of L(ε)."""
    same_dimension = [risk for risk in risks if risk.dimension == problem.task.dimension]
    claims = (_limit_claim(flows, same_dimension), _price_claim(pd.DataFrame(risks)))
    return Numbers(_table(problem.task, flows, runs, risks), claims)


def _table(task: LinearRegression, flows: Flows, runs: list[StochasticDescents], risks: list[FinalRisk]) -> Table:
    """Return the table of final risks by kind, dimension and length."""
    d, stop = task.dimension, runs[0].plan.loss_times[-1]
    rows = [("trained", risk.dimension, risk.log_length, risk.trained) for risk in risks]
    rows += [("infinite limit", risk.dimension, risk.log_length, risk.at_limit) for risk in risks]
    for log_length in (risk.log_length for risk in risks if risk.dimension == d):
        linear = float(task.linear_attention_risk(np.exp(log_length)))
        rows.append(("linear attention", d, log_length, linear))
    rows += [("stopped", d, flow.log_length, flow.risk_at(stop)) for flow in flows.finite]
    rows = [(*exact, np.nan) for exact in rows]
    rows += [(run.sampling, d, np.log(run.length), run.end.mean(), standard_error(run.end)) for run in runs]
    columns = {
        "kind": Column(
            (
                "`trained`: exact flow after infinite time; `infinite limit`: head $(A*, b*)$ where the infinite "
                "flow ends; `stopped`: exact flow when the descents stop; `linear attention`: the best one; "
                "`collapsed`, `plain`: stochastic descent"
            ),
            "name",
        ),
        "dimension": Column("Dimension $d$, with $Σ = I$"),
        "log_length": Column("$ln L$"),
        "risk": Column("Risk; for descents, mean loss of the last steps", std_error="std_error"),
        "std_error": Column("Standard error over seeds", moves_with="risk"),
    }
    return Table(pd.DataFrame(rows, columns=list(columns)), columns)


def _limit_claim(flows: Flows, risks: list[FinalRisk]) -> Claim:
    """Claim that the flow has the least risk at the horizon, for lengths that are short compared with the horizon."""
    horizon = flows.infinite.times[-1]
    ended = [flow for flow in flows.finite if WAITED * np.exp(flow.log_length) <= horizon]
    least = {risk.log_length: risk for risk in risks}
    excess = [flow.risk[-1] / least[flow.log_length].trained - 1 for flow in ended]
    limit_excess = [least[flow.log_length].at_limit / least[flow.log_length].trained - 1 for flow in ended]
    return Claim(
        id="icl-finite-limit",
        statement=(
            "The flow on finite prompts ends at the least risk of all heads $A = uI$ (measured: the largest "
            f"relative excess at time {horizon:,g}, for $L = {', '.join(flow.prompt for flow in ended)}$)."
        ),
        source="measured here",
        measured=float(np.max(np.abs(excess))),
        expected=0.0,
        tolerance=1e-3,
        reason=f"what may remain of the exponential approach after {WAITED:g} times the length, with room",
        relation="≤",
        alternative=Alternative("it ends at the head of the infinite flow", float(np.max(limit_excess))),
    )


def _price_claim(risks: pd.DataFrame) -> Claim:
    """Claim that the slope of `ln L` in `ln 1/ε` is 1 at the longest prompts."""

    def farthest(column: str) -> float:
        ends = [curve.tail(2) for _, curve in risks.groupby("dimension")]
        exponents = [-np.diff(end["log_length"]) / np.diff(np.log(end[column])) for end in ends]
        return float(np.max(np.abs(np.subtract(exponents, 1))))

    return Claim(
        id="icl-finite-price",
        statement=(
            "The length $L(ε)$ that an accuracy $ε$ needs grows like $1/ε$ (measured: the largest distance of "
            "the exponent at the longest prompts from 1, in dimensions "
            f"{listing(str(d) for d in risks['dimension'].unique())})."
        ),
        source="measured here",
        measured=farthest("trained"),
        expected=0.0,
        tolerance=0.01,
        reason="corrections to the power are far smaller at the longest prompts; other theories differ by much more",
        relation="≤",
        alternative=Alternative("the head stays where the infinite flow ends", farthest("at_limit")),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw risk against length in one dimension, and length against accuracy in several."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.5), width_ratios=(1, 1.1))
    left.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="risk")
    right.set(
        xscale="log", yscale="log", xlabel=r"accuracy $\varepsilon$", ylabel=r"necessary length, $L(\varepsilon)$"
    )
    descents = table[table["kind"].isin(list(MARKERS))]
    dimension, end = descents["dimension"].max(), descents["log_length"].max() + BEYOND
    curves = {
        "infinite limit": (":", ink(), r"head of $L=\infty$", 9),
        "stopped": ("--", "0.5", "stopped", -12),
        "trained": ("-", "C0", "trained to\nthe end", 0),
        "linear attention": ("-", "C1", "best linear", 0),
    }
    drawn = table[(table["dimension"] == dimension) & (table["log_length"] <= end)]
    for kind, (dash, colour, name, up) in curves.items():
        curve = drawn[drawn["kind"] == kind].sort_values("log_length")
        left.plot(np.exp(curve["log_length"]), curve["risk"], dash, color=colour, linewidth=2)
        last = curve.iloc[-1]
        label(
            left, np.exp(last["log_length"]), last["risk"], name, colour, xytext=(6, up), fontsize=10, linespacing=0.95
        )
    for kind, points in descents.groupby("kind", sort=False):
        look = {"marker": MARKERS[kind], "color": ink(), "label": f"descent, {kind} prompts"}
        error_bars(left, np.exp(points["log_length"]), points["risk"], points["std_error"], **look)
    left.set_title(f"risk by length, $d={dimension}$")
    left.legend(loc="lower left", fontsize=9, handletextpad=0.2)
    dimensions = sorted(table[table["kind"] == "trained"]["dimension"].unique())
    for place, (d, colour) in enumerate(zip(dimensions, sequence(len(dimensions)), strict=True)):
        for kind, dash in (("trained", "-"), ("infinite limit", ":")):
            curve = table[(table["kind"] == kind) & (table["dimension"] == d)].sort_values("log_length")
            right.plot(curve["risk"], np.exp(curve["log_length"]), dash, color=colour, linewidth=2)
        right.annotate(
            f"$d={d}$",
            (0.98, 0.96 - 0.075 * place),
            xycoords="axes fraction",
            color=colour,
            ha="right",
            va="top",
            fontsize=11,
        )
    right.set(xlim=(1e-8, 1), ylim=(1, 1e12), title="length by accuracy and dimension")
    right.text(0.04, 0.22, "10 times the accuracy:\n10 times the length", transform=right.transAxes, fontsize=10)
    lines = {"trained to the end": legend_line("-"), r"head of $L=\infty$": legend_line(":")}
    right.legend(list(lines.values()), list(lines), loc="lower left", fontsize=10)
    for axis in (right.xaxis, right.yaxis):
        axis.set_major_locator(LogLocator(numticks=5))
        axis.set_minor_locator(NullLocator())
    return figure
