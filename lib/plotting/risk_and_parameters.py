"""Pictures of risk and parameters. Each draws the table of its own name."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from lib.experiments.result import Result
from lib.plotting.style import ink, sequence

SIZE = (8.0, 4.5)
MARKERS = ("o", "s", "^", "D", "v", "P")


def drift_along_the_valley(result: Result) -> Figure:
    r"""Training with a long prompt: fast to the valley, then slowly along it.

    Gradient flow of the exact risk from a balanced start ($\Sigma=I$, $d=5$, no noise), against training time. Top:
    mean square error $2R_L$. Middle: $bu$, which an infinite prompt wants to be 1. Bottom: $u$ of $A=uI$. Black,
    dashed: the infinite prompt. Short ticks at the right: the head of least risk at each length. The risk of a long
    prompt vanishes with its length; the time of the drift grows with it, and its end does not approach the infinite
    flow's limit.

    Alt: Three charts above each other against logarithmic time. The mean square error falls together for all lengths,
    then stops at levels proportional to one over the length. The product rises to one and stays. The parameter u
    rises with the dashed infinite curve to 0.67, then falls to about 0.35, later for longer prompts.
    """
    frame = result.tables["drift_along_the_valley"].frame
    frame = frame[frame["time"] > 0]
    figure, panels = plt.subplots(3, 1, figsize=(8.0, 8.0), sharex=True, height_ratios=(3, 2, 3))
    lengths = sorted(frame["length"].unique().tolist())
    end = frame["time"].max()
    longest = frame[frame["length"] == lengths[-1]]
    for length, colour in zip(lengths, sequence(len(lengths)), strict=True):
        curve = frame[frame["length"] == length]
        for panel, column in zip(panels, ("risk", "product", "tilt"), strict=True):
            # a flow that has arrived stays where it is
            times, values = [*curve["time"], end], [*curve[column], curve[column].iloc[-1]]
            panel.plot(times, values, color=colour, linewidth=2, label=_tokens(length))
        best = curve["best_tilt"].max()
        panels[2].plot([0.6 * end, end], [best, best], color=colour, linewidth=5, solid_capstyle="butt")
    for panel, column in zip(panels, ("infinite_risk", "infinite_product", "infinite_tilt"), strict=True):
        panel.plot(longest["time"], longest[column], color=ink(), linestyle="--", linewidth=1.4, label=r"$L=\infty$")
    panels[0].set(yscale="log", ylabel="mean square error $2R$")
    panels[0].set(ylim=(0.3 * frame["risk"].min(), 2 * frame["risk"].max()))
    panels[1].set(ylabel="$bu$", ylim=(0, 1.1))
    panels[2].set(ylabel="$u$", xlabel="training time", xscale="log", xlim=(frame["time"].min(), end))
    panels[1].legend(loc="lower right", ncols=2)
    return figure


def price_of_one_head(result: Result) -> Figure:
    r"""What one softmax head costs, against the dimension.

    Left: least risk of one softmax head over that of linear attention. Right: $du^2$ of the best head $A=uI$. Points:
    found by minimising the exact risk at the given lengths. Solid: the limit $L\to\infty$ in closed form. Dashed: its
    own limit for large dimensions, $e$ and 1. For short prompts the price is smaller.

    Alt: Two charts against the dimension on a logarithmic axis. Left: a curve falls from 4.2 at dimension one through
    3.2 at five towards a dashed line at e; points of the longest prompts lie on it, of shorter prompts below. Right:
    a curve rises from 0.23 towards a dashed line at one.
    """
    frame = result.tables["price_of_one_head"].frame
    curve, points = frame[frame["limit"].notna()], frame[frame["ratio"].notna()]
    figure, panels = plt.subplots(1, 2, figsize=SIZE)
    lengths = sorted(points["length"].unique().tolist())
    for panel, limit, column, level in zip(
        panels, ("limit", "limit_squared"), ("ratio", "squared"), (np.e, 1.0), strict=True
    ):
        panel.plot(curve["dimension"], curve[limit], color=ink(), linewidth=2, label=r"$L\to\infty$")
        for length, colour, marker in zip(lengths, sequence(len(lengths)), MARKERS, strict=False):
            found = points[points["length"] == length]
            panel.plot(found["dimension"], found[column], marker, color=colour, markersize=7, label=_tokens(length))
        panel.axhline(level, color=ink(), linestyle="--", linewidth=1)
        panel.set(xscale="log", xlabel="dimension $d$")
    panels[0].annotate("$e$", (curve["dimension"].max(), np.e), xytext=(2, 5), textcoords="offset points", color=ink())
    panels[0].set(ylim=(1, 4.5), ylabel="softmax risk / linear risk", title="the price of one head")
    panels[1].set(ylim=(0, None), ylabel="$d\\,u^2$", title="the head that pays it")
    panels[1].legend(loc="lower right")
    return figure


def two_opposite_heads(result: Result) -> Figure:
    r"""Two heads of opposite keys and values have no price.

    Mean square error times $L$ at the best gain, against $u$: one head $A=uI$ (circles), and half of it together with
    half of its opposite (squares), over the same simulated prompts; bars are one standard error. Solid: exact theory
    of one head. Dotted: the large-$L$ law of two. Dashed: the best linear head. ($\Sigma=I$, $d=5$, no noise.)

    Alt: Log-log chart. Circles on a solid curve fall from several hundred at small u to about 80 near 0.4 and rise
    again. Squares lie on a dashed horizontal line near 29 up to u of 0.2, together with a dotted curve, and rise
    slowly beyond.
    """
    frame = result.tables["two_opposite_heads"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    seen = frame[frame["one_simulated"].notna()]
    for name, marker, colour, line, theory, says in (
        ("one", "o", "C0", "-", "one_exact", "one head, exact"),
        ("two", "s", "C1", ":", "two_law", r"two heads, $L\to\infty$"),
    ):
        axes.plot(frame["tilt"], frame[theory], color=colour, linestyle=line, linewidth=2, label=says)
        simulated, error = seen[f"{name}_simulated"], seen[f"{name}_std_error"]
        axes.errorbar(
            seen["tilt"], simulated, error, fmt=marker, color=colour, label=f"{says.partition(',')[0]}, simulated"
        )
    axes.axhline(frame["linear"].iloc[0], color=ink(), linestyle="--", linewidth=1.3, label="best linear head")
    axes.set(xscale="log", yscale="log", xlabel="$u$", ylabel="mean square error times $L$")
    ticks = seen["tilt"].tolist()
    axes.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    levels = [20, 50, 100, 200, 500, 1000]
    axes.set_yticks(levels, labels=[str(level) for level in levels])
    axes.minorticks_off()
    axes.set_ylim(20, 1.4 * seen["one_simulated"].max())
    axes.legend(loc="upper right")
    return figure


def _tokens(length: int | float) -> str:
    """`L = 10⁴` for a power of ten, the plain number otherwise."""
    exponent = round(np.log10(length))
    return f"$L=10^{{{exponent}}}$" if length == 10**exponent else f"$L={length:g}$"
