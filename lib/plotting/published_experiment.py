"""Pictures of the published experiment. Each draws the table of its own name; all show plain mean squares."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lib.experiments.result import Result
from lib.plotting.style import ink

SIZE = (8.0, 4.5)
COLOURS = {"softmax": "C1", "linear": "C0", "bayes": "C2"}
MARKERS = {"softmax": "o", "linear": "s"}
MEAN_SQUARE = r"mean square $\mathbb{E}(\hat y-y)^2$, no ½"


def published_optimum(result: Result) -> Figure:
    r"""The published experiment, with its outcome computed beforehand.

    Plain mean square, label noise included, against the length of the prompt. Lines: the least mean square that one
    softmax head, or linear attention, can reach, exact and without a fitted parameter. Triangles: ridge regression,
    which is Bayes (standard errors are smaller than the marker). Dotted: the label noise, all that an infinite prompt
    leaves. Large symbols: tracked runs of 300,000 published steps, which exist for the corrected data law. Small
    symbols: short runs made here, with one standard error.

    Alt: Log-log chart of mean square against prompt length from 10 to 1000. Softmax runs above linear attention,
    linear above ridge regression, and all fall towards a dotted line at 0.1. Large symbols lie on the lines, small
    ones on them or a little above.
    """
    frame = result.tables["published_optimum"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    curve, ridge = frame[frame["softmax"].notna()], frame[frame["bayes"].notna()]
    for activation, marker in MARKERS.items():
        colour = COLOURS[activation]
        runs = frame[frame["activation"] == activation]
        axes.plot(curve["length"], curve[activation], color=colour, linewidth=2, label=f"{activation}, exact optimum")
        short, long = runs[runs["end"].notna()], runs[runs["long_end"].notna()]
        axes.errorbar(
            short["length"],
            short["end"],
            short["end_std_error"],
            fmt=marker,
            color=colour,
            markersize=5,
            markerfacecolor="none",
            label=f"{activation}, short SGD runs",
        )
        if len(long):
            label = f"{activation}, 300,000 steps"
            axes.plot(long["length"], long["long_end"], marker, color=colour, markersize=10, label=label)
    axes.errorbar(
        ridge["length"],
        ridge["bayes"],
        ridge["bayes_std_error"],
        fmt="^",
        color=COLOURS["bayes"],
        label="ridge (Bayes)",
    )
    axes.axhline(curve["infinite"].max(), color=ink(), linestyle=":", linewidth=1.5, label="infinite prompt")
    axes.set(xscale="log", yscale="log", xlabel="tokens in a prompt, $L$", ylabel=MEAN_SQUARE)
    _plain_ticks(axes)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def published_training(result: Result) -> Figure:
    r"""Training ends where the exact theory says.

    Plain mean square against training time, the number of steps times their size. Solid: tracked runs of 300,000
    steps of 0.001, the exact mean square of the head at that time. Thin, with markers: runs made here with a larger
    step, mean square over the fresh prompts of a twentieth of the run. Dashed: the exact optima. Left softmax, right
    linear attention.

    Alt: Two charts of mean square against logarithmic training time. Solid curves come down in steps from about 1.1
    and end on dashed lines. Thin curves of short runs come down at about the same time and end on or a little above
    dashed lines.
    """
    frame = result.tables["published_training"].frame
    figure, panels = plt.subplots(1, 2, figsize=(8.0, 4.8), sharey=True)
    lengths = sorted(frame["length"].unique().tolist())
    colours = {length: f"C{i}" for i, length in enumerate(lengths)}
    for panel, activation in zip(panels, MARKERS, strict=True):
        runs = frame[frame["activation"] == activation]
        for (length, _), run in runs[runs["risk"].notna()].groupby(["length", "start"]):
            panel.plot(run["time"], run["risk"], color=colours[length], linewidth=2.5)
        for (length, _), run in runs[runs["loss"].notna()].groupby(["length", "start"]):
            panel.plot(run["time"], run["loss"], color=colours[length], linewidth=0.8, marker="o", markersize=3)
        for (length, _), run in runs.groupby(["length", "law"]):
            panel.axhline(run["optimum"].iloc[0], color=colours[length], linestyle="--", linewidth=1.3)
        panel.set(xscale="log", yscale="log", xlabel="training time", title=activation)
        _plain_ticks(panel)
    panels[0].set(ylabel=MEAN_SQUARE, ylim=(0.9 * frame["optimum"].min(), 1.2))
    handles = [Line2D([], [], color=colours[length], linewidth=2.5) for length in lengths]
    labels = [f"$L={length}$" for length in lengths]
    handles += [
        Line2D([], [], color=ink(), linewidth=2.5),
        Line2D([], [], color=ink(), linewidth=0.8, marker="o", markersize=3),
        Line2D([], [], color=ink(), linestyle="--", linewidth=1.3),
    ]
    labels += ["300,000 steps of 0.001", "short runs, larger step", "exact optimum"]
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def two_data_laws(result: Result) -> Figure:
    r"""What the flaw in the published code changes.

    Least plain mean squares against the length of the prompt, exact, and ridge regression, under two laws of the
    data. Left: prompt and query of covariance $C=0.5^{|i-j|}$, as the paper describes. Right: as its code draws them,
    prompts of covariance $FCF^\top$ with $F$ the Cholesky factor of $C$, queries of covariance $I$.

    Alt: Two log-log charts side by side of mean square against length, each with softmax highest, linear attention
    below and ridge regression lowest. On the right the softmax and linear curves lie higher and fall later.
    """
    frame = result.tables["two_data_laws"].frame
    figure, panels = plt.subplots(1, 2, figsize=SIZE, sharey=True)
    titles = {"corrected": "corrected: query like prompt", "as published": "as published: $C$ twice, query never"}
    for panel, (law, title) in zip(panels, titles.items(), strict=True):
        mine = frame[frame["law"] == law]
        for name, label, style in (
            ("softmax", "softmax, exact optimum", "-"),
            ("linear", "linear, exact optimum", "-"),
            ("bayes", "ridge (Bayes)", "^"),
        ):
            drawn = mine[mine[name].notna()]
            panel.plot(drawn["length"], drawn[name], style, color=COLOURS[name], linewidth=2, label=label)
        panel.set(xscale="log", yscale="log", xlabel="tokens in a prompt, $L$", title=title)
        _plain_ticks(panel)
    panels[0].set_ylabel(MEAN_SQUARE)
    panels[0].legend(loc="upper right")
    return figure


def two_minima(result: Result) -> Figure:
    r"""Both heads have two minima, and the random start chooses.

    Plain mean square, exact, on prompts of 20 tokens, along training from PyTorch's random starts of the separate
    query, key, value and output matrices. Linear attention by exact gradient descent, the same starts under both
    laws; softmax by stochastic descent. Dashed: the optimum. Dotted: the other minimum, found by settling one
    trapped head. Training time is steps times step size, as long as the published 300,000 steps.

    Alt: Three charts of mean square against training time with many thin curves. Linear attention under the corrected
    law: some curves end on a dashed line at 0.33, others at a dotted line at 0.65 or on their way to it. Softmax under
    the corrected law: some end on a dashed line at 0.51, others at a dotted one at 0.80. Linear attention under the
    published law: nearly all end on the dashed line at 0.54.
    """
    frame = result.tables["two_minima"].frame
    figure, panels = plt.subplots(1, 3, figsize=SIZE, sharey=True, sharex=True)
    shown = (("linear", "corrected"), ("softmax", "corrected"), ("linear", "as published"))
    for panel, (activation, law) in zip(panels, shown, strict=True):
        mine = frame[(frame["activation"] == activation) & (frame["law"] == law)]
        for _, path in mine.groupby("start"):
            panel.plot(path["time"], path["risk"], color=COLOURS[activation], linewidth=0.8, alpha=0.7)
        panel.axhline(mine["optimum"].iloc[0], color=ink(), linestyle="--", linewidth=1.5, label="optimum")
        if mine["second"].notna().all():
            panel.axhline(mine["second"].iloc[0], color=ink(), linestyle=":", linewidth=2, label="other minimum")
        panel.set(xlabel="training time", title=f"{activation}, {law}")
    panels[0].set(ylabel=MEAN_SQUARE, ylim=(0, None))
    panels[0].legend(loc="lower left")
    return figure


def _plain_ticks(axes: Axes) -> None:
    """Mean squares as decimals."""
    ticks = [0.1, 0.2, 0.3, 0.5, 0.7, 1.0]
    axes.set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axes.tick_params(axis="y", which="minor", left=False, labelleft=False)
