r"""Runs of the published protocol rest at the predicted optimum, still fall, or are at the swapped solution.

Plain mean square, exact, of heads trained by the published protocol, 300,000 steps each, against the length of the
prompt, from one start or several. Lines: the least mean square of one softmax head, or of linear attention. Full
symbols: runs that rest at the optimum. Triangles that point down: runs that go the right way and still fall. Open
symbols: runs at the swapped solution (scores see labels and values are covariates: the wrong way), above the optimum;
some of these still fall, too. Triangles that point up: ridge regression, which is Bayes. Left the corrected law, right
that of the published code. Below, the share of the starts that went the wrong way, at lengths at which all starts are
tracked.

Alt: Two log-log charts of mean square against prompt length, softmax above linear attention above ridge regression,
with full symbols on the lines, some triangles that point down on or slightly above them and, at short lengths, open
symbols well above them. Under each a chart of the share of starts that went the wrong way.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.published_experiment.every_run import BEFORE, MANY, STARTS, Tables, every_run
from chapters.published_experiment.optima import CURVE_COLUMNS, Optima, curves_frame
from chapters.published_experiment.protocol import CLOSE, LAWS, POOLS, noise_power
from chapters.published_experiment.ridge import BAYES_COLUMNS, Ridge, bayes_frame
from chapters.published_experiment.style import COLOURS, MEAN_SQUARE, SYMBOLS, plain_ticks
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, label, legend_line
from lib.statistics import comparison_quantile

RIGHT, WRONG = "right way", "wrong way"
RESTS, FALLS = "at rest", "still falling"
# A head with a larger share of the wrong way is said to serve covariates the wrong way round; and a run has settled
# whose mean square fell by less than this in the last part of its steps.
SHARE, SETTLED = 0.05, CLOSE / 10


def numbers(optima: Optima, bayes: Ridge, every: Tables) -> Numbers:
    """The ends of all tracked runs beside the optima, and how many starts went the wrong way."""
    ends = _ends(optima, every)
    claims = [_converged_claim(optima, ends), _below_claim(ends), _above_claim(ends)]
    claims += [_runs_claim(ends), _rest_claim(optima, ends), _falling_claim(ends), _swapped_claim(ends)]
    claims += [_wrong_claim(activation, law, ends) for law in LAWS for activation in POOLS]
    return Numbers(_table(optima, bayes, ends), claims)


def _ends(optima: Optima, every: Tables) -> pd.DataFrame:
    """Return one row per run: its end, its optimum, whether it has settled, and which way it went."""
    ends = every["ends"]
    ends = ends[ends["length"].isin([length for _, _, length in optima])]
    heads = zip(ends["law"], ends["activation"], ends["length"], strict=True)
    fell = ends["risk_before"] / ends["risk"] - 1
    return ends.assign(
        best=[optima[head] for head in heads],
        fell=fell,
        state=np.where(fell < SETTLED, RESTS, FALLS),
        way=np.where(ends["wrong_way"] > SHARE, WRONG, RIGHT),
    )


def _table(optima: Optima, bayes: Ridge, ends: pd.DataFrame) -> Table:
    """The curves of both laws, ridge regression, the runs, and the shares of those that went the wrong way."""
    runs = ends[["law", "activation", "length", "start", "risk", "fell", "state", "way"]]
    frames = [curves_frame(optima, [length for _, _, length in optima]), bayes_frame(bayes), runs, _shares(ends)]
    columns = {
        "law": Column("Data law: corrected, or as the published code draws", "name"),
        **CURVE_COLUMNS,
        **BAYES_COLUMNS,
        "activation": Column("Head that a run trained", "name"),
        "start": Column("Number of the run's start"),
        "risk": Column("Exact mean square at the end of the run"),
        "fell": Column(f"Share of it by which it fell in the last {1 - BEFORE:.0%} of the steps", absolute=1e-5),
        "state": Column(f"Whether that share is below {SETTLED:.1%}", "name"),
        "way": Column("Whether the head serves covariates the right way round", "name"),
        "starts": Column("Tracked runs at this length"),
        "wrong": Column("Share of them that went the wrong way"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _shares(ends: pd.DataFrame) -> pd.DataFrame:
    """By law, head and length, where all starts are tracked: fewer of them may be the lucky ones."""
    wrong = ends.assign(wrong=ends["way"] == WRONG).groupby(["law", "activation", "length"], as_index=False)
    shares = wrong.agg(starts=("wrong", "size"), wrong=("wrong", "mean"))
    return shares[shares["starts"] == STARTS]


def _converged_claim(optima: Optima, ends: pd.DataFrame) -> Claim:
    """The runs that went the right way against the optimum of their length."""
    settled = _of(ends, RIGHT, RESTS)
    return Claim(
        id="published-experiment-every-run",
        statement=(
            f"{len(settled)} of {len(ends)} tracked runs of the published protocol end the right way round and at rest "
            f"(the mean square fell by less than {SETTLED:.1%} in the last {1 - BEFORE:.0%} of the steps), both heads, "
            f"both laws, {ends['length'].min()} to {ends['length'].max()} tokens: the largest relative distance of "
            "their mean square from the exact optimum."
        ),
        source="measured here",
        measured=float(np.max(np.abs(settled["risk"] / settled["best"] - 1))),
        expected=0.0,
        tolerance=CLOSE,
        relation="≤",
        alternative=Alternative("the optimum under the other law", float(np.max(_misses_of_other(optima, settled)))),
    )


def _of(ends: pd.DataFrame, way: str, state: str) -> pd.DataFrame:
    """Return the runs that went this way and are in this state."""
    return ends[(ends["way"] == way) & (ends["state"] == state)]


def _misses_of_other(optima: Optima, runs: pd.DataFrame) -> np.ndarray:
    """Return the relative distances of the runs' mean squares from the optimum under the other law."""
    heads = zip(runs["law"], runs["activation"], runs["length"], strict=True)
    others = [optima[next(law for law in LAWS if law != its), pool, length] for its, pool, length in heads]
    return np.abs(runs["risk"].to_numpy() / np.array(others) - 1)


