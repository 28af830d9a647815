r"""Training on finite prompts follows the infinite flow and then leaves it, at a level that depends on the length.

Curves are exact gradient flows. Points are stochastic gradient descent on new prompts, the mean over seeds with two
standard errors (bars); time is step size times number of steps. Prompts are drawn as tokens or in the collapsed way, as
sums. After the fast fall risk and gain still change, on long prompts for a long time.

Alt: Two panels over logarithmic time. Left, on a logarithmic scale, the risk of the infinite prompt plunges; curves of
finite lengths leave it one after the other and level off, shorter lengths at higher levels, with points on each curve.
Right, gains rise together; the gain of the infinite prompt settles, and the gains of longer finite prompts rise
further much later.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.icl_finite.descents import LONGER, StochasticDescents, noise_bias
from chapters.icl_finite.exact_flows import Flows
from chapters.icl_finite.style import MARKERS
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label, legend_with, sequence
from lib.statistics import comparison_quantile, standard_error, tells_apart, worst_deviation

# Names of the samplers in the picture.
DRAWN = {"collapsed": "as sums", "plain": "as tokens"}
# A run, its samples, the exact descent that they should follow, and another.
Compared = tuple[StochasticDescents, np.ndarray, np.ndarray, np.ndarray]


def numbers(flows: Flows, runs: list[StochasticDescents]) -> Numbers:
    """Return the flows and descents, and the claims that descents follow the exact descent of the same length."""
    lengths, groups, exact_descents = {str(run.length) for run in runs}, [], {}
    for quantity in ("risk", "gain"):
        for flow in (*(flow for flow in flows.finite if flow.prompt in lengths), flows.infinite):
            common = {"prompt": flow.prompt, "kind": "flow", "quantity": quantity}
            groups.append({**common, "time": flow.times, "value": getattr(flow, quantity)})
    for run in runs:
        for quantity, times, samples, exact in (
            ("risk", run.plan.loss_times, run.loss, run.exact.loss),
            ("gain", run.plan.gain_times, run.gain, run.exact.gain),
        ):
            common = {"prompt": str(run.length), "quantity": quantity, "time": times}
            measured = {"value": samples.mean(axis=0), "std_error": standard_error(samples)}
            groups.append({**common, "kind": run.sampling, **measured})
            # descents on collapsed and on plain prompts of one length follow the same exact descent
            exact_descents[run.length, quantity] = {**common, "kind": "descent", "value": exact}
    groups += exact_descents.values()
    columns = {
        "prompt": Column("Number of tokens $L$", "name"),
        "kind": Column("Exact `flow` or `descent`, or stochastic descent on `collapsed` or `plain` prompts", "name"),
        "quantity": Column("Risk, half the mean square error, or gain $b$", "name"),
        "time": Column("Time; for descents, step size times number of steps (risks: middle of the averaged steps)"),
        "value": Column("Exact value, or mean over seeds", std_error="std_error", absolute=1e-9),
        "std_error": Column("Standard error of the mean over seeds", moves_with="value"),
    }
    claim = Claims("icl-finite", source="derived here", box="exact-risk-of-block-heads")
    lengths = ", ".join(str(length) for length in sorted({run.length for run in runs}))
    _claim_agreement(
        claim,
        "training",
        "The mean loss of stochastic descent agrees with the descent on the exact risk of the same length, "
        f"at $L = {lengths}$",
        [(run, run.loss, run.exact.loss, run.infinite.loss) for run in runs],
        other="the descent on the risk of the infinite prompt",
    )
    _claim_agreement(
        claim,
        "gain",
        "The mean gain of stochastic descent agrees with the gain of the descent on the exact risk of the same length",
        [(run, run.gain, run.exact.gain, run.longer_steps.gain) for run in runs],
        other=f"a descent with {LONGER - 1:.0%} longer steps",
    )
    return Numbers(Table.of(groups, columns), claim)


def _claim_agreement(claim: Claims, id: str, statement: str, compared: list[Compared], *, other: str) -> None:
    """Claim that samples follow the exact descent and not another, unless they cannot tell the two apart."""
    comparisons = sum(exact.size for _, _, exact, _ in compared)
    # the quantile of the noise, and the largest bias
    bias = max(noise_bias(run.plan, run.length, run.dimension) for run, *_ in compared)
    tolerance = comparison_quantile(comparisons, samples=len(compared[0][1])) + bias
    claim.agree(
        id,
        statement,
        [worst_deviation(samples - exact) for _, samples, exact, _ in compared],
        within=tolerance,
        because=f"99.9 % quantile of the largest of {comparisons} deviations with Student's distribution, and the bias "
        "of the mean of descents with noise, which is of order $d²$ √(step · time · seeds/batch) standard errors",
        rejects=(f"it follows {other}", [worst_deviation(samples - theory) for _, samples, _, theory in compared]),
        comparisons=comparisons,
        requires=(
            any(
                tells_apart(exact - theory, standard_error(samples), tolerance)
                for _, samples, exact, theory in compared
            ),
            f"until the end of these descents {other} differs by less than twice the tolerance, {2 * tolerance:.3g} "
            "standard errors, so that the simulation cannot tell them apart",
        ),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw risk and gain over time, with one curve per length and the points of the descents."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.5), sharex=True)
    prompts = sorted((prompt for prompt in table["prompt"].unique() if prompt != "infinite"), key=int)
    colours = {**dict(zip(prompts, sequence(len(prompts)), strict=True)), "infinite": ink()}
    for panel, quantity in zip(panels, ("risk", "gain"), strict=True):
        shown = table[(table["quantity"] == quantity) & (table["kind"] != "descent")]
        for (prompt, kind), curve in shown.groupby(["prompt", "kind"], sort=False):
            if kind == "flow":
                panel.plot(curve["time"], curve["value"], color=colours[prompt], linewidth=1.8)
                continue
            look = {"marker": MARKERS[kind], "markersize": 4 if kind == "collapsed" else 6, "elinewidth": 1.2}
            error_bars(panel, curve["time"], curve["value"], curve["std_error"], **look, color=colours[prompt])
        panel.set(xscale="log", xlabel="time")
    risks = table[(table["quantity"] == "risk") & (table["prompt"] != "infinite")]["value"]
    panels[0].set(yscale="log", ylabel="risk", ylim=(risks.min() / 4, 2 * risks.max()))
    panels[1].set(ylabel="gain $b$")
    for (prompt, quantity), curve in table[table["kind"] == "flow"].groupby(["prompt", "quantity"], sort=False):
        panel, name = panels[int(quantity == "gain")], r"$L=\infty$" if prompt == "infinite" else rf"$L={prompt}$"
        shown = curve[curve["value"] > panel.get_ylim()[0]].iloc[-1]
        up = 0 if shown.equals(curve.iloc[-1]) else 8
        label(panel, shown["time"], shown["value"], name, colours[prompt], xytext=(6, up))
    kinds = [kind for kind in MARKERS if kind in set(table["kind"])]
    look = {"color": ink(), "linestyle": "none", "markersize": 5}
    lines = {DRAWN[kind]: Line2D([], [], marker=MARKERS[kind], **look) for kind in kinds}
    title = {"title": "descent, prompts drawn", "title_fontsize": 10, "alignment": "left"}
    legend_with(panels[1], lines, loc="upper left", fontsize=10, handletextpad=0.2, **title)
    return figure
