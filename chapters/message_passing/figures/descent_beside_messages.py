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
from matplotlib.ticker import FixedLocator, NullLocator

from chapters.message_passing.descents import EASY
from chapters.message_passing.runs import mean
from chapters.message_passing.settings import HARD, Setting
from chapters.message_passing.style import COLOURS, START_MARKERS
from chapters.message_passing.theory import DIFFERENT, Ends, Measured
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, error_bars, ink, label

MESSAGES, DESCENT, EVOLUTION = "message passing", "gradient descent", "evolution"
KEYS = ["length", "snr", "alpha", "dimension", "seed", "start"]
# From this sample ratio on, the easy setting has enough prompts for one minimum.
MANY = 4.0


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
    rows += [
        (hard, EVOLUTION, start, alpha, *getattr(both, start), both.two, both.hard)
        for alpha, both in ends.items()
        for start in START_MARKERS
    ]
    for kind, runs in ((MESSAGES, messages), (DESCENT, descended)):
        for (length, start, alpha), mine in runs.groupby(["length", "start", "alpha"], sort=False):
            rows.append((names[length], kind, start, alpha, *mean(mine["risk"]), False, False))
    columns = {
        "setting": Column("Prompt length, signal strength, and noise", "name"),
        "kind": Column("`evolution`: theory; `message passing` or `gradient descent`: simulated", "name"),
        "start": Column("`uninformed`: no information; `informed`: at or close to the truth", "name"),
        "alpha": Column("Sample ratio $α = n/D$"),
        "risk": Column("Excess risk; the output 0 has risk 1", std_error="std_error"),
        "std_error": Column("Standard error: of the quasi-random average, or over runs", moves_with="risk"),
        "two": Column("Whether the two starts of the evolution have different ends", "yes or no"),
        "hard": Column("Whether the phase is hard: two ends, and the informed one is Bayes-optimal", "yes or no"),
    }
    runs = messages[[*KEYS, "risk"]]
    pairs = descended.merge(runs, on=KEYS, suffixes=("", "_messages"))
    claims = (
        _further_claim(pairs, runs),
        _way_claim(pairs, ends),
        _start_claim(pairs),
        _bottom_claim(descended, trained),
    )
    return Numbers(Table(pd.DataFrame(rows, columns=list(columns)), columns), claims)


def _further_claim(pairs: pd.DataFrame, messages: pd.DataFrame) -> Claim:
    mine = pairs[pairs["start"] == "uninformed"]
    half = messages.assign(alpha=2 * messages["alpha"])
    fewer = mine.drop(columns="risk_messages").merge(half, on=KEYS, suffixes=("", "_messages"))
    return Claim(
        id="message-passing-beside-descent",
        statement=(
            "On the same prompts and from uninformed starts, message passing ends at a lower risk than gradient "
            f"descent on the empirical risk of softmax attention, in both settings: the smallest of {len(mine)} ratios."
        ),
        source="measured here",
        measured=float((mine["risk"] / mine["risk_messages"]).min()),
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative(
            "message passing had half of the prompts", float((fewer["risk"] / fewer["risk_messages"]).min())
        ),
    )


def _way_claim(pairs: pd.DataFrame, ends: Mapping[float, Ends]) -> Claim:
    last = max(alpha for alpha in pairs.loc[pairs["length"] == HARD.length, "alpha"])
    mine = pairs[(pairs["length"] == HARD.length) & (pairs["alpha"] == last) & (pairs["start"] == "uninformed")]
    way = 1.0 - ends[last].informed.value
    return Claim(
        id="message-passing-beside-descent-way",
        statement=(
            f"In long prompts with a weak signal, beyond the hard phase ($α = {last:g}$), gradient descent "
            "improves little on the output 0: its improvement as a fraction of that of the informed end of the "
            "state evolution."
        ),
        source="measured here",
        box="hard-phase",
        measured=float((1.0 - mine["risk"]).mean() / way),
        expected=0.25,
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("it were that of message passing", float((1.0 - mine["risk_messages"]).mean() / way)),
    )


