"""Pictures of in-context regression on finite prompts. Each draws the table of its own name."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lib.experiments.result import Result
from lib.plotting.style import ink, sequence

SIZE = (8.0, 4.5)
MARKERS = {"collapsed": "o", "plain": "x"}


def finite_training(result: Result) -> Figure:
    r"""Training on finite prompts: stochastic descent on exact curves.

    Left: the risk; right: the gain $b$; both against time, which for descents is step size times number of steps.
    Curves: the exact gradient flow of each length; black, that of the infinite prompt. Points: stochastic gradient
    descent on fresh prompts, the mean over seeds with its standard error (bars, mostly smaller than the point); dots,
    collapsed prompts; crosses, plain ones. The infinite prompt's risk goes to 0. That of a finite one leaves it for a
    level of its own; risk and gain then go on changing for a time of order $L$.

    Alt: Two panels over logarithmic time. Left, on a logarithmic scale, the black risk curve plunges; curves of
    finite lengths leave it one after the other and level off, the shorter the higher, with points on each. Right, gains
    rise together; the black one settles at 1.5, while those of longer finite prompts climb further much later.
    """
    frame = result.tables["finite_training"].frame
    figure, panels = plt.subplots(1, 2, figsize=SIZE, sharex=True)
    prompts = sorted((prompt for prompt in frame["prompt"].unique() if prompt != "infinite"), key=int)
    colours = {**dict(zip(prompts, sequence(len(prompts)), strict=True)), "infinite": ink()}
    for panel, quantity in zip(panels, ("risk", "gain"), strict=True):
        shown = frame[frame["quantity"] == quantity]
        for (prompt, kind), curve in shown.groupby(["prompt", "kind"], sort=False):
            if kind == "flow":
                panel.plot(curve["time"], curve["value"], color=colours[prompt], linewidth=1.8)
                continue
            panel.errorbar(
                curve["time"],
                curve["value"],
                curve["std_error"],
                fmt=MARKERS[kind],
                color=colours[prompt],
                markersize=4 if kind == "collapsed" else 6,
                elinewidth=1.2,
            )
        panel.set(xscale="log", xlabel="time")
    risks = frame[(frame["quantity"] == "risk") & (frame["prompt"] != "infinite")]["value"]
    panels[0].set(yscale="log", ylabel="risk", ylim=(risks.min() / 4, 2 * risks.max()))
    panels[1].set(ylabel="gain $b$")
    handles = [Line2D([], [], color=colours[prompt], linewidth=1.8) for prompt in colours]
    labels = [rf"$L={prompt}$" for prompt in prompts] + [r"$L=\infty$"]
    for kind in (kind for kind in MARKERS if kind in set(frame["kind"])):
        handles.append(Line2D([], [], color=ink(), marker=MARKERS[kind], linestyle="none", markersize=5))
        labels.append(kind)
    figure.legend(handles, labels, loc="outside upper center", ncols=len(handles), columnspacing=1.0, handlelength=1.2)
    return figure


def final_risk(result: Result) -> Figure:
    r"""What length buys: the risk at the end of training, and the length that an accuracy costs.

    Left, for one dimension: the risk of the exact flow after infinite time (solid), where the descents stopped
    (dashed), at the head $(A^*,b^*)$ where the infinite flow ends (dotted), and that of the best linear attention
    (grey); points are the descents' last losses with the standard error over seeds. Right: the least length
    $L(\varepsilon)$ at which the risk after infinite time is below $\varepsilon$ (solid), and the same for the head
    $(A^*,b^*)$ (dotted), in several dimensions, up to $10^{24}$ tokens. Dashed: slope $-1$.

    Alt: Left, log-log chart of risk against length. Solid, dashed and dotted lines fall with length, the solid one
    lowest of the three, a grey one below all; points lie on the dashed line. Right, length against accuracy, over
    twenty decades: solid lines of slope minus one, and dotted lines above them, far above and steeper in dimension one.
    """
    frame = result.tables["final_risk"].frame
    dimension = result.parameters["dimension"]
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE)
    descents = frame[frame["kind"].isin(list(MARKERS))]
    end = descents["log_length"].max() + 2.5
    curves = {
        "trained": ("-", "C0", r"$t\to\infty$"),
        "stopped": ("--", "C1", "flow, stopped"),
        "infinite limit": (":", "C2", "$(A^*,b^*)$"),
        "linear attention": ("-", "0.6", "best linear"),
    }
    mine = frame[(frame["dimension"] == dimension) & (frame["log_length"] <= end)]
    for kind, (dash, colour, label) in curves.items():
        curve = mine[mine["kind"] == kind]
        left.plot(np.exp(curve["log_length"]), curve["risk"], dash, color=colour, linewidth=2, label=label)
    for kind, points in descents.groupby("kind", sort=False):
        left.errorbar(
            np.exp(points["log_length"]),
            points["risk"],
            points["std_error"],
            fmt=MARKERS[kind],
            color=ink(),
            markersize=6,
            elinewidth=1.5,
            label=f"descent, {kind}",
        )
    left.set(xscale="log", yscale="log", xlabel="$L$", ylabel="risk", title=f"$d={dimension}$")
    left.legend(loc="lower left", fontsize="small")
    dimensions = sorted(frame[frame["kind"] == "trained"]["dimension"].unique())
    for d, colour in zip(dimensions, sequence(len(dimensions)), strict=True):
        for kind, dash in (("trained", "-"), ("infinite limit", ":")):
            curve = frame[(frame["kind"] == kind) & (frame["dimension"] == d)]
            label = f"$d={d}$" if kind == "trained" else None
            right.plot(curve["risk"], np.exp(curve["log_length"]), dash, color=colour, linewidth=2, label=label)
    reference = frame[(frame["kind"] == "trained") & (frame["dimension"] == dimensions[0])]
    risk = np.asarray([reference["risk"].max(), reference["risk"].min()])
    right.plot(risk, 0.1 * np.exp(reference["log_length"].min()) * risk[0] / risk, "--", color=ink(), linewidth=1.3)
    right.set(xscale="log", yscale="log", xlabel=r"accuracy $\varepsilon$", ylabel=r"$L(\varepsilon)$")
    right.legend(loc="lower left")
    return figure


def trajectory_gap(result: Result) -> Figure:
    r"""How far the trajectories of finite and infinite prompts are apart, at fixed times.

    Distance of $(A,b)$ between the exact flows of $L$ and of infinitely many tokens, from the same start, against $L$.
    Dashed: slope $-1$. The later the time, the longer the prompt at which the gap begins to fall like $1/L$: at late
    times the head is large, and the average over queries lives on rare ones.

    Alt: Log-log chart of gap against length, one curve a time. The earliest is the lowest and soon parallel to a
    dashed line of slope minus one; later ones start flat, between a third and a half, and bend down later and later.
    """
    frame = result.tables["trajectory_gap"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    times = sorted(frame["time"].unique())
    for time, colour in zip(times, sequence(len(times)), strict=True):
        curve = frame[frame["time"] == time]
        length = np.exp(curve["log_length"])
        axes.plot(length, curve["gap"], "o-", color=colour, markersize=5, linewidth=2, label=f"$t={time:g}$")
    first = frame[frame["time"] == times[0]].iloc[-1]
    length = np.exp(frame["log_length"].max() - np.asarray([8.0, 0.0]))
    axes.plot(length, 0.3 * first["gap"] * length[-1] / length, "--", color=ink(), linewidth=1.3, label="slope $-1$")
    axes.set(xscale="log", yscale="log", xlabel="$L$", ylabel=r"$\|(A,b)_L-(A,b)_\infty\|$")
    axes.legend(loc="lower left")
    return figure
