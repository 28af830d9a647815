r"""Runs of the published protocol rest at the predicted optimum, still fall, or have heads with a swapped part.

Upper panels: exact mean squares (without a factor ½) after 300,000 steps. Runs at rest fell by less than 0.3 % in the
last fifth of the steps; runs with a swapped part are at rest or not. In the shaded region one start is tracked,
selected after another had ended above the optimum.

Alt: Two log-log charts of mean square against prompt length. Softmax is above linear attention. Full symbols are on the
lines, some triangles that point down are on or slightly above them, and at short lengths open symbols are well above
them. Under each chart, a smaller one shows the fraction of starts that end swapped.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.published_experiment.every_run import BEFORE, MANY, STARTS, Tables, every_run
from chapters.published_experiment.optima import MEAN_SQUARE_COLUMNS, Optima
from chapters.published_experiment.protocol import CLOSE, LAWS, NOISE, POOLS, noise_power
from chapters.published_experiment.ridge import Ridge, bayes_frame
from chapters.published_experiment.style import COLOURS, MEAN_SQUARE, SYMBOLS, plain_ticks
from chapters.wording import listing
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, legend_line
from lib.statistics import comparison_quantile

# Values in the published table.
RIGHT, WRONG = "right way", "wrong way"  # prose: keep (values in a published table)
RESTS, FALLS = "at rest", "still falling"
# A run counts as swapped if the swapped fraction of its head exceeds SHARE, and as being at rest if its mean square
# fell by less than SETTLED in the last part of its steps.
SHARE, SETTLED = 0.05, CLOSE / 10
COUNT = "counts are exact"
COVARIANCES = {"corrected": "the corrected covariances", "as published": "the covariances of the published code"}


def numbers(optima: Optima, bayes: Ridge, every: Tables) -> Numbers:
    """Return the ends of all tracked runs with the optima, and ridge regression."""
    ends = _ends(optima, every)
    columns = {
        **MEAN_SQUARE_COLUMNS,
        "start": Column("Number of the random start of the run"),
        "optimum": Column("Least mean square of this head, exact"),
        "above": Column("Relative distance of the mean square from the optimum"),
        "elsewhere": Column("Relative distance of the mean square from the optimum of the other covariances"),
        "fell": Column(
            f"Fall of the mean square in the last {1 - BEFORE:.0%} of the steps, relative to its end", absolute=1e-5
        ),
        "state": Column(f"Whether this fall is below {SETTLED:.1%}", "name"),
        "way": Column(f"Head at the end: {RIGHT!r} means aligned, {WRONG!r} means with a swapped part", "name"),
    }
    return Numbers(Table.of([ends.filter(columns), bayes_frame(bayes)], columns), _claims(ends))


def _claims(ends: pd.DataFrame) -> Claims:
    claim = Claims("published-experiment", source="measured here")
    aligned, swapped = ends[ends["way"] == RIGHT], ends[ends["way"] == WRONG]
    rest, falling = (aligned[aligned["state"] == state] for state in (RESTS, FALLS))
    runs, least = f"{len(ends)} tracked runs of the published protocol", swapped["above"].min()
    claim.at_most(
        "every-run",
        f"{len(rest)} of {runs} end aligned and at rest: their mean "
        f"square fell by less than {SETTLED:.1%} in the last {1 - BEFORE:.0%} of the steps. Under both covariances "
        f"and for both heads, with {ends['length'].min():,} to {ends['length'].max():,} tokens, they are at the "
        "exact optimum (measured: the largest relative distance of mean squares).",
        rest["above"].abs().max(),
        0,
        within=CLOSE,
        because=NOISE,
        count=(len(rest), len(ends)),
        rejects=("they are at the optimum of the other covariances", rest["elsewhere"].abs().max()),
    )
    fresh = (ends["loss"] - ends["optimum"]) / ends["loss_std_error"]
    claim.at_least(
        "every-run-above",
        f"None of {runs} is below the exact optimum of its length on "
        f"the fresh prompts of its last {1 - BEFORE:.0%} of steps (measured: the least difference, in standard "
        "errors).",
        fresh.min(),
        0,
        within=comparison_quantile(len(ends)),
        because=f"99.9 % quantile of the largest of {len(ends)} standard normal deviations",
        std_error=1,
        comparisons=len(ends),
        rejects=(
            "training reaches the risk of the infinite prompt",
            ((noise_power() - ends["optimum"]) / ends["loss_std_error"]).max(),
        ),
    )
    claim.at_least(
        "wrong-way-above",
        f"All {len(swapped)} of {runs} whose heads have a swapped "
        "part end above the optimum of their length (measured: the smallest ratio of mean squares).",
        1 + least,
        1 + CLOSE,
        because=NOISE,
        count=(len(swapped), len(ends)),
        rejects=("they are as near the optimum as aligned runs at rest", 1 + rest["above"].max()),
    )
    listed = [run for run in every_run() if run.length in set(ends["length"])]
    claim.equal(
        "runs",
        f"All runs of the published protocol at {ends['length'].nunique()} lengths are tracked: both heads, both "
        f"covariances of the data, one start, and {STARTS} starts on up to {MANY} tokens (measured: the number of "
        "runs).",
        len(ends),
        len(listed),
        within=0,
        because=COUNT,
        rejects=("each head and length has one start", sum(run.start == 0 for run in listed)),
    )
    between = falling["above"].between(0, least, inclusive="neither").sum()
    claim.equal(
        "runs-falling",
        f"Of {runs}, all that are aligned and not at rest still fall "
        f"towards the exact optimum, in the last {1 - BEFORE:.0%} of the steps by up to {falling['fell'].max():.0%} "
        f"of the mean square at the end. They are above the optimum by up to {falling['above'].max():.1%}, and every "
        f"swapped run by {least:.1%} or more (measured: the number of falling runs between the two).",
        between,
        len(falling),
        within=0,
        because=COUNT,
        count=(between, len(ends)),
        rejects=("they are as far above the optimum as swapped runs", 0),
    )
    for law, under in COVARIANCES.items():
        for activation in POOLS:
            short = ends[(ends["predictor"] == activation) & (ends["law"] == law) & (ends["length"] <= MANY)]
            counts = listing(
                f"{(runs['way'] == WRONG).sum()} of {len(runs)} at {length}" for length, runs in short.groupby("length")
            )
            claim.count(
                f"wrong-way-{activation}" + ("-as-published" if law == "as published" else ""),
                f"Of {len(short)} tracked runs of {activation} attention under {under} on up to {MANY} tokens, not all "
                f"end swapped ({counts} tokens; measured: the number of runs that do).",
                (short["way"] == WRONG).sum(),
                len(short),
                at_most=len(short) - 1,
                because="at least one run is not swapped",
                rejects=("every start ends swapped", len(short)),
            )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the mean squares for both covariances with their lines and, below, the swapped fractions."""
    figure, panels = plt.subplots(2, 2, figsize=(WIDE, 6.4), sharex=True, sharey="row", height_ratios=(3, 1))
    for (above, below), (law, title) in zip(panels.T, COVARIANCES.items(), strict=True):
        part = table[table["law"] == law]
        _risks(above, part, named=law == "as published")
        above.set_title(title.removeprefix("the "))
        _swapped_fractions(below, part)
    panels[1, 0].set_ylabel("fraction that\nends swapped")
    low, high = table["length"].min() / 1.25, table["length"].max() * 1.25
    border = 1.1 * table[table["start"] > 0]["length"].max()
    panels[0, 0].set(xlim=(low, high), ylabel=MEAN_SQUARE)
    for panel in panels.flat:
        panel.axvspan(border, high, color=ink(), alpha=0.07, linewidth=0)
    words = {"ha": "center", "va": "center", "fontsize": 10, "linespacing": 1.3}
    if high > 1.25 * border:
        middle = np.sqrt(border * high)
        panels[1, 1].text(middle, 0.5, "one selected start\nper length", **words)
        panels[0, 0].text(middle, 0.7, "swapped part:\nlabels as scores,\ncovariates as values", **words)
    look = {"color": ink(), "linestyle": ""}
    entries = {
        "run at rest": Line2D([], [], marker="o", markersize=5, **look),
        "run that still falls": Line2D([], [], marker="v", markersize=8, **look),
        "run with a swapped part": Line2D([], [], marker="o", markersize=5, fillstyle="none", **look),
        "exact optimum of one head": legend_line("-", 1),
    }
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=4, fontsize=10)
    return figure


