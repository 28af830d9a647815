"""Pictures of the opening chapter: prompts without order, laws that tilt, and outputs that settle."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.ticker import LogLocator, NullLocator

from lib.experiments.result import Result
from lib.plotting.style import ink, sequence

SIZE = (8.0, 4.5)
# Where outputs that agree to the last bit are drawn, on an axis that has no zero.
LAST_BIT = 1e-17
# The golden ratio spreads points evenly, whatever their number.
GOLDEN = (5**0.5 - 1) / 2


def order_does_not_matter(result: Result) -> Figure:
    r"""What a prompt may lose without attention noticing, and what not.

    Each point is one changed prompt; across, on a logarithmic axis, how far its output moved, as a fraction of the
    output's size. Shuffling the tokens, or writing each of them twice, moves only the last bits of floating-point
    numbers (exact agreement would be drawn at $10^{-17}$): the prompt is the same measure. Writing *one* token
    twice, or replacing one, makes another measure, and another output. In the lowest row every token carries its
    position, as a further coordinate that the scores read; then the order matters.

    Alt: Strip chart with five rows on a logarithmic axis. The rows for shuffled and for doubled prompts lie near
    ten to the minus fifteen, at rounding errors. The rows for one token repeated, one token replaced, and tokens
    that carry positions lie a dozen decades to the right, between ten to the minus four and one tenth.
    """
    frame = result.tables["order_does_not_matter"].frame
    changes = list(dict.fromkeys(frame["change"]))
    figure, axes = plt.subplots(figsize=(8.0, 3.9))
    for row, change in enumerate(changes):
        strip = frame[frame["change"] == change]
        heights = row + 0.5 * ((strip["trial"] * GOLDEN) % 1 - 0.5)
        colour = "C0" if strip["distance"].max() < 1e-10 else "C1"
        axes.plot(
            strip["distance"].clip(lower=LAST_BIT),
            heights,
            "o",
            color=colour,
            markersize=5,
            alpha=0.6,
            markeredgewidth=0,
        )
    axes.axvline(np.finfo(float).eps, color=ink(), linestyle="--", linewidth=1.5)
    axes.annotate(
        "spacing of\nfloating-point numbers",
        (np.finfo(float).eps, len(changes) - 0.6),
        xytext=(7, 0),
        textcoords="offset points",
        va="bottom",
    )
    axes.set(xscale="log", xlim=(LAST_BIT / 2, 1.0), ylim=(len(changes) - 0.4, -0.6))
    axes.set_yticks(range(len(changes)), changes)
    axes.xaxis.set_major_locator(LogLocator(numticks=20))
    axes.set_xticks([10.0**power for power in range(-17, 1, 2)])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("move of the output, relative to its size")
    axes.legend(
        handles=[_dot("C0", "same measure"), _dot("C1", "another measure")], loc="center", bbox_to_anchor=(0.45, 0.75)
    )
    return figure


def the_tilt(result: Result) -> Figure:
    r"""What a query does to a law. Left: Gaussian tokens. Right: a mixture of three Gaussians.

    Shades: density of the law $\mu$. Lines: density of the tilted law, proportional to
    $e^{\langle\xi,z\rangle}\mu(z)$. Circles: the tokens of one prompt, their areas proportional to their softmax
    weights. Arrow: the tilt $\xi=Uz$, drawn from the mean of $\mu$ (square). Star: the tilted mean
    $\nabla\Lambda(\xi)$, which attention reads through $V$. Cross: the weighted mean of the tokens drawn, which is
    what this prompt answers. The Gaussian keeps its shape and moves by $\Gamma\xi$, which is not the direction of
    $\xi$. In the mixture each component moves by its own $\Gamma_k\xi$, and the components trade weight: the two on
    the right hold two fifths of the law and nine tenths of the tilted law.

    Alt: Two panels of contour lines in the plane. Left: an elliptical density and the same ellipse shifted up and
    right, with large circles for tokens on the upper right and tiny ones on the lower left. Right: three clusters;
    the lower left one has most of the density and little of the tilted density, and the large circles sit in the
    two others. In both panels an arrow points from the mean to the right and slightly up, a star marks the tilted
    mean, and a cross lies close to it.
    """
    frame = result.tables["the_tilt"].frame
    laws = list(dict.fromkeys(frame["law"]))
    figure, panels = plt.subplots(1, len(laws), figsize=(8.0, 4.7), sharey=True)
    for panel, name in zip(panels, laws, strict=True):
        mine = frame[frame["law"] == name]
        _densities(panel, mine[mine["kind"] == "density"])
        tokens = mine[mine["kind"] == "token"]
        panel.scatter(
            tokens["x"],
            tokens["y"],
            s=14 * tokens["weight"],
            color="C1",
            alpha=0.55,
            edgecolor=ink(),
            linewidth=0.5,
            rasterized=True,
        )
        mean, tilted, output, tilt = (
            mine[mine["kind"] == kind][["x", "y"]].to_numpy()[0]
            for kind in ("mean", "tilted mean", "prompt's output", "tilt")
        )
        arrow = {
            "arrowstyle": "-|>",
            "color": ink(),
            "linewidth": 1.8,
            "shrinkA": 0,
            "shrinkB": 0,
            "mutation_scale": 14,
        }
        panel.annotate("", mean + tilt, mean, arrowprops=arrow, zorder=6)
        halo = [withStroke(linewidth=3, foreground=panel.get_facecolor())]
        panel.annotate(
            r"$\xi$", mean + tilt, xytext=(5, -3), textcoords="offset points", va="top", zorder=7, path_effects=halo
        )
        marks = {"markeredgecolor": ink(), "markerfacecolor": panel.get_facecolor(), "linestyle": "", "zorder": 6}
        panel.plot(*mean, marker="s", markersize=8, markeredgewidth=1.6, **marks)
        panel.plot(*tilted, marker="*", markersize=17, markeredgewidth=1.4, **marks)
        panel.plot(*output, marker="x", markersize=8, markeredgewidth=2.2, color=ink(), zorder=7)
        panel.set(aspect="equal", title=name, xlabel="first coordinate", xlim=_ends(mine, "x"), ylim=_ends(mine, "y"))
        panel.grid(visible=False)
    panels[0].set_ylabel("second coordinate")
    hollow = {"color": ink(), "markerfacecolor": "none", "linestyle": ""}
    figure.legend(
        handles=[
            Patch(color="C0", alpha=0.35, label=r"law $\mu$"),
            Line2D([], [], color="C2", linewidth=2, label="tilted law"),
            Line2D([], [], color="C1", marker="o", markersize=7, linestyle="", label="token, by weight"),
            Line2D([], [], marker="s", markersize=7, label=r"mean of $\mu$", **hollow),
            Line2D([], [], marker="*", markersize=12, label=r"tilted mean $\nabla\Lambda(\xi)$", **hollow),
            Line2D([], [], marker="x", markersize=7, markeredgewidth=2, label="the prompt's", **hollow),
        ],
        loc="outside lower center",
        ncols=3,
    )
    return figure


def one_prompt_converges(result: Result) -> Figure:
    r"""Prompts that grow, token by token.

    Above: each thin line is one prompt, its output (one coordinate) after its first $L$ tokens, drawn from the
    mixture of {numref}`fig-the-tilt`. Dashed: the output $V\nabla\Lambda(Uz)$ of the law. Band: two predicted
    standard deviations, $2\sqrt{\mathrm{fluctuation}/L}$, an expansion for long prompts. Points and bars: mean and
    two standard deviations over many independent prompts. Below: the same, as deviations from the limit in
    predicted standard deviations. The prompts settle above; below they wander on, at every scale, and the wandering
    keeps its width. From a few hundred tokens on the bars fill the band; at ten they do not, and the mean still
    leans towards the untilted answer.

    Alt: Two line charts against prompt length on a logarithmic axis. Above, jagged lines start far apart at one
    token and merge into a horizontal dashed line, inside a band that narrows like a funnel. Below, the same lines,
    rescaled, keep wandering about a band of constant width around zero, and error bars of many prompts match that
    band from a hundred tokens on.
    """
    frame = result.tables["one_prompt_converges"].frame
    paths = frame[frame["kind"] == "one prompt"]
    many = frame[frame["kind"] == "many prompts"]
    band = paths[(paths["prompt"] == 0) & (paths["length"] >= 4)]
    low, high = band["limit"] - 2 * band["predicted"], band["limit"] + 2 * band["predicted"]
    figure, (axes, zoomed) = plt.subplots(2, 1, figsize=(8.0, 5.8), sharex=True, height_ratios=[3, 2])
    axes.fill_between(band["length"], low, high, color="C0", alpha=0.22, linewidth=0)
    zoomed.fill_between(band["length"], -2, 2, color="C0", alpha=0.22, linewidth=0)
    prompts = sorted(paths["prompt"].unique())
    for prompt, colour in zip(prompts, sequence(len(prompts)), strict=True):
        path = paths[paths["prompt"] == prompt]
        axes.plot(path["length"], path["output"], color=colour, linewidth=1.3)
        zoomed.plot(path["length"], path["standardised"], color=colour, linewidth=1.3)
    axes.axhline(frame["limit"].iloc[0], color=ink(), linestyle="--", linewidth=1.5)
    zoomed.axhline(0, color=ink(), linestyle="--", linewidth=1.5)
    look = {"color": "C1", "marker": "o", "linestyle": "", "linewidth": 2, "capsize": 4, "zorder": 5}
    bars = axes.errorbar(many["length"], many["output"], 2 * many["spread"], **look)
    zoomed.errorbar(many["length"], many["standardised"], 2 * many["spread_ratio"], **look)
    top = max(paths["output"].max(), (many["output"] + 2 * many["spread"]).max())
    axes.set(xscale="log", xlim=(1, paths["length"].max()), ylim=(paths["output"].min() - 0.2, top + 0.2))
    axes.set_ylabel("output")
    zoomed.set(xlabel="prompt length $L$", ylabel="deviation, in sd", ylim=(-4, 4))
    axes.legend(
        [
            Line2D([], [], color=sequence(3)[1], linewidth=1.5),
            Line2D([], [], color=ink(), linestyle="--", linewidth=1.5),
            Patch(color="C0", alpha=0.22),
            bars,
        ],
        ["one prompt", r"$L=\infty$: $V\nabla\Lambda(Uz)$", "± 2 sd, predicted", "± 2 sd, many prompts"],
        loc="lower right",
        ncols=2,
    )
    return figure


def single_token(result: Result) -> Figure:
    r"""Short prompts, down to a single token.

    Mean squared error $\mathbb{E}\,(T[\hat\mu_L]-\tau)^2$ of prompts of $L$ standard normal tokens, at query sizes
    $\tau$; the infinite prompt answers $\tau$. Points: simulated, with two standard errors (smaller than the
    points). Solid: exact, by quadrature. Dashed: the form of the bound, $c_1\ln L/L^{c_2}$ at $\sigma=1$. The paper
    leaves its constants open; here $c_2$ is the slope fitted to the exact values at $L\ge2$, and $c_1$ the smallest
    that bounds them. At $L=1$ the logarithm takes the bound to 0, while the error is $1+\tau^2$ (rings).

    Alt: Log-log plot of mean squared error against prompt length from one token on, one colour for each query size.
    Points lie on solid falling curves. The dashed curves of the bound touch the solid ones at two tokens, run above
    them from there on, and plunge towards zero at one token, where rings mark errors between one and a few units.
    """
    frame = result.tables["single_token"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    taus = sorted(frame["tau"].unique())
    for tau, colour, marker in zip(taus, sequence(len(taus)), ("o", "s", "^", "D"), strict=False):
        mine = frame[frame["tau"] == tau]
        prompts, exact, bound = (mine[mine["kind"] == kind] for kind in ("prompts", "exact", "bound"))
        axes.plot(exact["length"], exact["error"], color=colour, linewidth=2)
        axes.plot(bound["length"], bound["error"], color=colour, linewidth=1.6, linestyle="--")
        axes.errorbar(
            prompts["length"],
            prompts["error"],
            2 * prompts["std_error"],
            color=colour,
            marker=marker,
            markersize=5.5,
            linestyle="",
            capsize=2,
            label=rf"$\tau={tau:g}$",
        )
        axes.plot(1, 1 + tau**2, "o", color=ink(), markersize=12, fillstyle="none", markeredgewidth=1.6, zorder=6)
    drawn = frame[frame["kind"] == "exact"]["error"]
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="mean squared error")
    axes.set(xlim=(0.85, 1.15 * frame["length"].max()), ylim=(drawn.min() / 2, 6 * drawn.max()))
    handles, labels = axes.get_legend_handles_labels()
    handles += [
        Line2D([], [], color=ink(), linewidth=2),
        Line2D([], [], color=ink(), linewidth=1.6, linestyle="--"),
        Line2D([], [], color=ink(), marker="o", markersize=10, fillstyle="none", markeredgewidth=1.6, linestyle=""),
    ]
    labels += ["exact", r"$c_1\,\ln L\,/\,L^{c_2}$", r"$1+\tau^2$"]
    axes.legend(handles, labels, loc="upper right", ncols=2)
    return figure


def _densities(axes: Axes, frame: pd.DataFrame) -> None:
    side = frame["x"].nunique()
    x, y, density, tilted = (frame[name].to_numpy().reshape(side, side) for name in ("x", "y", "density", "tilted"))
    levels = np.asarray([0.03, 0.1, 0.25, 0.45, 0.7])
    for low, high in zip(levels, [*levels[1:], 1.01], strict=True):
        peak = density.max()
        axes.contourf(x, y, density, [low * peak, high * peak], colors=["C0"], alpha=0.16 + 0.6 * low)
    axes.contour(x, y, tilted, levels * tilted.max(), colors=["C2"], linewidths=1.6)


def _ends(frame: pd.DataFrame, column: str) -> tuple[float, float]:
    grid = frame[frame["kind"] == "density"][column]
    return grid.min(), grid.max()


def _dot(colour: str, label: str) -> Line2D:
    return Line2D([], [], color=colour, marker="o", linestyle="", markersize=7, label=label)