def _runs_claim(ends: pd.DataFrame) -> Claim:
    """Count the tracked runs against the protocol's list."""
    lengths = set(ends["length"])
    listed = [run for run in every_run() if run.length in lengths]
    return Claim(
        id="published-experiment-runs",
        statement=(
            f"All runs of the published protocol at {len(lengths)} lengths are tracked: both heads, both laws, one "
            f"start, and {STARTS} starts on up to {MANY} tokens: their number."
        ),
        source="measured here",
        measured=float(len(ends)),
        expected=float(len(listed)),
        tolerance=0.0,
        alternative=Alternative("one start each", float(sum(run.start == 0 for run in listed))),
    )


def _rest_claim(optima: Optima, ends: pd.DataFrame) -> Claim:
    """Count the aligned runs at rest that are at their optimum, against all of them."""
    settled = _of(ends, RIGHT, RESTS)
    return Claim(
        id="published-experiment-runs-at-rest",
        statement=(
            f"Of {len(ends)} tracked runs of the published protocol all that are at rest the right way round are "
            f"within {CLOSE:.0%} of the exact optimum in mean square: their number."
        ),
        source="measured here",
        measured=float(np.sum(np.abs(settled["risk"] / settled["best"] - 1) < CLOSE)),
        expected=float(len(settled)),
        tolerance=0.0,
        alternative=Alternative(
            "they are at the optimum under the other law", float(np.sum(_misses_of_other(optima, settled) < CLOSE))
        ),
    )


