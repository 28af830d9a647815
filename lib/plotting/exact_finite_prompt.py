"""Pictures of the exact finite-prompt theory. Each draws the table of its own name."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lib.experiments.result import Result
from lib.plotting.style import ink, sequence

SIZE = (8.0, 4.5)
MARKERS = ("o", "s", "^", "D", "v", "P")


def shrunken_mean(result: Result) -> Figure:
    r"""The mean answer of a finite prompt, at lengths no computer can hold.

    Across: the size $\tau$ of the query, which is also the answer of the infinite prompt (dashed). Up: the exact mean
    answer $\tau(1-P)$ of prompts of $L$ tokens. Every curve follows the dashed line, leaves it, and settles near
    $\sqrt{2\ln L}$ (tick at the right edge), about the largest of $L$ standard normals. From $10$ tokens to $10^{40}$
    the ceiling rises only from 2.1 to 13.6.

    Alt: Line chart. A dashed diagonal is the infinite prompt. Six curves, for lengths from ten to ten to the
    fortieth, leave it one after the other and flatten out, each towards a short tick at the right edge.
    """
    frame = result.tables["shrunken_mean"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    decades = sorted(frame["decade"].unique().tolist())
    end = frame["tau"].max()
    for decade, colour in zip(decades, sequence(len(decades)), strict=True):
        curve = frame[frame["decade"] == decade]
        axes.plot(curve["tau"], curve["mean"], color=colour, linewidth=2)
        ceiling = curve["ceiling"].max()
        axes.plot([0.97 * end, end], [ceiling, ceiling], color=colour, linewidth=3, solid_capstyle="butt")
        label = f"$L=10^{{{decade}}}$" if decade > 1 else "$L=10$"
        axes.annotate(label, (end, ceiling), xytext=(6, 0), textcoords="offset points", va="center", color=ink())
    axes.axline((0, 0), slope=1, color=ink(), linestyle="--", linewidth=1.5)
    tick = Line2D([], [], color=ink(), linewidth=3)
    line = Line2D([], [], color=ink(), linestyle="--", linewidth=1.5)
    axes.legend([line, tick], [r"$L=\infty$: Lemma 2.1", r"ceiling $\sqrt{2\,\ln L}$"], loc="upper left")
    axes.set(xlim=(0, end), ylim=(0, 1.15 * frame["ceiling"].max()))
    axes.set(xlabel=r"size of the query, $\tau$", ylabel=r"mean answer, $\tau\,(1-P)$")
    return figure


def finite_prompt_plane(result: Result) -> Figure:
    r"""Two functions carry the whole theory: participation and score error over the plane.

    Across: the size $\tau$ of the query. Up: $\ln L$. Left: participation $P=\mathbb{E}\sum_i p_i^2$, the inverse of
    the number of tokens that matter. Right: score error $Q=\mathbb{E}(\hat g-\tau)^2$. Both in decades (thin lines,
    one every five). On the dashed line $\tau=\sqrt{2\ln L}$ the largest score takes over: above it both fall like
    powers of $L$, below it length hardly helps.

    Alt: Two heat maps over query size and logarithm of length. In both, values near one fill the lower right corner,
    separated by a dashed parabola from the upper left, where they fall by dozens of decades towards small queries and
    long prompts.
    """
    frame = result.tables["finite_prompt_plane"].frame
    titles = {"participation": "participation $P$", "score_error": "score error $Q$"}
    decades = np.arange(np.floor(np.log10(frame[list(titles)].min().min())), 4)
    figure, panels = plt.subplots(1, 2, figsize=SIZE, sharex=True, sharey=True)
    for panel, (column, title) in zip(panels, titles.items(), strict=True):
        grid = np.log10(frame.pivot(index="log_length", columns="tau", values=column))
        taus, lengths = np.asarray(grid.columns, float), np.asarray(grid.index, float)
        image = panel.contourf(taus, lengths, grid, levels=decades, cmap="viridis")
        panel.contour(taus, lengths, grid, levels=decades[-4::-5][::-1], colors="w", linewidths=0.8, linestyles="-")
        panel.plot(taus, taus**2 / 2, color="k", linestyle="--", linewidth=2)
        panel.set(ylim=(0, lengths.max()), xlim=(0, taus.max()), title=title, xlabel=r"size of the query, $\tau$")
        panel.grid(False)
    panels[0].set_ylabel(r"$\ln L$")
    # the colour map is the same on both sheets, and so are the colours that show on it
    panels[0].annotate(r"$\tau=\sqrt{2\,\ln L}$", (7.2, 26), xytext=(6, -14), textcoords="offset points", color="k")
    bar = figure.colorbar(image, ax=panels, shrink=0.9, ticks=decades[-4::-5])
    bar.ax.set_yticklabels([f"$10^{{{decade:.0f}}}$" for decade in decades[-4::-5]])
    return figure


def freezing(result: Result) -> Figure:
    r"""The larger the query, the fewer the tokens that answer it.

    Participation $P=\mathbb{E}\sum_ip_i^2$ against $a=\tau/\sqrt{2\ln L}$. Curves: exact, from short to astronomically
    long prompts. Dashed: the limit $(1-1/a)_+$ at fixed $a$. Left of $a=1$ more and more tokens share the weight as
    $L$ grows; right of it a few carry it, at every length. The corner at $a=1$ is the freezing of the random-energy
    model, rounded at finite $L$.

    Alt: Line chart of participation against a. Four curves come down, from short to long prompts, onto a dashed curve
    that is zero up to a equal one and then rises towards one half at a equal two.
    """
    frame = result.tables["freezing"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    lengths = sorted(frame["log_length"].unique().tolist())
    for log_length, colour in zip(lengths, sequence(len(lengths)), strict=True):
        curve = frame[frame["log_length"] == log_length]
        axes.plot(curve["ratio"], curve["participation"], color=colour, linewidth=2, label=rf"$\ln L={log_length:g}$")
    limit = frame.sort_values("ratio")
    axes.plot(limit["ratio"], limit["limit"], color=ink(), linestyle="--", linewidth=1.5, label=r"$(1-1/a)_+$")
    axes.set(xlim=(0, frame["ratio"].max()), ylim=(0, 1))
    axes.set(xlabel=r"$a=\tau/\sqrt{2\,\ln L}$", ylabel="participation $P$")
    axes.legend(loc="upper left")
    return figure


def exact_error(result: Result) -> Figure:
    r"""The error of a finite prompt: exact, simulated, and its large-$L$ form.

    Mean square distance between the outputs of a prompt of $L$ tokens and of the infinite one, against $L$, at four
    query sizes $\tau$. Lines: exact. Points: simulated prompts with their standard error (bars, mostly smaller than
    the point). Dotted: the large-$L$ form $e^{\tau^2}(\mathrm{tr}\,V\Gamma V^\top+\|V\Gamma\xi\|^2)/L$ of the delta
    method, which sets in only beyond $\ln L\approx\tau^2$, later than any simulation for the largest query.

    Alt: Log-log line chart of error against length. For each of four query sizes a solid curve starts flat and bends
    into a straight dotted line of slope minus one, later for larger queries. Points of simulated prompts up to ten
    thousand tokens lie on the solid curves.
    """
    frame = result.tables["exact_error"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    taus = sorted(frame["tau"].unique().tolist())
    for tau, colour, marker in zip(taus, sequence(len(taus)), MARKERS, strict=False):
        curve = frame[frame["tau"] == tau]
        length = np.exp(curve["log_length"])
        axes.plot(length, curve["exact"], color=colour, linewidth=2)
        axes.plot(length, curve["delta_method"], color=colour, linewidth=1.2, linestyle=":")
        axes.errorbar(
            length, curve["simulated"], curve["std_error"], color=colour, marker=marker, markersize=5.5, linestyle="",
            capsize=3, label=rf"$\tau={tau:g}$",
        )  # fmt: skip
    top = 3 * frame["exact"].max()
    axes.set(xscale="log", yscale="log", ylim=(frame["exact"].min() / 2, top))
    axes.set(xlabel="prompt length $L$", ylabel="mean square error")
    handles, labels = axes.get_legend_handles_labels()
    handles += [Line2D([], [], color=ink(), linewidth=2), Line2D([], [], color=ink(), linewidth=1.2, linestyle=":")]
    axes.legend(handles, [*labels, "exact", "large $L$"], loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def collapsed_sampler(result: Result) -> Figure:
    r"""A prompt drawn as $L$ numbers and one vector has the law of a prompt drawn as $L$ vectors.

    Left: quantiles of the two coordinates of the output, collapsed sampler against plain prompts; equal laws lie on
    the diagonal. Right: their difference in standard errors of the difference; the band is two of them. Neighbouring
    quantiles come from the same outputs and move together.

    Alt: Two panels. Left, quantile-quantile points of two coordinates lie on the diagonal. Right, their difference in
    standard errors wanders around zero, mostly within a band from minus two to two.
    """
    frame = result.tables["collapsed_sampler"].frame
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE)
    coordinates = sorted(frame["coordinate"].unique().tolist())
    for coordinate, marker in zip(coordinates, MARKERS, strict=False):
        these = frame[frame["coordinate"] == coordinate]
        label = f"coordinate {coordinate}"
        left.plot(these["plain"], these["collapsed"], linestyle="", marker=marker, markersize=4, label=label)
        gap = (these["collapsed"] - these["plain"]) / (np.sqrt(2) * these["std_error"])
        right.plot(these["chance"], gap, marker=marker, markersize=4, linewidth=1)
    left.axline((0, 0), slope=1, color=ink(), linestyle="--", linewidth=1.2)
    right.axhspan(-2, 2, color=ink(), alpha=0.08, linewidth=0)
    right.axhline(0, color=ink(), linestyle="--", linewidth=1.2)
    left.set(xlabel="quantile, plain prompts", ylabel="quantile, collapsed sampler")
    right.set(xlabel="probability", ylabel="difference, in standard errors", ylim=(-4.5, 4.5))
    left.legend(loc="upper left")
    return figure
