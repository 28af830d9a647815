"""Pictures of `gradient_concentration`: errors of both gradients against length, and the factor between them."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from lib.experiments.result import Result
from lib.plotting.style import ink, sequence

SIZE = (9.0, 4.6)
MARKERS = ("o", "s", "^", "D", "v", "P")


def gradient_error_vs_length(result: Result) -> Figure:
    r"""Errors of the two gradients against the length of the prompt, for Gaussian tokens of growing scale $\sigma$.

    Mean squared Hilbert–Schmidt norm of the gradient at a finite prompt minus that at its law, over prompts and
    queries. Points: simulated, with two standard errors. Solid (left): exact. Dashed: the form of the bound,
    $c_1\sigma^6\ln L/L^{c_2/\sigma^2}$ for $\nabla_V$, $c_1\sigma^{12}(\ln L)^2/L^{c_2/\sigma^2}$ for $\nabla_U$. The
    paper does not give the constants; one pair for each gradient was fitted to the points left of the dotted line.
    The two panels share their axes: $\nabla_U$ errs more, and falls later.

    Alt: Two log-log panels of error against prompt length with common axes, four series of points each. Left, points
    lie on solid falling curves, steepest for the smallest scale. Right, the points lie up to a factor of thirty higher
    and fall more slowly. Dashed curves run above the points, further above for larger scales, more so on the right.
    """
    frame = result.tables["gradient_error_vs_length"].frame
    sigmas = sorted(frame["sigma"].unique())
    figure, panels = plt.subplots(1, 2, figsize=SIZE, sharex=True, sharey=True)
    for panel, gradient, title in zip(panels, ("∇_V", "∇_U"), (r"$\nabla_V$", r"$\nabla_U$"), strict=True):
        part = frame[frame["gradient"] == gradient]
        for sigma, colour, marker in zip(sigmas, sequence(len(sigmas)), MARKERS, strict=False):
            mine = part[part["sigma"] == sigma]
            prompts, exact = (mine[mine["kind"] == kind] for kind in ("prompts", "exact"))
            bound = mine[mine["kind"].isin(["fitted", "bound"])]
            panel.plot(exact["length"], exact["error"], color=colour, linewidth=2)
            panel.plot(bound["length"], bound["error"], color=colour, linewidth=1.4, linestyle="--")
            panel.errorbar(
                prompts["length"],
                prompts["error"],
                2 * prompts["std_error"],
                color=colour,
                marker=marker,
                markersize=5.5,
                linestyle="",
                capsize=2,
                label=rf"$\sigma={sigma:g}$",
            )
        fitted, tried = (part[part["kind"] == kind]["length"] for kind in ("fitted", "bound"))
        panel.axvline((fitted.max() * tried.min()) ** 0.5, color=ink(), linestyle=":", linewidth=1.5)
        panel.set(xscale="log", yscale="log", xlabel="prompt length $L$", title=title)
        _plain(panel)
    panels[0].set_ylabel("mean squared error of the gradient")
    handles, labels = panels[0].get_legend_handles_labels()
    handles += [_line("-"), _line("--", 1.4)]
    panels[1].legend(
        handles,
        [*labels, "exact", "form of the bound,\nconstants fitted"],
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
    )
    return figure


def gradient_extra_factor(result: Result) -> Figure:
    r"""How much more $\nabla_U$ errs than $\nabla_V$.

    Ratio of the two mean squared errors, with two standard errors. Left: for queries of the law $\nu$, against length,
    by token scale; dash-dotted, a line proportional to $\ln L$. Right: for one query of size $\tau$, tokens of scale 1,
    at the lengths drawn on the left. Dashed: prompts of infinite length. The factor grows with the query, until the
    prompt is too short for it and the ratio levels off; longer prompts follow the dashed curve further.

    Alt: Two panels. Left, ratios between three and forty rise with the logarithm of the length, for large scales in
    proportion to it. Right, on a logarithmic axis, ratios rise with the query along a dashed curve and leave it one
    after the other, short prompts first, each levelling off at its own height.
    """
    frame = result.tables["gradient_extra_factor"].frame
    figure, (left, right) = plt.subplots(1, 2, figsize=SIZE)
    scale = frame[frame["panel"] == "scale"]
    sigmas = sorted(scale["number"].unique())
    for sigma, colour, marker in zip(sigmas, sequence(len(sigmas)), MARKERS, strict=False):
        mine = scale[scale["number"] == sigma]
        _bars(left, mine["length"], mine, rf"$\sigma={sigma:g}$", colour=colour, marker=marker)
    top = scale[scale["number"] == sigmas[-1]].iloc[-1]
    lengths = sorted(scale["length"].unique())
    left.axline((1, 0), (top["length"], 1.25 * top["ratio"]), color=ink(), linestyle="-.", linewidth=1.2)
    left.set(xscale="log", xlim=(lengths[0] / 2, 2 * lengths[-1]), ylim=(0, 1.4 * scale["ratio"].max()))
    left.set(xlabel="prompt length $L$", ylabel=r"error of $\nabla_U$ over error of $\nabla_V$")
    handles, labels = left.get_legend_handles_labels()
    left.legend([*handles, _line("-.", 1.2)], [*labels, r"$\propto\ln L$"], loc="upper left")
    query = frame[frame["panel"] == "query"]
    for length, colour, marker in zip(lengths, sequence(len(lengths)), MARKERS, strict=False):
        mine = query[query["length"] == length]
        _bars(right, mine["number"], mine, f"$L={length:g}$", colour=colour, marker=marker)
    limit = query[query["series"] == "limit"]
    right.plot(limit["number"], limit["ratio"], color=ink(), linestyle="--", linewidth=1.6, label=r"$L=\infty$")
    measured = query[query["series"] == "prompts"]["ratio"]
    right.set(yscale="log", ylim=(measured.min() / 2, 8 * measured.max()), xlabel=r"size of the query, $\tau$")
    right.legend(loc="lower right")
    for panel in (left, right):
        panel.xaxis.set_minor_locator(NullLocator())
    return figure


def _bars(axes: Axes, x, frame, label: str, *, colour, marker: str) -> None:
    axes.errorbar(
        x,
        frame["ratio"],
        2 * frame["std_error"],
        color=colour,
        marker=marker,
        markersize=5.5,
        linewidth=1,
        capsize=2,
        label=label,
    )


def _plain(axes: Axes) -> None:
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())


def _line(style: str, width: float = 2.0) -> Line2D:
    return Line2D([], [], color=ink(), linestyle=style, linewidth=width)