def _falling_claim(ends: pd.DataFrame) -> Claim:
    """Count the aligned runs that still fall towards the optimum, against all that are neither at rest nor swapped."""
    moving, swapped = _of(ends, RIGHT, FALLS), ends[ends["way"] == WRONG]
    ratios, least = moving["risk"] / moving["best"], float((swapped["risk"] / swapped["best"]).min())
    return Claim(
        id="published-experiment-runs-falling",
        statement=(
            f"Of {len(ends)} tracked runs of the published protocol all that are the right way round and not at rest "
            f"still fall towards the exact optimum, in the last {1 - BEFORE:.0%} of the steps by up to "
            f"{moving['fell'].max():.0%} of the mean square at the end; they are above it by up to "
            f"{ratios.max() - 1:.1%}, which is less than any swapped run ({least - 1:.1%} or more): their number."
        ),
        source="measured here",
        measured=float(np.sum((ratios > 1) & (ratios < least))),
        expected=float(len(moving)),
        tolerance=0.0,
        alternative=Alternative("they are as far above the optimum as swapped runs", 0.0),
    )


def _swapped_claim(ends: pd.DataFrame) -> Claim:
    """Count the runs that are swapped by the head and above the optimum, against all that are swapped by the head."""
    swapped, settled = ends[ends["way"] == WRONG], _of(ends, RIGHT, RESTS)

    def above(runs: pd.DataFrame) -> float:
        return float(np.sum(runs["risk"] / runs["best"] > 1 + CLOSE))

    return Claim(
        id="published-experiment-runs-swapped",
        statement=(
            f"Of {len(ends)} tracked runs of the published protocol all whose heads serve covariates the wrong way "
            f"round end more than {CLOSE:.0%} above the exact optimum: their number."
        ),
        source="measured here",
        measured=above(swapped),
        expected=float(len(swapped)),
        tolerance=0.0,
        alternative=Alternative("as many as of the runs that rest the right way round", above(settled)),
    )


def _below_claim(ends: pd.DataFrame) -> Claim:
    """The least of all runs, on fresh prompts, in standard errors above its optimum."""
    above = (ends["loss"] - ends["best"]) / ends["loss_std_error"]
    infinite = (noise_power() - ends["best"]) / ends["loss_std_error"]
    return Claim(
        id="published-experiment-every-run-above",
        statement=(
            f"None of {len(ends)} tracked runs of the published protocol is below the exact optimum of its length on "
            f"the fresh prompts of its last {1 - BEFORE:.0%} of steps: the least difference in standard errors."
        ),
        source="measured here",
        measured=float(above.min()),
        expected=0.0,
        tolerance=comparison_quantile(len(ends)),
        relation="≥",
        std_error=1.0,
        alternative=Alternative("training reaches the risk of the infinite prompt", float(infinite.max())),
    )


def _above_claim(ends: pd.DataFrame) -> Claim:
    """The way that a head went tells whether it has found the optimum."""
    ratios = ends["risk"] / ends["best"]
    wrong, settled = ends["way"] == WRONG, (ends["way"] == RIGHT) & (ends["state"] == RESTS)
    return Claim(
        id="published-experiment-wrong-way-above",
        statement=(
            f"All {wrong.sum()} of {len(ends)} tracked runs of the published protocol whose heads serve covariates the "
            "wrong way round end above the optimum of their length: the smallest ratio of mean squares."
        ),
        source="measured here",
        measured=float(ratios[wrong].min()),
        expected=1 + CLOSE,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("they are as near as the others that are at rest", float(ratios[settled].max())),
    )


