r"""Training on finite prompts: stochastic descent on exact curves.

Left: the risk; right: the gain $b$; both against time, which for descents is step size times number of steps.
Curves: the exact gradient flow of each length, and of the infinite prompt. Points: stochastic gradient
descent on fresh prompts, the mean over seeds with two standard errors (bars, mostly smaller than the point); dots,
collapsed prompts; crosses, plain ones. The infinite prompt's risk goes to 0. That of a finite one leaves it for a
level of its own; risk and gain then go on changing for a time of order $L$.

Alt: Two panels over logarithmic time. Left, on a logarithmic scale, the risk of the infinite prompt plunges; curves of
finite lengths leave it one after the other and level off, the shorter the higher, with points on each. Right, gains
rise together; that of the infinite prompt settles, while those of longer finite prompts climb further much later.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.icl_finite.descents import LONGER, StochasticDescents
from chapters.icl_finite.exact_flows import Flows
from chapters.icl_finite.style import MARKERS, SIZE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import error_bars, headline, ink, label, sequence
from lib.statistics import standard_error, student_quantile, worst_deviation


def numbers(flows: Flows, runs: list[StochasticDescents]) -> Numbers:
    """Curves of the flows, points of the descents; each descent follows the exact one of its own length."""
    return Numbers(_table(flows, runs), (_loss_claim(runs), _gain_claim(runs)))


def _table(flows: Flows, runs: list[StochasticDescents]) -> Table:
    """Curves of the flows at the lengths of the runs, and points of the runs."""
    lengths, frames = {str(run.length) for run in runs}, []
    for quantity in ("risk", "gain"):
        for flow in (*(flow for flow in flows.finite if flow.prompt in lengths), flows.infinite):
            common = {"prompt": flow.prompt, "kind": "flow", "quantity": quantity}
            frames.append(pd.DataFrame({**common, "time": flow.times, "value": getattr(flow, quantity)}))
    for run in runs:
        common = {"prompt": str(run.length), "kind": run.sampling}
        for quantity, times, samples, exact in (
            ("risk", run.plan.loss_times, run.loss, run.exact.loss),
            ("gain", run.plan.gain_times, run.gain, run.exact.gain),
        ):
            measured = {"value": samples.mean(axis=0), "std_error": standard_error(samples), "descent": exact}
            frames.append(pd.DataFrame({**common, "quantity": quantity, "time": times, **measured}))
    columns = {
        "prompt": Column("Number of tokens L", "name"),
        "kind": Column("Exact flow, or stochastic descent on prompts drawn in the collapsed or the plain way", "name"),
        "quantity": Column("Risk, ½ the mean square error; or gain b", "name"),
        "time": Column("Time of the flow; step size times number of steps; middle of the steps averaged, for risks"),
        "value": Column("Exact value, or mean over seeds", std_error="std_error", absolute=1e-9),
        "std_error": Column("Standard error of that mean over seeds", moves_with="value"),
        "descent": Column("The same of gradient descent on the exact risk, with the same step", absolute=1e-9),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _loss_claim(runs: list[StochasticDescents]) -> Claim:
    """Training losses against the exact descent, at all lengths, all along."""
    comparisons = sum(run.exact.loss.size for run in runs)
    return Claim(
        id="icl-finite-training",
        statement=(
            f"Stochastic descent follows the exact risk of its own length all along, at L = {_lengths(runs)}: the "
            f"worst of {comparisons} deviations of the mean loss over seeds, in standard errors."
        ),
        source="derived here",
        box="exact-risk-of-block-heads",
        measured=max(worst_deviation(run.loss - run.exact.loss) for run in runs),
        expected=0.0,
        tolerance=student_quantile(comparisons, len(runs[0].loss)),
        relation="≤",
        alternative=Alternative(
            "it follows the infinite prompt's", max(worst_deviation(run.loss - run.infinite.loss) for run in runs)
        ),
    )


def _gain_claim(runs: list[StochasticDescents]) -> Claim:
    """Parameters against the exact descent; and against one with longer steps."""
    comparisons = sum(run.exact.gain.size for run in runs)
    return Claim(
        id="icl-finite-gain",
        statement=(
            f"So do the parameters: the worst of {comparisons} deviations of the mean gain over seeds from the exact "
            "descent, in standard errors."
        ),
        source="derived here",
        box="exact-risk-of-block-heads",
        measured=max(worst_deviation(run.gain - run.exact.gain) for run in runs),
        expected=0.0,
        tolerance=student_quantile(comparisons, len(runs[0].gain)),
        relation="≤",
        alternative=Alternative(
            f"a descent with steps {LONGER - 1:.0%} longer",
            max(worst_deviation(run.gain - run.hasty.gain) for run in runs),
        ),
    )


def _lengths(runs: list[StochasticDescents]) -> str:
    return ", ".join(str(length) for length in sorted({run.length for run in runs}))


def draw(table: pd.DataFrame) -> Figure:
    """Risk and gain over time: a curve a length, points of the descents."""
    figure, panels = plt.subplots(1, 2, figsize=SIZE, sharex=True)
    prompts = sorted((prompt for prompt in table["prompt"].unique() if prompt != "infinite"), key=int)
    colours = {**dict(zip(prompts, sequence(len(prompts)), strict=True)), "infinite": ink()}
    for panel, quantity in zip(panels, ("risk", "gain"), strict=True):
        shown = table[table["quantity"] == quantity]
        for (prompt, kind), curve in shown.groupby(["prompt", "kind"], sort=False):
            if kind == "flow":
                panel.plot(curve["time"], curve["value"], color=colours[prompt], linewidth=1.8)
                continue
            mark = {"marker": MARKERS[kind], "markersize": 4 if kind == "collapsed" else 6, "elinewidth": 1.2}
            error_bars(panel, curve["time"], curve["value"], curve["std_error"], **mark, color=colours[prompt])
        panel.set(xscale="log", xlabel="time")
    risks = table[(table["quantity"] == "risk") & (table["prompt"] != "infinite")]["value"]
    panels[0].set(yscale="log", ylabel="risk", ylim=(risks.min() / 4, 2 * risks.max()))
    panels[1].set(ylabel="gain $b$")
    gains = table[(table["quantity"] == "gain") & (table["kind"] == "flow")]
    for prompt, curve in gains.groupby("prompt", sort=False):
        name = r"$L=\infty$" if prompt == "infinite" else rf"$L={prompt}$"
        label(panels[1], curve["time"].max(), curve["value"].iloc[-1], name, colours[prompt])
    kinds = [kind for kind in MARKERS if kind in set(table["kind"])]
    look = {"color": ink(), "linestyle": "none", "markersize": 5}
    marks = [Line2D([], [], marker=MARKERS[kind], **look) for kind in kinds]
    panels[1].legend(marks, [f"descent, {kind}" for kind in kinds], loc="upper left", fontsize=10, handletextpad=0.2)
    headline(figure, "Finite prompts leave the infinite flow, each at a level of its own")
    return figure