def _risks(axes: Axes, part: pd.DataFrame, *, named: bool) -> None:
    """Draw lines and runs for one pair of covariances, with names at the lines if `named`."""
    axes.set(xscale="log", yscale="log")
    for activation in ("softmax", "linear"):
        runs, colour = part[part["predictor"] == activation], COLOURS[activation]
        curve = runs.drop_duplicates("length").sort_values("length")
        axes.plot(curve["length"], curve["optimum"], color=colour, linewidth=1)
        aligned, rests = runs["way"] == RIGHT, runs["state"] == RESTS
        for chosen, look in (
            (aligned & rests, {"marker": SYMBOLS[activation]}),
            (~aligned, {"marker": SYMBOLS[activation], "fillstyle": "none"}),
            (aligned & ~rests, {"marker": "v", "markersize": 8, "markeredgewidth": 0, "zorder": 3}),
        ):
            points, common = runs[chosen], {"color": colour, "linestyle": "", "markersize": 5}
            axes.plot(points["length"], points["mean_square"], **common | look)
        if named:
            label(axes, curve["length"].iloc[-1], curve["optimum"].iloc[-1], activation, colour)
    plain_ticks(axes)


def _swapped_fractions(axes: Axes, part: pd.DataFrame) -> None:
    """Draw the swapped fractions of both heads at each length with several starts, side by side."""
    for activation, nudge in (("softmax", 0.985), ("linear", 1.015)):
        runs = part[(part["predictor"] == activation) & part.duplicated(["predictor", "length"], keep=False)]
        fractions = (runs["way"] == WRONG).groupby(runs["length"]).mean()
        look = {"color": COLOURS[activation], "marker": SYMBOLS[activation], "markersize": 4.5, "clip_on": False}
        axes.plot(fractions.index * nudge, fractions, linewidth=1, **look)
    axes.set(xlabel="tokens in a prompt, $L$", ylim=(0, 1))
    axes.set_yticks([0, 0.5, 1], labels=["none", "half", "all"])


def _ends(optima: Optima, every: Tables) -> pd.DataFrame:
    """Return one row per run: its end, its distance from both optima, whether it is at rest, and whether swapped."""
    ends = every["ends"]
    ends = ends[ends["length"].isin([length for _, _, length in optima])]
    heads = list(zip(ends["law"], ends["activation"], ends["length"], strict=True))
    best = np.array([optima[head] for head in heads])
    other = np.array([optima[next(law for law in LAWS if law != its), pool, length] for its, pool, length in heads])
    fell = ends["risk_before"] / ends["risk"] - 1
    return ends.assign(
        optimum=best,
        above=ends["risk"] / best - 1,
        elsewhere=ends["risk"] / other - 1,
        fell=fell,
        state=np.where(fell < SETTLED, RESTS, FALLS),
        way=np.where(ends["wrong_way"] > SHARE, WRONG, RIGHT),
    ).rename(columns={"activation": "predictor", "risk": "mean_square"})
