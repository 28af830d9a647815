r"""What length buys: the risk at the end of training, and the length that an accuracy costs.

Left, for one dimension: the risk of the exact flow after infinite time (solid), where the descents stopped
(dashed), at the head $(A^*,b^*)$ where the infinite flow ends (dotted), and that of the best linear attention
(orange); points are the descents' last losses with two standard errors, from seeds. Right: the least length
$L(\varepsilon)$ at which the risk after infinite time is below $\varepsilon$ (solid), and the same for the head
$(A^*,b^*)$ (dotted), in several dimensions, up to lengths that no one has.

Alt: Left, log-log chart of risk against length. Solid, dashed and dotted lines fall with length, the solid one
lowest of the three, an orange one below all; points lie on the dashed line. Right, length against accuracy, over many
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
from chapters.icl_finite.style import MARKERS, SIZE
from chapters.icl_finite.valley_search import Price
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, headline, ink, label, legend_line, sequence
from lib.icl import LinearRegression
from lib.statistics import standard_error

# The risk is drawn up to so much more than the ln L of the longest descents.
BEYOND = 2.5


def beyond(lengths: list[int]) -> float:
    """ln L up to which risks against length are drawn: beyond the longest descents."""
    return float(np.log(max(lengths))) + BEYOND


def numbers(problem: IsotropicProblem, flows: Flows, runs: list[StochasticDescents], prices: list[Price]) -> Numbers:
    """Risks at the end by length and dimension; where the flow ends, and the exponent of L(ε)."""
    mine = [price for price in prices if price.dimension == problem.task.dimension]
    claims = (_limit_claim(flows, mine), _price_claim(pd.DataFrame(prices)))
    return Numbers(_table(problem.task, flows, runs, prices), claims)


def _table(task: LinearRegression, flows: Flows, runs: list[StochasticDescents], prices: list[Price]) -> Table:
    """Final risks at the lengths of the runs, and the price curves."""
    d, stop = task.dimension, runs[0].plan.loss_times[-1]
    rows = [("trained", price.dimension, price.log_length, price.trained) for price in prices]
    rows += [("infinite limit", price.dimension, price.log_length, price.at_limit) for price in prices]
    for log_length in (price.log_length for price in prices if price.dimension == d):
        linear = float(task.linear_attention_risk(np.exp(log_length)))
        rows.append(("linear attention", d, log_length, linear))
    rows += [("stopped", d, flow.log_length, flow.risk_at(stop)) for flow in flows.finite]
    rows = [(*exact, np.nan) for exact in rows]
    rows += [(run.sampling, d, np.log(run.length), run.end.mean(), standard_error(run.end)) for run in runs]
    columns = {
        "kind": Column(
            "Exact: the flow after infinite time, the head (A*, b*) where the infinite prompt's flow ends, the flow "
            "stopped when the descents stop, best linear attention; stochastic descent, collapsed or plain",
            "name",
        ),
        "dimension": Column("d, for Σ = I"),
        "log_length": Column("ln L"),
        "risk": Column("Risk; of descents, mean loss of the last steps", std_error="std_error"),
        "std_error": Column("Standard error over seeds", moves_with="risk"),
    }
    return Table(pd.DataFrame(rows, columns=list(columns)), columns)


def _limit_claim(flows: Flows, mine: list[Price]) -> Claim:
    """The flow's risk at the horizon against the least one, where the horizon is long compared to L."""
    horizon = flows.infinite.times[-1]
    reached = [flow for flow in flows.finite if WAITED * np.exp(flow.log_length) <= horizon]
    least = {price.log_length: price for price in mine}
    excess = [flow.risk[-1] / least[flow.log_length].trained - 1 for flow in reached]
    elsewhere = [least[flow.log_length].at_limit / least[flow.log_length].trained - 1 for flow in reached]
    return Claim(
        id="icl-finite-limit",
        statement=(
            f"The finite-prompt flow ends at the least risk of all heads A = uI: its largest relative excess at time "
            f"{horizon:g}, for L = {', '.join(flow.prompt for flow in reached)}."
        ),
        source="measured here",
        measured=float(np.max(np.abs(excess))),
        expected=0.0,
        tolerance=1e-3,
        relation="≤",
        alternative=Alternative("it ends where the infinite-prompt flow does", float(np.max(elsewhere))),
    )


def _price_claim(prices: pd.DataFrame) -> Claim:
    """Slope of `ln L` in `ln 1/ε` at the longest prompts."""

    def farthest(column: str) -> float:
        ends = [curve.tail(2) for _, curve in prices.groupby("dimension")]
        exponents = [-np.diff(end["log_length"]) / np.diff(np.log(end[column])) for end in ends]
        return float(np.max(np.abs(np.subtract(exponents, 1))))

    return Claim(
        id="icl-finite-price",
        statement=(
            f"L(ε) grows like 1/ε: the exponent at the longest prompts, in dimensions "
            f"{', '.join(str(d) for d in prices['dimension'].unique())}: the largest distance from 1."
        ),
        source="measured here",
        measured=farthest("trained"),
        expected=0.0,
        tolerance=0.01,
        relation="≤",
        alternative=Alternative("the head is left where the infinite flow ends", farthest("at_limit")),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Risk against length in one dimension; length against accuracy in several."""
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE, width_ratios=(1, 1.1))
    left.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="risk")
    right.set(xscale="log", yscale="log", xlabel=r"accuracy $\varepsilon$", ylabel=r"length it takes, $L(\varepsilon)$")
    descents = table[table["kind"].isin(list(MARKERS))]
    dimension, end = descents["dimension"].max(), descents["log_length"].max() + BEYOND
    curves = {
        "infinite limit": (":", ink(), r"head of $L=\infty$", 9),
        "stopped": ("--", "0.5", "stopped", -12),
        "trained": ("-", "C0", "trained to\nthe end", 0),
        "linear attention": ("-", "C1", "best linear", 0),
    }
    mine = table[(table["dimension"] == dimension) & (table["log_length"] <= end)]
    for kind, (dash, colour, name, up) in curves.items():
        curve = mine[mine["kind"] == kind].sort_values("log_length")
        left.plot(np.exp(curve["log_length"]), curve["risk"], dash, color=colour, linewidth=2)
        last = curve.iloc[-1]
        label(
            left, np.exp(last["log_length"]), last["risk"], name, colour, xytext=(6, up), fontsize=10, linespacing=0.95
        )
    for kind, points in descents.groupby("kind", sort=False):
        look = {"marker": MARKERS[kind], "color": ink(), "label": f"descent, {kind} prompts"}
        error_bars(left, np.exp(points["log_length"]), points["risk"], points["std_error"], **look)
    left.set_title(f"what length buys, $d={dimension}$")
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
    right.set_title("what accuracy costs, by dimension")
    lines = {"trained to the end": legend_line("-"), r"head of $L=\infty$": legend_line(":")}
    right.legend(list(lines.values()), list(lines), loc="lower left", fontsize=10)
    for axis in (right.xaxis, right.yaxis):
        axis.set_major_locator(LogLocator(numticks=5))
        axis.set_minor_locator(NullLocator())
    headline(figure, "Trained to the end, a head gains accuracy in proportion to length")
    return figure
