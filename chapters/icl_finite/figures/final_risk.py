r"""After training to the end, the length that a small risk needs is proportional to the inverse of this risk.

Left: the least length $L(\varepsilon)$ at which the least risk of heads $uI$, where flows were found to end, is below
$\varepsilon$ (solid), and the same for the head $(A^*,b^*)$ where the infinite flow ends (dotted), up to lengths far
beyond real prompts. Right, for one value of $d$: these risks against the length. Points are the last losses of the
descents, with two standard errors over seeds.

Alt: Left, length against risk, over many decades: solid lines of slope minus one, and dotted ones above them that rise
faster. Right, log-log chart of risk against length. Solid, dashed and dotted lines fall with length, the solid one
lowest of the three, an orange one below all; points are on the dashed line.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.icl_finite.descents import StochasticDescents
from chapters.icl_finite.exact_flows import Flows, IsotropicProblem
from chapters.icl_finite.parameters import WAITED
from chapters.icl_finite.style import MARKERS
from chapters.icl_finite.valley_search import FinalRisk
from chapters.wording import listing
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label, legend_line, legend_with, sequence
from lib.statistics import standard_error

# Distance in ln L between the longest descents and the end of the curves of the right panel.
BEYOND = 2.5
# Smallest risk and largest length of the left panel.
SMALLEST, LARGEST = 1e-8, 1e12


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
        "The length $L(ε)$ at which the least risk of heads $uI$ is $ε$ grows like $1/ε$ (measured: the largest "
        "distance of the exponent at the longest prompts from 1, in dimensions "
        f"{listing(str(d) for d in table['dimension'].unique())}).",
        _farthest_from_one(table, "trained"),
        0,
        within=0.01,
        because="corrections to the power are far smaller at the longest prompts; other theories differ by much more",
        rejects=("the head stays where the infinite flow ends", _farthest_from_one(table, "at_limit")),
    )
    return Numbers(Table(pd.DataFrame(rows, columns=list(columns)), columns), claim)


def draw(table: pd.DataFrame) -> Figure:
    """Draw length against accuracy in several dimensions, and risk against length in one."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDE, 4.8), width_ratios=(1.25, 1))
    dimensions = sorted(table[table["kind"] == "trained"]["dimension"].unique())
    for d, colour in zip(dimensions, sequence(len(dimensions)), strict=True):
        for kind, dash in (("trained", "-"), ("infinite limit", ":")):
            curve = table[(table["kind"] == kind) & (table["dimension"] == d)].sort_values("risk")
            # the line between the lengths of the table, inside the panel
            logs = np.linspace(max(np.log(SMALLEST), np.log(curve["risk"].min())), np.log(curve["risk"].max()), 200)
            log_length = np.interp(logs, np.log(curve["risk"]), curve["log_length"])
            inside = log_length <= np.log(LARGEST)
            risk, length = np.exp(logs[inside]), np.exp(log_length[inside])
            left.plot(risk, length, dash, color=colour, linewidth=2)
            if kind == "trained":
                label(left, risk[0], length[0], f"$d={d}$", colour, xytext=(-6, 0), ha="right")
            if d == dimensions[0] and kind == "trained":
                corner = np.exp(np.interp(np.log([1e-7, 1e-6]), logs, log_length)) / 30
    left.plot([1e-6, 1e-7, 1e-7], [corner[1], corner[1], corner[0]], color=ink(), linewidth=1.2)
    left.text(1e-7, corner[1] / 2, "risk 10 times smaller:\nlength 10 times larger", va="top", ha="center")
    left.set(xscale="log", yscale="log", xlim=(SMALLEST / 300, 1), ylim=(1, LARGEST))
    left.set(xlabel=r"risk to reach, $\varepsilon$", ylabel=r"necessary length, $L(\varepsilon)$")
    left.set_title("length by risk, in $d$ dimensions")
    lines = {"trained to the end": legend_line("-"), r"head of $L=\infty$": legend_line(":")}
    legend_with(left, lines, loc="lower left")
    left.locator_params(numticks=5)
    left.minorticks_off()
    right.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="risk")
    descents = table[table["kind"].isin(list(MARKERS))]
    dimension, end = descents["dimension"].max(), descents["log_length"].max() + BEYOND
    curves = {
        "infinite limit": (":", ink(), r"head of $L=\infty$", 9),
        "stopped": ("--", "0.5", "when descent stops", -10),
        "trained": ("-", "C0", "trained to\nthe end", 0),
        "linear attention": ("-", "C1", "best linear", 0),
    }
    drawn = table[(table["dimension"] == dimension) & (table["log_length"] <= end)]
    for kind, (dash, colour, name, up) in curves.items():
        curve = drawn[drawn["kind"] == kind].sort_values("log_length")
        right.plot(np.exp(curve["log_length"]), curve["risk"], dash, color=colour, linewidth=2)
        last, look = curve.iloc[-1], {"xytext": (6, up), "fontsize": 10, "linespacing": 0.95}
        label(right, np.exp(last["log_length"]), last["risk"], name, colour, **look)
    error_bars(right, np.exp(descents["log_length"]), descents["risk"], descents["std_error"], color=ink(), marker="o")
    place = descents.sort_values("log_length").iloc[len(descents) // 2]
    label(right, np.exp(place["log_length"]), place["risk"], "points: descent", ink(), xytext=(8, 14))
    right.set_title(f"risk by length, $d={dimension}$")
    return figure


def _farthest_from_one(risks: pd.DataFrame, column: str) -> float:
    """Return the largest distance from 1 of the slope of `ln L` in `ln 1/ε` at the longest prompts."""
    ends = [curve.tail(2) for _, curve in risks.groupby("dimension")]
    exponents = [-np.diff(end["log_length"]) / np.diff(np.log(end[column])) for end in ends]
    return np.abs(np.subtract(exponents, 1)).max()


def longest_drawn(lengths: list[int]) -> float:
    """Return the largest ln L of the right panel, which is beyond the longest descents."""
    return float(np.log(max(lengths))) + BEYOND
