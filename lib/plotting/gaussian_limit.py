"""Pictures of `gaussian_limit`: the straight line of Gaussian prompts, and everything that leaves it."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator

from lib.experiments.result import Result
from lib.plotting.style import ink, sequence

SIZE = (8.0, 4.5)
MARKERS = ("o", "s", "^", "D", "v", "P")


def finite_prompt_response(result: Result) -> Figure:
    r"""Answers of finite Gaussian prompts to growing queries.

    Across: the size $\tau = \|\Gamma^{1/2}Uz\|$ of the query. Up: the component of the output along the straight line
    of Lemma 2.1, in units in which the lemma says $\tau$ (dashed). Each colour is a prompt length $L$: the mean over
    independent prompts with its standard error (bars, mostly smaller than the line) and the standard deviation between
    prompts (band). Rings mark $\tau = \sqrt{2\ln L}$, the size of the largest of $L$ standard normals. Up to some way
    before its ring a prompt answers like the infinite one; beyond it the answer levels off at its largest token.

    Alt: Line chart. A dashed diagonal is the infinite prompt. Six curves, one for each prompt length from 10 to one
    million, leave the diagonal one after the other and flatten, the longest last; a ring on the diagonal marks
    where each should leave, between 2.1 and 5.3.
    """
    frame = result.tables["finite_prompt_response"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    lengths = sorted(frame["length"].unique().tolist())
    for length, colour in zip(lengths, sequence(len(lengths)), strict=True):
        curve = frame[frame["length"] == length]
        low, high = curve["response"] - curve["spread"], curve["response"] + curve["spread"]
        axes.fill_between(curve["tau"], low, high, color=colour, alpha=0.16, linewidth=0)
        axes.errorbar(curve["tau"], curve["response"], curve["std_error"], color=colour, linewidth=2, capsize=2)
        departure = curve["departure"].max()
        axes.plot(departure, departure, "o", color=colour, markersize=9, fillstyle="none", markeredgewidth=2, zorder=5)
        axes.annotate(
            f"$L={_power(length)}$",
            (curve["tau"].max(), np.asarray(curve["response"])[-1]),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            color=ink(),
        )
    top = 1.12 * (frame["response"] + frame["spread"]).max()
    axes.axline((0, 0), slope=1, color=ink(), linestyle="--", linewidth=1.5)
    axes.set(xlim=(0, frame["tau"].max()), ylim=(0, max(top, 1.05 * frame["departure"].max())))
    axes.set(xlabel=r"size of the query, $\tau=\|\Gamma^{1/2}Uz\|$", ylabel="answer along the line of Lemma 2.1")
    ring = Line2D([], [], color=ink(), marker="o", fillstyle="none", markersize=9, markeredgewidth=2, linestyle="")
    line = Line2D([], [], color=ink(), linestyle="--", linewidth=1.5)
    axes.legend([line, ring], [r"$L=\infty$: Lemma 2.1", r"$\tau=\sqrt{2\,\ln L}$"], loc="upper left")
    return figure


def mean_output(result: Result) -> Figure:
    r"""The mean answer of a finite prompt is linear attention, shrunk.

    Points: slope $\mathbb{E}\,r/\tau$ of the mean response $r$ of simulated prompts of length $L$, with its standard
    error. Lines: the exact slope $1-P$, $P=\mathbb{E}\sum_i p_i^2$ computed by quadrature. Neighbouring points share
    their prompts and move together. Only lengths with at least a thousand prompts are drawn. At 1 (dashed) the mean
    is that of the infinite prompt. The law holds at every length and every query size, not only where $L$ is large.

    Alt: Line chart of a slope against query size. For each prompt length an exact curve starts near one and falls
    toward zero as the query grows, later for longer prompts; the points of simulated prompts lie on it.
    """
    frame = result.tables["mean_output"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    lengths = sorted(frame["length"].unique().tolist())
    for length, colour, marker in zip(lengths, sequence(len(lengths)), _cycled(MARKERS, len(lengths)), strict=True):
        curve = frame[frame["length"] == length]
        axes.plot(curve["tau"], curve["exact"], color=colour, linewidth=1.5)
        axes.errorbar(
            curve["tau"],
            curve["slope"],
            curve["slope_std_error"],
            color=colour,
            linestyle="",
            marker=marker,
            markersize=4.5,
            capsize=3,
            label=f"$L={_power(length)}$",
        )
    axes.axhline(1, color=ink(), linestyle="--", linewidth=1.5)
    axes.annotate(
        "Lemma 2.1", (frame["tau"].max(), 1), xytext=(0, 5), textcoords="offset points", ha="right", va="bottom"
    )
    axes.set(xlim=(0, 1.02 * frame["tau"].max()), ylim=(0, 1.12))
    axes.set(xlabel=r"size of the query, $\tau=\|\Gamma^{1/2}Uz\|$", ylabel="slope of the mean answer")
    handles, labels = axes.get_legend_handles_labels()
    handles += [Line2D([], [], color=ink(), linewidth=1.5)]
    labels += ["exact, $1-P$"]
    axes.legend(handles, labels, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def other_measures(result: Result) -> Figure:
    r"""Five token laws of the same mean and the same variance, one coordinate.

    Curves: the exact output $\Lambda'(\xi)$ of the infinite prompt at score scale $\xi = Uz$ ($V=1$). Points: the mean
    output of independent finite prompts, with its standard error. All curves are tangent at $\xi=0$, where attention
    sees only the mean and the variance; only the Gaussian stays on its tangent. Signs and the uniform law saturate
    at their largest value, the mixture goes from one affine expert to another, the Laplace law has a pole (dotted),
    which finite prompts cannot follow. At large $\xi$ the Gaussian prompts leave their line too, being finite.

    Alt: Line chart of attention output against the tilt xi from minus four to four. All five curves touch at the
    origin. The Gaussian is a straight line, signs and uniform saturate, the mixture is an asymmetric S, and the
    Laplace curve blows up at two vertical dotted lines. Points of finite prompts lie on the curves except near the
    Laplace poles and at the far ends of the Gaussian line.
    """
    frame = result.tables["other_measures"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    measures = list(dict.fromkeys(frame["measure"]))
    for measure, marker in zip(measures, _cycled(MARKERS, len(measures)), strict=True):
        curve = frame[frame["measure"] == measure]
        (line,) = axes.plot(curve["tilt"], curve["exact"], linewidth=2)
        shown = curve.iloc[::4]
        axes.errorbar(
            shown["tilt"],
            shown["prompts_mean"],
            shown["prompts_std_error"],
            color=line.get_color(),
            linestyle="",
            marker=marker,
            markersize=5.5,
            capsize=2,
            label=measure,
        )
    for pole in (-np.sqrt(2), np.sqrt(2)):
        axes.axvline(pole, color=ink(), linestyle=":", linewidth=1.5)
    axes.set(xlim=(-4.1, 4.1), ylim=(-4.4, 4.4), xlabel=r"score per unit of token, $\xi=Uz$", ylabel="output")
    axes.annotate(r"Laplace pole $1/b$", (np.sqrt(2), -4.2), xytext=(5, 0), textcoords="offset points", va="bottom")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def laplace_domain(result: Result) -> Figure:
    r"""Laplace tokens of scale $b$ before, near and beyond the pole.

    Outputs of independent prompts against their length: the mean with its standard error (points), the central half
    and nine tenths of the prompts (thick and thin bars). Dashed: the limit $2b^2\xi/(1-b^2\xi^2)$ where there is one,
    and $b\ln L$ up to a fitted constant beyond the pole. Left: the fluctuation is finite and the outputs close in on
    the limit like $1/\sqrt L$. Middle: a limit without a finite fluctuation, approached slowly. Right: the output
    grows forever, and its random part keeps its size.

    Alt: Three panels of attention output against prompt length. Left: bars shrink onto a horizontal dashed line.
    Middle: bars drift up to a dashed line and are still wide at a million tokens. Right: the outputs climb along a
    straight line in the logarithm of the length, and the bars keep their width.
    """
    frame = result.tables["laplace_domain"].frame
    tilts = sorted(frame["tilt"].unique().tolist())
    figure, panels = plt.subplots(1, len(tilts), figsize=SIZE, sharex=True)
    titles = ("it settles", "it settles slowly", "it never settles")
    for panel, tilt, title, colour in zip(panels, tilts, titles, _cycle(len(tilts)), strict=True):
        curve = frame[frame["tilt"] == tilt]
        panel.vlines(curve["length"], curve["q05"], curve["q95"], color=colour, linewidth=1.5)
        panel.vlines(curve["length"], curve["q25"], curve["q75"], color=colour, linewidth=6, alpha=0.5)
        panel.errorbar(
            curve["length"], curve["mean"], curve["std_error"], color=colour, marker="o", markersize=5, linestyle=""
        )
        panel.plot(curve["length"], curve["law"], color=ink(), linestyle="--", linewidth=1.5)
        panel.set(xscale="log", xlabel="prompt length $L$", title=f"{title}\n$\\xi={tilt:g}/b$")
        _decades(panel)
    panels[0].set_ylabel("output, in units of $b$")
    panels[-1].yaxis.set_major_locator(MultipleLocator(4))
    return figure


def _power(length: int) -> str:
    exponent = round(np.log10(length))
    return f"10^{{{exponent}}}" if 10**exponent == length else f"{length}"


def _cycle(n: int) -> list[str]:
    return [f"C{i}" for i in range(n)]


def _cycled(values: tuple, n: int) -> list:
    return [values[i % len(values)] for i in range(n)]


def _decades(axes: Axes) -> None:
    axes.minorticks_off()
    axes.margins(x=0.1)
