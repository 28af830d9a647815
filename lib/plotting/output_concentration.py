"""Pictures of `output_concentration`: errors by scale, by dimension and by token law, and the proof at work."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from lib.experiments.result import Result
from lib.plotting.style import ink, sequence

SIZE = (8.0, 4.6)
MARKERS = ("o", "s", "^", "D", "v", "P")


def output_error_vs_length(result: Result) -> Figure:
    r"""Error of the output against the length of the prompt, for Gaussian tokens of growing scale $\sigma$.

    Mean square of $T[\hat\mu_L]-T[\mu]$ over prompts and queries. Points: simulated prompts, with two standard errors.
    Solid: exact, from the integrals $P$ and $Q$. Dashed: the form $c_1\sigma^6\ln L/L^{c_2/\sigma^2}$ of the bound.
    The paper does not give its constants; one pair of them was fitted here to the solid curves left of the dotted
    line, and serves all $\sigma$. Dash-dotted: slope $-1$. The larger the scale, the slower the decay, in the error as
    in the bound; the powers of $\sigma$ make the bound generous.

    Alt: Log-log plot of error against prompt length from two to ten to the twelve. Four solid curves fall, the lowest
    with slope minus one and the highest barely; points lie on them up to a few thousand tokens. Four dashed curves
    of the same colours run above them, further above for larger scales. A dotted vertical line stands at a million.
    """
    frame = result.tables["output_error_vs_length"].frame
    sigmas = sorted(frame["sigma"].unique())
    figure, axes = plt.subplots(figsize=(8.0, 5.2))
    for sigma, colour, marker in _series(sigmas):
        mine = frame[frame["sigma"] == sigma]
        exact, prompts = (mine[mine["kind"] == kind] for kind in ("exact", "prompts"))
        bound = mine[mine["kind"].isin(["fitted", "bound"])]
        axes.plot(exact["length"], exact["error"], color=colour, linewidth=2)
        axes.plot(bound["length"], bound["error"], color=colour, linewidth=1.4, linestyle="--")
        _points(axes, prompts, colour, marker, rf"$\sigma={sigma:g}$")
    exact = frame[frame["kind"] == "exact"]
    lengths = np.asarray(sorted(exact["length"].unique()))
    middle = frame[frame["kind"] == "fitted"]["length"].max()
    axes.axvline(middle, color=ink(), linestyle=":", linewidth=1.5)
    least = exact[exact["sigma"] == sigmas[0]]
    _slope(axes, (lengths[-1] / 1e5, lengths[-1] / 30), 0.2 * least["error"].iloc[-1] * lengths[-1])
    axes.annotate(
        "fitted left of here", (middle, least["error"].iloc[-1]), (-6, 2), textcoords="offset points", ha="right"
    )
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="mean squared error of the output")
    axes.set(xlim=(lengths[0], lengths[-1]), ylim=(least["error"].iloc[-1] / 3, None))
    _decades(axes)
    handles, labels = axes.get_legend_handles_labels()
    handles += [_line("-"), _line("--", 1.4), _line("-.", 1.2)]
    labels += ["exact", "form of the bound,\nconstants fitted", r"slope $-1$"]
    axes.legend(handles, labels, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def output_error_by_dimension(result: Result) -> Figure:
    r"""Error of the output against length, for isotropic Gaussian tokens and queries in $d$ dimensions.

    Mean square of $T[\hat\mu_L]-T[\mu]$, over that of $T[\mu]$: at 1 (dotted) a prompt is no better than the answer 0.
    Points: simulated, with two standard errors. Solid: exact. Dash-dotted: slope $-1$. All curves have the same $H$
    and in the end the same slope. But $\tau^2=H^2\|z\|^2$ is of the order of $H^2d$, and the length at which the decay
    sets in grows exponentially with it.

    Alt: Log-log plot of relative error against prompt length from two to ten to the twelve, one solid curve for each
    dimension, with points on the curves for short prompts. The curves fall in parallel at the end; the higher the
    dimension the further to the right they lie.
    """
    frame = result.tables["output_error_by_dimension"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    dimensions = sorted(frame["dimension"].unique())
    for dimension, colour, marker in _series(dimensions):
        mine = frame[frame["dimension"] == dimension]
        exact, prompts = (mine[mine["kind"] == kind] for kind in ("exact", "prompts"))
        axes.plot(exact["length"], exact["error"], color=colour, linewidth=2)
        _points(axes, prompts, colour, marker, f"$d={dimension}$")
    exact = frame[(frame["kind"] == "exact") & (frame["dimension"] == dimensions[0])]
    longest = exact["length"].max()
    axes.axhline(1, color=ink(), linestyle=":", linewidth=1.5)
    _slope(axes, (longest / 1e5, longest / 30), 0.2 * exact["error"].iloc[-1] * longest)
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="mean squared error, relative")
    axes.set(xlim=(exact["length"].min(), longest), ylim=(exact["error"].min() / 3, None))
    _decades(axes)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend([*handles, _line("-"), _line("-.", 1.2)], [*labels, "exact", r"slope $-1$"], loc="lower left")
    return figure


def output_error_by_law(result: Result) -> Figure:
    r"""Four token laws with the same $\sigma$, and two rates.

    Mean square of $L^{1/2}(T[\hat\mu_L]-T[\mu])$ over prompts and queries, two coordinates, $U=uI$. Every law has the
    variance $\sigma^2$ in each coordinate and is $\sigma$-sub-Gaussian with no smaller constant, so Proposition 3.1
    treats them alike. Points: simulated, with two standard errors, joined to guide the eye. Dashed: the mean of
    $\operatorname{tr}(\mathrm{fluctuation})$ over queries, the limit where it is finite. Signs, uniform and clustered
    tokens level off at it: their error falls like $1/L$. The Gaussian has none and climbs: its error falls slower.

    Alt: Log-log plot of prompt length times error against prompt length. Points of Rademacher, uniform and mixture
    tokens become flat on three dashed horizontal lines within a few hundred tokens. The Gaussian points climb along a
    straight line with no end in sight.
    """
    frame = result.tables["output_error_by_law"].frame
    figure, axes = plt.subplots(figsize=SIZE)
    for index, law in enumerate(dict.fromkeys(frame["law"])):
        mine = frame[frame["law"] == law]
        prompts, limit = (mine[mine["kind"] == kind] for kind in ("prompts", "limit"))
        lengths = prompts["length"]
        axes.errorbar(
            lengths,
            lengths * prompts["error"],
            2 * lengths * prompts["std_error"],
            color=f"C{index}",
            marker=MARKERS[index],
            markersize=6,
            linewidth=1,
            capsize=2,
            label=law,
        )
        axes.plot(limit["length"], limit["length"] * limit["error"], color=f"C{index}", linestyle="--", linewidth=1.8)
    axes.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="$L$ × mean squared error")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_locator(NullLocator())
    handles, labels = axes.get_legend_handles_labels()
    axes.legend([*handles, _line("--", 1.8)], [*labels, "limit"], loc="upper left")
    return figure


def output_proof(result: Result) -> Figure:
    r"""The three steps of the proof, on Gaussian tokens.

    Left: the normalised partition function $W=\frac1L\sum_ie^{\langle\xi,z_i\rangle-\Lambda(\xi)}$, whose mean is 1 at
    every query size $\tau$: median, central half and nine tenths of its distribution over prompts. It concentrates for
    small $\tau$ only. Once $\tau$ passes the size of the largest of $L$ normals (dotted), the largest term alone
    (dashed: its median) is most of $W$. Middle: share of prompts and queries with a weight above $M=L^\kappa$; exact
    (lines), simulated (points, two standard errors). It is this share that falls like $L^{-c/\sigma^2}$. Right, at the
    least $\sigma$: the error, its part from the prompts above $M$, and the bound
    $(\max_i\|Vz_i\|+\|T[\mu](z)\|)^2$ of that part, means over all prompts.

    Alt: Three panels. Left, a band around zero that bends downward and widens as the query grows. Middle, log-log: four
    falling curves with points, the lowest falling fastest and the highest almost flat near one. Right, log-log: an
    upper series stays nearly flat while two lower ones fall together, the lower of the two ever further below.
    """
    frame = result.tables["output_proof"].frame
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10.5, 4.2))
    _partition_panel(left, frame[frame["panel"] == "partition"], result.parameters["partition_length"])
    share = frame[frame["panel"] == "share"]
    for sigma, colour, marker in _series(sorted(share["sigma"].unique())):
        mine = share[share["sigma"] == sigma]
        exact, prompts = (mine[mine["series"] == series] for series in ("exact", "prompts"))
        middle.plot(exact["x"], exact["value"], color=colour, linewidth=2)
        _points(middle, _as_error(prompts), colour, marker, rf"$\sigma={sigma:g}$")
    middle.set(xscale="log", yscale="log", xlim=(2, share["x"].max()), title="weights above $M$")
    middle.set(xlabel="prompt length $L$", ylabel="share of prompts and queries")
    middle.set_xticks([1e1, 1e4, 1e7, 1e10])
    middle.legend(loc="lower left", handletextpad=0.3)
    split = frame[frame["panel"] == "split"]
    names = {"ceiling": "bound above $M$", "error": "error", "above": "error above $M$"}
    for index, (series, name) in enumerate(names.items()):
        _points(right, _as_error(split[split["series"] == series]), f"C{index}", MARKERS[index], name, linewidth=1.0)
    right.set(xscale="log", yscale="log", xlabel="prompt length $L$", ylabel="mean square")
    right.set_title(rf"parts of the error, $\sigma={split['sigma'].iloc[0]:g}$")
    for panel in (middle, right):
        panel.xaxis.set_minor_locator(NullLocator())
        panel.yaxis.set_minor_locator(NullLocator())
    right.legend(loc="lower left")
    return figure


def _partition_panel(axes: Axes, frame: pd.DataFrame, length: int) -> None:
    by_name = {name: frame[frame["series"] == name] for name in ("lowest", "low", "median", "high", "highest")}
    taus = by_name["median"]["x"].to_numpy()
    for low, high, alpha in (("lowest", "highest", 0.18), ("low", "high", 0.3)):
        axes.fill_between(taus, by_name[low]["value"], by_name[high]["value"], color="C0", alpha=alpha, linewidth=0)
    axes.plot(taus, by_name["median"]["value"], color="C0", linewidth=2)
    alone = frame[frame["series"] == "alone"]
    axes.plot(alone["x"], alone["value"], color=ink(), linestyle="--", linewidth=1.5)
    axes.axhline(0, color=ink(), linewidth=1)
    axes.axvline(alone["x"].min(), color=ink(), linestyle=":", linewidth=1.5)
    axes.set(xlim=(0, taus.max()), xlabel=r"size of the query, $\tau$", ylabel=r"$\ln W$")
    axes.set_title(f"partition functions, $L={length}$")
    axes.legend(
        [Line2D([], [], color="C0", linewidth=2), Patch(color="C0", alpha=0.45), Patch(color="C0", alpha=0.18)],
        ["median", "half", "nine tenths"],
        loc="lower left",
        fontsize="small",
    )


def _as_error(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.rename(columns={"x": "length", "value": "error"})


def _series(values: list) -> list[tuple]:
    return list(zip(values, sequence(len(values)), (MARKERS * 2)[: len(values)], strict=True))


def _points(axes: Axes, frame: pd.DataFrame, colour, marker: str, label: str, *, linewidth: float = 0.0) -> None:
    axes.errorbar(
        frame["length"],
        frame["error"],
        2 * frame["std_error"],
        color=colour,
        marker=marker,
        markersize=5.5,
        linewidth=linewidth,
        elinewidth=1.5,
        capsize=2,
        label=label,
    )


def _slope(axes: Axes, ends: tuple[float, float], height: float) -> None:
    x = np.asarray(ends)
    axes.plot(x, height / x, color=ink(), linestyle="-.", linewidth=1.2)


def _decades(axes: Axes) -> None:
    axes.xaxis.set_major_locator(LogLocator(numticks=8))
    axes.yaxis.set_major_locator(LogLocator(numticks=10))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())


def _line(style: str, width: float = 2.0) -> Line2D:
    return Line2D([], [], color=ink(), linestyle=style, linewidth=width)
