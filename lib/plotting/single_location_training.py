"""Pictures of `single_location_training`: what two vectors learn, and the manifold that they leave or keep."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lib.experiments.result import Result
from lib.plotting.style import ink

LINES = {"key": "-", "value": "--"}


def order_parameters_in_training(result: Result) -> Figure:
    r"""What descent learns from random starts on the manifold of zero cross overlaps.

    Across: steps of projected gradient descent. Upper row: $|\langle k,k^\star\rangle|$ (solid) and
    $|\langle v,v^\star\rangle|$ (dashed), 1 where the direction is found. Lower row: excess risk in units of
    $\gamma^2$, on a logarithmic axis; answering 0 costs 1. Lines are medians over the starts, bands their central four
    fifths. The flat erf finds both directions; the sharp one never gets below the price of the weight that it gives
    to the other tokens; lowering $\lambda$ on the way repairs that; softmax ends near zero.

    Alt: Two rows of four panels, one column a head. Above, overlaps rise from zero: towards one with the flat erf, the
    key only to a quarter with the sharp erf, and to a half or more with the falling schedule and with softmax. Below,
    the risk falls from about one to a quarter for the flat erf, stays near eight for the sharp one, falls from nine to
    about a quarter under the schedule, and to a thousandth with softmax.
    """
    frame = result.tables["order_parameters_in_training"].frame
    heads = list(dict.fromkeys(frame["head"]))
    figure, panels = plt.subplots(2, len(heads), figsize=(9.0, 5.0), sharex="col", sharey="row")
    for column, (head, colour) in enumerate(zip(heads, _colours(heads), strict=True)):
        mine = frame[frame["head"] == head]
        for quantity, line in LINES.items():
            _band(panels[0, column], mine[mine["quantity"] == quantity], colour, line)
        _band(panels[1, column], mine[mine["quantity"] == "risk"], colour, "-")
        panels[0, column].set_title(head.replace("λ", "$\\lambda$"), fontsize="small")
        panels[1, column].set(xlabel="steps", yscale="log")
        panels[1, column].axhline(1, color=ink(), linestyle=":", linewidth=1)
        panels[1, column].tick_params(axis="x", labelrotation=30)
    panels[0, 0].set(ylabel="overlap", ylim=(0, 1.05))
    panels[1, 0].set(ylabel=r"risk$\,/\,\gamma^2$")
    handles = [Line2D([], [], color=ink(), linestyle=line) for line in LINES.values()]
    labels = [r"$|\langle k,k^\star\rangle|$", r"$|\langle v,v^\star\rangle|$"]
    figure.legend(handles, labels, loc="outside upper center", ncols=2)
    return figure


def manifold_distance_in_training(result: Result) -> Figure:
    r"""Distance to the manifold on which $\langle k,v^\star\rangle=\langle v,k^\star\rangle=\langle k,v\rangle=0$.

    Across: steps of projected gradient descent. Up, on a logarithmic axis: the norm of the three cross overlaps, from
    random starts on the manifold (dashed) and anywhere on the spheres (solid); medians over the starts, bands their
    central four fifths. Values below the spacing of floating-point numbers are drawn there. Starts on the manifold
    stay on it. From anywhere, erf-attention whose $\lambda$ is small in the end mostly comes closer to the manifold,
    but some of its runs end about 1 away from it, where k and v have exchanged their roles. The sharp erf and softmax
    end about as far from it as they began.

    Alt: Four panels, one a head, with a logarithmic axis from ten to the minus seventeen to one. Solid curves start
    near 0.1 in all of them. With the flat erf and the falling schedule they fall at last, while their bands open and
    reach one; with the sharp erf and with softmax they end near where they began. Dashed curves lie flat at rounding
    errors in all panels.
    """
    frame = result.tables["manifold_distance_in_training"].frame
    heads = list(dict.fromkeys(frame["head"]))
    figure, panels = plt.subplots(1, len(heads), figsize=(9.0, 3.4), sharey=True)
    for panel, head, colour in zip(panels, heads, _colours(heads), strict=True):
        mine = frame[frame["head"] == head]
        _band(panel, mine[mine["start"] == "anywhere"], colour, "-")
        _band(panel, mine[mine["start"] != "anywhere"], colour, "--")
        panel.set(xlabel="steps", yscale="log", ylim=(1e-17, 5))
        panel.set_title(head.replace("λ", "$\\lambda$"), fontsize="small")
        panel.tick_params(axis="x", labelrotation=30)
    panels[0].set_ylabel("distance to the manifold")
    handles = [Line2D([], [], color=ink(), linestyle=line) for line in ("-", "--")]
    figure.legend(handles, ["starts anywhere", "starts on the manifold"], loc="outside upper center", ncols=2)
    return figure


def _band(axes: Axes, curve, colour: str, line: str) -> None:
    axes.fill_between(curve["step"], curve["low"], curve["high"], color=colour, alpha=0.2, linewidth=0)
    axes.plot(curve["step"], curve["median"], color=colour, linestyle=line, linewidth=2)


def _colours(heads: list[str]) -> list[str]:
    return [f"C{i}" for i in range(len(heads))]