def _start_claim(pairs: pd.DataFrame) -> Claim:
    both = pairs[pairs["length"] == HARD.length].pivot_table(
        index=["alpha", "seed"], columns="start", values=["risk", "risk_messages"]
    )

    def largest(risk):
        return float((both[risk, "uninformed"] - both[risk, "informed"]).abs().max())

    return Claim(
        id="message-passing-beside-descent-start",
        statement=(
            "In the hard setting gradient descent ends at the same risk from random vectors and from the hidden "
            f"directions, on the same prompts: the largest of {len(both)} differences."
        ),
        source="measured here",
        box="hard-phase",
        measured=largest("risk"),
        expected=0.0,
        tolerance=DIFFERENT,
        reason="risks that differ by more belong to different ends",
        relation="≤",
        alternative=Alternative("the differences were those of message passing", largest("risk_messages")),
    )


def _bottom_claim(descended: pd.DataFrame, trained: pd.DataFrame) -> Claim:
    real = dict.fromkeys(("snr", "alpha"), float)  # a table in which all are whole has them as integers
    mine = descended[descended["start"] == "uninformed"].astype(real)
    newton = trained[trained["head"] == "softmax"].astype(real)
    pairs = mine.merge(newton, on=KEYS[:-1], suffixes=("", "_newton"))
    apart = (pairs["risk"] - pairs["risk_newton"]).abs()
    many = pairs["alpha"] >= MANY
    return Claim(
        id="message-passing-beside-descent-bottom",
        statement=(
            f"In the easy setting ($L = {EASY.length}$, $ν = {EASY.snr:g}$) with at least {MANY:g} prompts per "
            "dimension, gradient descent from random vectors ends at the same risk as L-BFGS from the hidden "
            "directions: the largest of "
            f"{int(many.sum())} differences."
        ),
        source="measured here",
        measured=float(apart[many].max()),
        expected=0.0,
        tolerance=1e-3,
        relation="≤",
        alternative=Alternative("the prompts were fewer", float(apart[~many].max())),
    )


# Size and filling of the marks of the two starts, such that both can be seen where they coincide.
SIZES = {"uninformed": (4.0, "full"), "informed": (9.0, "none")}


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel per setting."""
    names = list(dict.fromkeys(table["setting"]))
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.2), sharey=True)
    colours = {MESSAGES: COLOURS["Bayes-optimal"], DESCENT: COLOURS["softmax"]}
    for panel, name in zip(panels, names, strict=True):
        mine = table[table["setting"] == name]
        lines = mine[mine["kind"] == EVOLUTION].sort_values("alpha")
        upper, lower = (lines[lines["start"] == start].set_index("alpha")["risk"] for start in START_MARKERS)
        two = lines.loc[lines["two"], "alpha"]
        # broken where the upper branch ends, not drawn through the jump
        for piece in (upper[upper.index <= two.max()], upper[~(upper.index <= two.max())]):
            panel.plot(piece.index, piece, color=colours[MESSAGES], linewidth=2)
        beyond = lower[lower.index >= two.min()]
        panel.plot(beyond.index, beyond, color=colours[MESSAGES], linewidth=2, linestyle="--")
        hard = lines.loc[lines["hard"], "alpha"].unique()
        if len(hard):
            panel.fill_between(hard, lower[hard], upper[hard], color=colours[MESSAGES], alpha=0.15, linewidth=0)
        for kind, colour in colours.items():
            for start, marker in START_MARKERS.items():
                runs = mine[(mine["kind"] == kind) & (mine["start"] == start)].sort_values("alpha")
                size, fill = SIZES[start]
                look = {"color": colour, "marker": marker, "fillstyle": fill, "markersize": size}
                error_bars(panel, runs["alpha"], runs["risk"], runs["std_error"], **look)
        title = name.replace("L", "$L$").replace("ν", r"$\nu$").replace("Δ", r"$\Delta$")
        panel.set(xscale="log", title=title, ylim=(0, 1.05))
        ticks = [1, 2, 4, 8] if name == names[0] else [1.5, 2, 3, 4]
        panel.xaxis.set_major_locator(FixedLocator(ticks))
        panel.xaxis.set_minor_locator(NullLocator())
        panel.set_xticklabels([f"{tick:g}" for tick in ticks])
        panel.set_xlabel(r"prompts per dimension, $\alpha=n/D$")
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
