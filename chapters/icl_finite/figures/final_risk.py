r"""After training to the end, the length that a small risk needs is proportional to the inverse of this risk.

Left, for one value of $d$: the risk of the exact flow after infinite time (solid), at the time when the descents stop
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
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label, legend_line, sequence
from lib.statistics import standard_error

# Distance in ln L between the longest descents and the end of the curves of the left panel.
BEYOND = 2.5


def numbers(problem: IsotropicProblem, flows: Flows, runs: list[StochasticDescents], risks: list[FinalRisk]) -> Numbers:
    """Return final risks by length and dimension, and the claims on the end of the flow and the exponent of L(ε)."""
    d, stop = problem.task.dimension, runs[0].plan.loss_times[-1]
    same_dimension = {risk.log_length: risk for risk in risks if risk.dimension == d}
    rows = [("trained", risk.dimension, risk.log_length, risk.trained) for risk in risks]
    rows += [("infinite limit", risk.dimension, risk.log_length, risk.at_limit) for risk in risks]
    for log_length in same_dimension:
        linear = float(problem.task.linear_attention_risk(np.exp(log_length)))
        rows.append(("linear attention", d, log_length, linear))
    rows += [("stopped", d, flow.log_length, flow.risk_at(stop)) for flow in flows.finite]
    rows = [(*exact, np.nan) for exact in rows]
    rows += [(run.sampling, d, np.log(run.length), run.end.mean(), standard_error(run.end)) for run in runs]
    columns = {
        "kind": Column(
            "`trained`: exact flow after infinite time; `infinite limit`: head $(A*, b*)$ where the infinite "
            "flow ends; `stopped`: exact flow when the descents stop; `linear attention`: the best one; "
            "`collapsed`, `plain`: stochastic descent",
            "name",
        ),
        "dimension": Column("Dimension $d$, with $Σ = I$"),
        "log_length": Column("$ln L$"),
        "risk": Column("Risk; for descents, mean loss of the last steps", std_error="std_error"),
        "std_error": Column("Standard error over seeds", moves_with="risk"),
    }
    # the flow has the least risk at the horizon, for lengths that are short compared with the horizon
    horizon = flows.infinite.times[-1]
    ended = [flow for flow in flows.finite if WAITED * np.exp(flow.log_length) <= horizon]
    least = [same_dimension[flow.log_length] for flow in ended]
    claim = Claims("icl-finite", source="measured here")
    claim.at_most(
        "limit",
        "The flow on finite prompts ends at the least risk of all heads $A = uI$ (measured: the largest "
        f"relative excess at time {horizon:,g}, for $L = {', '.join(flow.prompt for flow in ended)}$).",
        max(abs(flow.risk[-1] / risk.trained - 1) for flow, risk in zip(ended, least, strict=True)),
        0,
        within=1e-3,
        because=f"what may remain of the exponential approach after {WAITED:g} times the length, with room",
        rejects=("it ends at the head of the infinite flow", max(risk.at_limit / risk.trained - 1 for risk in least)),
    )
    table = pd.DataFrame(risks)
    claim.at_most(
        "price",
        "The length $L(ε)$ that an accuracy $ε$ needs grows like $1/ε$ (measured: the largest distance of "
        "the exponent at the longest prompts from 1, in dimensions "
        f"{listing(str(d) for d in table['dimension'].unique())}).",
        _farthest_from_one(table, "trained"),
        0,
        within=0.01,
        because="corrections to the power are far smaller at the longest prompts; other theories differ by much more",
        rejects=("the head stays where the infinite flow ends", _farthest_from_one(table, "at_limit")),
    )
    return Numbers(Table(pd.DataFrame(rows, columns=list(columns)), columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw risk against length in one dimension, and length against accuracy in several."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.5), width_ratios=(1, 1.1))
    left.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="risk")
    right.set(xscale="log", yscale="log", xlabel=r"accuracy $\varepsilon$")
    right.set_ylabel(r"necessary length, $L(\varepsilon)$")
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
        last, look = curve.iloc[-1], {"xytext": (6, up), "fontsize": 10, "linespacing": 0.95}
        label(left, np.exp(last["log_length"]), last["risk"], name, colour, **look)
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
        look = {"color": colour, "ha": "right", "va": "top", "fontsize": 11}
        right.text(0.98, 0.96 - 0.075 * place, f"$d={d}$", transform=right.transAxes, **look)
    right.set(xlim=(1e-8, 1), ylim=(1, 1e12), title="length by accuracy and dimension")
    right.text(0.04, 0.22, "10 times the accuracy:\n10 times the length", transform=right.transAxes, fontsize=10)
    lines = {"trained to the end": legend_line("-"), r"head of $L=\infty$": legend_line(":")}
    right.legend(list(lines.values()), list(lines), loc="lower left", fontsize=10)
    for axis in (right.xaxis, right.yaxis):
        axis.set_major_locator(LogLocator(numticks=5))
        axis.set_minor_locator(NullLocator())
    return figure


def _farthest_from_one(risks: pd.DataFrame, column: str) -> float:
    """Return the largest distance from 1 of the slope of `ln L` in `ln 1/ε` at the longest prompts."""
    ends = [curve.tail(2) for _, curve in risks.groupby("dimension")]
    exponents = [-np.diff(end["log_length"]) / np.diff(np.log(end[column])) for end in ends]
    return np.abs(np.subtract(exponents, 1)).max()


def longest_drawn(lengths: list[int]) -> float:
    """Return the largest ln L of the left panel, which is beyond the longest descents."""
    return float(np.log(max(lengths))) + BEYOND
