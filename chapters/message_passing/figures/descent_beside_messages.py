r"""On the same prompts, message passing ends at a lower risk than a softmax head trained by gradient descent.

Horizontal axis: prompts per dimension, $\alpha=n/D$. Vertical axis: excess risk; the output 0 has risk 1. Left: an easy
setting. Right: the setting of {numref}`fig-hard-phase`, where the shaded sample ratios are hard for message passing.
Lower lines: the state evolution, solid from an uninformed start, dashed from a start close to the truth. Upper marks:
softmax attention trained by gradient descent on the same prompts, at good ridges. Filled circles are runs from
uninformed starts, open squares from informed starts; means with bars of two standard errors.

Alt: Two panels with two groups of marks each. Left, both groups fall with more prompts, and gradient descent is above.
Right, message passing falls along one of two branches. Gradient descent stays near the top, where the risk is that of
the output 0, and its circles and squares coincide at every number of prompts.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.message_passing.descents import EASY
from chapters.message_passing.runs import mean
from chapters.message_passing.settings import HARD, Setting
from chapters.message_passing.style import COLOURS, START_MARKERS, draw_ends
from chapters.message_passing.theory import DIFFERENT, ENDS_COLUMNS, Ends, Measured, ends_rows
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label, ticks_at

MESSAGES, DESCENT, EVOLUTION = "message passing", "gradient descent", "evolution"
KEYS = ["length", "snr", "alpha", "dimension", "seed", "start"]
# From this sample ratio on, the easy setting has enough prompts for one minimum.
MANY = 4.0
# Size and filling of the marks of the two starts, such that both can be seen where they coincide.
SIZES = {"uninformed": (4.0, "full"), "informed": (9.0, "none")}


def numbers(
    best: Mapping[tuple[Setting, float], Measured],
    ends: Mapping[float, Ends],
    messages: pd.DataFrame,
    descended: pd.DataFrame,
    trained: pd.DataFrame,
) -> Numbers:
    """Return mean risks of both algorithms by start, the state evolution, and the claims that compare them."""
    names = {setting.length: f"{setting.name}, Δ = {setting.noise_std:g}" for setting in (EASY, HARD)}
    easy, hard = names.values()
    rows = [(easy, EVOLUTION, "uninformed", at, *risk, False, False) for (s, at), risk in best.items() if s == EASY]
    rows += [(hard, EVOLUTION, *row) for row in ends_rows(ends)]
    for kind, runs in ((MESSAGES, messages), (DESCENT, descended)):
        for (length, start, alpha), some in runs.groupby(["length", "start", "alpha"], sort=False):
            rows.append((names[length], kind, start, alpha, *mean(some["risk"]), False, False))
    columns = {
        "setting": Column("Prompt length, signal strength, and noise", "name"),
        "kind": Column("`evolution`: theory; `message passing` or `gradient descent`: simulated", "name"),
        **ENDS_COLUMNS,
    }
    claim = _claims(ends, messages[[*KEYS, "risk"]], descended, trained)
    return Numbers(Table(pd.DataFrame(rows, columns=list(columns)), columns), claim)


def _claims(
    ends: Mapping[float, Ends], messages: pd.DataFrame, descended: pd.DataFrame, trained: pd.DataFrame
) -> Claims:
    claim = Claims("message-passing", source="measured here")
    pairs = descended.merge(messages, on=KEYS, suffixes=("", "_messages"))
    uninformed, hard = pairs[pairs["start"] == "uninformed"], pairs[pairs["length"] == HARD.length]
    half = messages.assign(alpha=2 * messages["alpha"])
    fewer = uninformed.drop(columns="risk_messages").merge(half, on=KEYS, suffixes=("", "_messages"))
    claim.at_least(
        "beside-descent",
        "On the same prompts and from uninformed starts, message passing ends at a lower risk than gradient "
        "descent on the empirical risk of softmax attention, in both settings: the smallest of "
        f"{len(uninformed)} ratios.",
        (uninformed["risk"] / uninformed["risk_messages"]).min(),
        1,
        because="the ratio is above 1 where message passing has the lower risk",
        rejects=("message passing had half of the prompts", (fewer["risk"] / fewer["risk_messages"]).min()),
    )
    last = hard["alpha"].max()
    beyond = hard[(hard["alpha"] == last) & (hard["start"] == "uninformed")]
    way = 1.0 - ends[last].informed.value
    claim.at_most(
        "beside-descent-way",
        f"In long prompts with a weak signal, beyond the hard phase ($α = {last:g}$), gradient descent "
        "improves little on the output 0: its improvement as a fraction of that of the informed end of the "
        "state evolution.",
        (1.0 - beyond["risk"]).mean() / way,
        0.25,
        because="a quarter is nearer to no improvement than to half of it",
        rejects=("it were that of message passing", (1.0 - beyond["risk_messages"]).mean() / way),
        box="hard-phase",
    )
    starts = hard.pivot_table(index=["alpha", "seed"], columns="start", values=["risk", "risk_messages"])
    apart = (starts.xs("uninformed", axis=1, level=1) - starts.xs("informed", axis=1, level=1)).abs().max()
    claim.at_most(
        "beside-descent-start",
        "In the hard setting gradient descent ends at the same risk from random vectors and from the hidden "
        f"directions, on the same prompts: the largest of {len(starts)} differences.",
        apart["risk"],
        0,
        within=DIFFERENT,
        because="risks that differ by more belong to different ends",
        rejects=("the differences were those of message passing", apart["risk_messages"]),
        box="hard-phase",
    )
    real = dict.fromkeys(("snr", "alpha"), float)  # a table in which all are whole has them as integers
    newton = trained[trained["head"] == "softmax"].astype(real)
    first = descended[descended["start"] == "uninformed"].astype(real)
    both = first.merge(newton, on=KEYS[:-1], suffixes=("", "_newton"))
    apart, many = (both["risk"] - both["risk_newton"]).abs(), both["alpha"] >= MANY
    claim.at_most(
        "beside-descent-bottom",
        f"In the easy setting ($L = {EASY.length}$, $ν = {EASY.snr:g}$) with at least {MANY:g} prompts per "
        "dimension, gradient descent from random vectors ends at the same risk as L-BFGS from the hidden "
        f"directions: the largest of {many.sum()} differences.",
        apart[many].max(),
        0,
        within=1e-3,
        because="a tenth of the least difference between risks at different ends",
        rejects=("the prompts were fewer", apart[~many].max()),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per setting."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.2), sharey=True)
    colours = {MESSAGES: COLOURS["Bayes-optimal"], DESCENT: COLOURS["softmax"]}
    settings = table.groupby("setting", sort=False)
    for panel, (name, mine), ticks in zip(panels, settings, ([1, 2, 4, 8], [1.5, 2, 3, 4]), strict=True):
        lines = mine[mine["kind"] == EVOLUTION].sort_values("alpha")
        draw_ends(panel, lines)
        for kind, colour in colours.items():
            for start, marker in START_MARKERS.items():
                runs = mine[(mine["kind"] == kind) & (mine["start"] == start)].sort_values("alpha")
                size, fill = SIZES[start]
                look = {"color": colour, "marker": marker, "fillstyle": fill, "markersize": size}
                error_bars(panel, runs["alpha"], runs["risk"], runs["std_error"], **look)
        title = name.replace("L", "$L$").replace("ν", r"$\nu$").replace("Δ", r"$\Delta$")
        panel.set(xscale="log", title=title, ylim=(0, 1.05), xlabel=r"prompts per dimension, $\alpha=n/D$")
        ticks_at(panel.xaxis, ticks)
    panels[0].set_ylabel("excess risk")
    marks = [
        Line2D([], [], linestyle="", color=ink(), fillstyle=fill, marker=START_MARKERS[start], markersize=size)
        for start, (size, fill) in SIZES.items()
    ]
    panel.legend(marks, [f"{start} start" for start in SIZES], loc="lower left")
    last = mine[mine["kind"] == DESCENT].sort_values("alpha").iloc[-1]
    end = lines.sort_values("alpha").iloc[-1]
    label(panel, last["alpha"], last["risk"], "gradient\ndescent", colours[DESCENT], xytext=(10, 0))
    label(panel, end["alpha"], end["risk"], "message\npassing", colours[MESSAGES], xytext=(10, 0))
    return figure
