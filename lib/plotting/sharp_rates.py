"""Pictures of the sharp rates. Each draws the table of its own name."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lib.experiments.result import Result
from lib.plotting.style import ink, sequence

SIZE = (8.0, 4.5)
MARKERS = ("o", "s", "^", "D", "v", "P")


def rate_at_fixed_ratio(result: Result) -> Figure:
    r"""The exponent of the error when the query grows with the prompt.

    Local exponent $-\,d\ln Q/d\ln L$ along $\tau=a\sqrt{2\ln L}$, against the fixed ratio $a$. Lines: exact, from
    short to astronomically long prompts. Dashed: the heuristic limit $r(a)$. Vertical lines: $a=1/\sqrt3$, where rare
    large scores take over the mean square, and $a=1$, where the prompt freezes and length stops helping.

    Alt: Line chart of an exponent against a. A dashed curve falls from one, bends at 0.58, and reaches zero at one,
    where it stays. Exact curves approach it as the length grows; the longest is indistinguishable from it.
    """
    frame = result.tables["rate_at_fixed_ratio"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    lengths = sorted(frame["log_length"].unique().tolist())
    for log_length, colour in zip(lengths, sequence(len(lengths)), strict=True):
        curve = frame[frame["log_length"] == log_length]
        axes.plot(curve["ratio"], curve["slope"], color=colour, linewidth=2, label=rf"exact, $\ln L={log_length:g}$")
    limit = frame.drop_duplicates("ratio").sort_values("ratio")
    axes.plot(limit["ratio"], limit["exponent"], color=ink(), linestyle="--", linewidth=1.5, label="$r(a)$, heuristic")
    for ratio, label in ((1 / np.sqrt(3), r"$a=1/\sqrt{3}$"), (1.0, "$a=1$")):
        axes.axvline(ratio, color=ink(), linewidth=0.8, linestyle=":")
        axes.annotate(label, (ratio, 1.02), xytext=(4, 0), textcoords="offset points", va="top", color=ink())
    axes.set(xlim=(0, frame["ratio"].max()), ylim=(min(-0.12, frame["slope"].min()), 1.05))
    axes.set(xlabel=r"$a=\tau/\sqrt{2\,\ln L}$", ylabel="exponent of the error")
    axes.legend(loc="lower left")
    return figure


def local_slopes(result: Result) -> Figure:
    r"""The error averaged over queries: its local slope approaches a power law slowly.

    Solid: $-\,d\ln\text{error}/d\ln L$ of the mean square error averaged over standard normal queries, exact, against
    $\ln L$, for four values of $H^2$. Dashed: the limit $\beta(H)$, a heuristic. The largest prompts ever simulated
    have $\ln L\approx 16$ (dotted): what a fit would find there is not the exponent.

    Alt: Line chart of local slope against logarithm of length, up to 330. Four solid curves settle on four dashed
    levels: 1, 0.62, 0.37 and 0.21. At the left, where simulations end, they are still away from them.
    """
    frame = result.tables["local_slopes"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    norms = sorted(frame["squared_norm"].unique().tolist())
    end = frame["log_length"].max()
    for squared, colour, marker in zip(norms, sequence(len(norms)), MARKERS, strict=False):
        curve = frame[frame["squared_norm"] == squared]
        level = curve["exponent"].max()
        axes.axhline(level, color=colour, linestyle="--", linewidth=1.2)
        axes.plot(curve["log_length"], curve["slope"], color=colour, marker=marker, markersize=5, linewidth=2)
        label = rf"$H^2={squared:g}$: $\beta={level:.3f}$"
        axes.annotate(label, (end, level), xytext=(8, 0), textcoords="offset points", va="center", color=ink())
    axes.axvline(16, color=ink(), linestyle=":", linewidth=1.2)
    axes.annotate("simulations end", (16, 1.06), xytext=(4, 0), textcoords="offset points", va="center", color=ink())
    axes.set(xscale="log", xlabel=r"$\ln L$", ylabel="local slope of the error", ylim=(0, 1.1))
    axes.set_xticks([5, 10, 20, 50, 100, 200, 330], labels=["5", "10", "20", "50", "100", "200", "330"])
    axes.minorticks_off()
    solid, dashed = Line2D([], [], color=ink(), linewidth=2), Line2D([], [], color=ink(), linewidth=1.2, linestyle="--")
    axes.legend([solid, dashed], ["exact", r"$\beta(H)$, heuristic"], loc="upper left", bbox_to_anchor=(0.62, 0.9))
    return figure


def exponent_laws(result: Result) -> Figure:
    r"""One exponent against the size of the head, and what it must not be confused with.

    Points: local slope of the exact query-averaged mean square error at $\ln L=300$. Solid: $\beta(H)$, which is 1 up
    to $H^2=\frac12$ and $\frac12(\sqrt{1+4/H^2}-1)$ beyond. Dashed: the form $c_2/\sigma^2$ of Prop. 3.1 with the
    constant that is sharp for large $H$. Dotted: $1/(1+H^2)$, twice the exponent of [TSC], which measures another
    error (see the text).

    Alt: Log-log chart of exponents against H squared. Exact points follow a solid curve, flat at one and then falling
    like one over H squared; a dashed line joins it from above, a dotted curve runs below it and joins it at the
    right.
    """
    frame = result.tables["exponent_laws"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    axes.plot(frame["squared_norm"], frame["exponent"], linewidth=2, color="C0", label=r"$\beta(H)$, heuristic")
    axes.plot(frame["squared_norm"], frame["slope"], "o", color="C1", markersize=5, label=r"exact, $\ln L=300$")
    axes.plot(frame["squared_norm"], frame["inverse"], "--", color=ink(), linewidth=1.3, label=r"$\min(1,1/H^2)$")
    axes.plot(
        frame["squared_norm"], frame["token_complexity"], ":", color="C2", linewidth=2, label=r"$1/(1+H^2)$, [TSC]"
    )
    axes.set(xscale="log", yscale="log", xlabel=r"$H^2$", ylabel="exponent of the mean square error")
    axes.set_xticks([0.125, 0.25, 0.5, 1, 2, 4, 8], labels=["1/8", "1/4", "1/2", "1", "2", "4", "8"])
    axes.set_yticks([0.1, 0.2, 0.5, 1], labels=["0.1", "0.2", "0.5", "1"])
    axes.minorticks_off()
    axes.legend(loc="lower left")
    return figure


def operator_norm(result: Result) -> Figure:
    r"""In more than one dimension it is the largest singular value that counts.

    Solid: local slope of the exact query-averaged error for five spectra of $\Gamma^{1/2}U\Gamma_q^{1/2}$. Dotted:
    $\beta-m/(2\ln L)$, with $\beta$ of the largest singular value and $m$ its multiplicity. Four spectra share the
    largest singular value 1 and the limit 0.618, though their Frobenius norms run from 1 to $\sqrt8$; a second
    singular value of one half changes nothing visible.

    Alt: Line chart of local slope against logarithm of length. Four solid curves of different spectra merge towards
    0.618, the eight-dimensional one slowest; a fifth, of a larger singular value, goes to 0.366. Dotted curves follow
    each.
    """
    frame = result.tables["operator_norm"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    for spectrum, marker in zip(dict.fromkeys(frame["spectrum"]), MARKERS, strict=False):
        curve = frame[frame["spectrum"] == spectrum]
        (line,) = axes.plot(
            curve["log_length"], curve["slope"], marker=marker, markersize=5, linewidth=2, label=spectrum
        )
        axes.plot(curve["log_length"], curve["predicted"], color=line.get_color(), linestyle=":", linewidth=1.5)
    for level in sorted(frame["operator"].unique()):
        axes.axhline(level, color=ink(), linestyle="--", linewidth=1)
    axes.set(xscale="log", xlabel=r"$\ln L$", ylabel="local slope of the error", ylim=(0, 0.75))
    axes.set_xticks([5, 10, 20, 50, 100, 200, 330], labels=["5", "10", "20", "50", "100", "200", "330"])
    axes.minorticks_off()
    handles, labels = axes.get_legend_handles_labels()
    handles += [Line2D([], [], color=ink(), linestyle=style, linewidth=1.3) for style in (":", "--")]
    labels += [r"$\beta-m/(2\,\ln L)$", r"$\beta(H)$"]
    axes.legend(handles, labels, title="singular values", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