def _wrong_claim(activation: str, law: str, ends: pd.DataFrame) -> Claim:
    """How many of the starts of one head on short prompts went the wrong way, length by length."""
    here = ends[(ends["activation"] == activation) & (ends["law"] == law) & (ends["length"] <= MANY)]
    counts = ", ".join(
        f"{(runs['way'] == WRONG).sum()} of {len(runs)} at {length}" for length, runs in here.groupby("length")
    )
    under = "the corrected law" if law == "corrected" else "the law of the published code"
    return Claim(
        id=f"published-experiment-wrong-way-{activation}" + ("-as-published" if law == "as published" else ""),
        statement=(
            f"Of {len(here)} tracked runs of {activation} attention under {under} on up to {MANY} tokens not all end "
            f"with covariates served the wrong way round ({counts} tokens): the number of those that do."
        ),
        source="measured here",
        measured=float(np.sum(here["way"] == WRONG)),
        expected=float(len(here) - 1),  # one of them does not
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("every start goes the wrong way", float(len(here))),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw the mean squares under either law with their lines and, below, the shares on the same lengths."""
    figure, panels = plt.subplots(2, 2, figsize=(8.0, 6.4), sharex=True, sharey="row", height_ratios=(3, 1))
    titles = {"corrected": "corrected law", "as published": "law of the published code"}
    for (above, below), (law, title) in zip(panels.T, titles.items(), strict=True):
        mine = table[table["law"] == law]
        _risks(above, mine, named=law == "as published")
        above.set_title(f"{title}, {mine['risk'].notna().sum()} runs")
        _shares_of_starts(below, mine)
    panels[0, 0].set_ylabel(MEAN_SQUARE)
    panels[1, 0].set_ylabel("share that went\nthe wrong way")
    look = {"color": ink(), "linestyle": "", "marker": "o", "markersize": 5}
    said = {"least of one head": legend_line("-", 1), "a run at rest": Line2D([], [], **look)}
    said["still falling"] = Line2D([], [], **look | {"marker": "v"})
    said["at the swapped solution"] = Line2D([], [], fillstyle="none", **look)
    # above all runs: a head that went the wrong way ends at about 1
    panels[0, 0].set_ylim(top=2.3)
    panels[0, 1].legend(list(said.values()), list(said), loc="upper right", fontsize=10, borderpad=0)
    headline(figure, "Runs rest at the predicted optimum, still fall, or are at the swapped solution")
    return figure


def _risks(axes: Axes, mine: pd.DataFrame, *, named: bool) -> None:
    """The lines of one law, ridge regression and the runs; names at their ends, if `named`."""
    axes.set(xscale="log", yscale="log")
    for activation in ("softmax", "linear"):
        curve, colour = mine[mine[activation].notna()], COLOURS[activation]
        axes.plot(curve["length"], curve[activation], color=colour, linewidth=1)
        runs = mine[mine["risk"].notna() & (mine["activation"] == activation)]
        aligned, look = runs["way"] == RIGHT, {"color": colour, "linestyle": "", "markersize": 5}
        rests = runs["state"] == RESTS
        for chosen, marker, fill in (
            (aligned & rests, SYMBOLS[activation], "full"),
            (~aligned, SYMBOLS[activation], "none"),
            (aligned & ~rests, "v", "full"),
        ):
            edge = {"markeredgecolor": ink(), "markeredgewidth": 0.7, "zorder": 3} if marker == "v" else {}
            axes.plot(runs["length"][chosen], runs["risk"][chosen], marker=marker, fillstyle=fill, **look, **edge)
        if named:
            label(axes, curve["length"].iloc[-1], curve[activation].iloc[-1], activation, colour)
    ridge = mine[mine["bayes"].notna()]
    axes.plot(ridge["length"], ridge["bayes"], color=COLOURS["bayes"], linestyle="", marker=SYMBOLS["bayes"])
    if named:
        first = ridge.iloc[0]
        label(axes, first["length"], first["bayes"], "ridge (Bayes)", COLOURS["bayes"], xytext=(8, 0), fontsize=10)
    plain_ticks(axes)


def _shares_of_starts(axes: Axes, mine: pd.DataFrame) -> None:
    """Of one law, at each length at which several starts were tried, the two heads side by side."""
    for activation, nudge in (("softmax", 0.985), ("linear", 1.015)):
        shares = mine[mine["wrong"].notna() & (mine["activation"] == activation)].sort_values("length")
        look = {"color": COLOURS[activation], "marker": SYMBOLS[activation], "markersize": 4.5, "clip_on": False}
        axes.plot(shares["length"] * nudge, shares["wrong"], linewidth=1, **look)
    axes.set(xlabel="tokens in a prompt, $L$", ylim=(0, 1))
    axes.set_yticks([0, 0.5, 1], labels=["none", "half", "all"])
