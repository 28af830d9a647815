r"""Runs of the published protocol rest at the predicted optimum, still fall, or have heads with a swapped part.

The upper panels show the exact mean square after 300,000 steps against the length of the prompt, on the left for the
corrected covariances and on the right for those of the published code. The lines are the least mean squares of one
softmax head and of linear attention. Full symbols are runs at rest, triangles that point down are runs that still fall,
and open symbols are heads with a swapped part, which uses labels as scores and covariates as values. Green
triangles that point up are ridge regression, which is the Bayes predictor. The lower panels show the fraction of starts
that end swapped, at the lengths at which all starts are tracked. Some of the swapped runs still fall too.

Alt: Two log-log charts of mean square against prompt length. Softmax is above linear attention, and linear attention is
above ridge regression. Full symbols are on the lines, some triangles that point down are on or slightly above them,
and at short lengths open symbols are well above them. Under each chart, a smaller one shows the fraction of starts that
end swapped.
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
from chapters.wording import listing
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, legend_line
from lib.statistics import comparison_quantile

# Values in the published table.
RIGHT, WRONG = "right way", "wrong way"  # prose: keep (values in a published table)
RESTS, FALLS = "at rest", "still falling"
# A run counts as swapped if the swapped fraction of its head exceeds SHARE, and as being at rest if its mean square
# fell by less than SETTLED in the last part of its steps.
SHARE, SETTLED = 0.05, CLOSE / 10
NOISE = "noise of training leaves about one percent, and other solutions are much farther above the optimum"
COUNT = "counts are exact"


def numbers(optima: Optima, bayes: Ridge, every: Tables) -> Numbers:
    """Return the ends of all tracked runs with the optima, and the number of starts that end swapped."""
    ends = _ends(optima, every)
    claims = [_converged_claim(optima, ends), _below_claim(ends), _above_claim(ends)]
    claims += [_runs_claim(ends), _rest_claim(optima, ends), _falling_claim(ends), _swapped_claim(ends)]
    claims += [_wrong_claim(activation, law, ends) for law in LAWS for activation in POOLS]
    return Numbers(_table(optima, bayes, ends), claims)


def _ends(optima: Optima, every: Tables) -> pd.DataFrame:
    """Return one row per run: its end, its optimum, whether it is at rest, and whether it is swapped."""
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
    """Return the curves for both covariances, ridge regression, the runs, and the fractions of swapped runs."""
    runs = ends[["law", "activation", "length", "start", "risk", "fell", "state", "way"]]
    frames = [curves_frame(optima, [length for _, _, length in optima]), bayes_frame(bayes), runs, _shares(ends)]
    columns = {
        "law": Column("Covariances of the data: corrected, or as the published code draws them", "name"),
        **CURVE_COLUMNS,
        **BAYES_COLUMNS,
        "activation": Column("Head that the run trains: softmax or linear attention", "name"),
        "start": Column("Number of the random start"),
        "risk": Column("Exact mean square at the end of the run"),
        "fell": Column(
            f"Fall of the mean square in the last {1 - BEFORE:.0%} of the steps, relative to its end", absolute=1e-5
        ),
        "state": Column(f"Whether this fall is below {SETTLED:.1%}", "name"),
        "way": Column(f"Head at the end: {RIGHT!r} means aligned, {WRONG!r} means with a swapped part", "name"),
        "starts": Column("Number of tracked runs at this length"),
        "wrong": Column("Fraction of these runs that end swapped"),
    }
    return Table(pd.concat(frames, ignore_index=True).reindex(columns=list(columns)), columns)


def _shares(ends: pd.DataFrame) -> pd.DataFrame:
    """Return the swapped fractions by covariances, head and length, where all starts are tracked."""
    wrong = ends.assign(wrong=ends["way"] == WRONG).groupby(["law", "activation", "length"], as_index=False)
    shares = wrong.agg(starts=("wrong", "size"), wrong=("wrong", "mean"))
    return shares[shares["starts"] == STARTS]


def _converged_claim(optima: Optima, ends: pd.DataFrame) -> Claim:
    """Claim that aligned runs at rest are at the optimum of their length."""
    settled = _of(ends, RIGHT, RESTS)
    return Claim(
        id="published-experiment-every-run",
        statement=(
            f"{len(settled)} of {len(ends)} tracked runs of the published protocol end aligned and at rest: their mean "
            f"square fell by less than {SETTLED:.1%} in the last {1 - BEFORE:.0%} of the steps. Under both covariances "
            f"and for both heads, with {ends['length'].min():,} to {ends['length'].max():,} tokens, they are at the "
            "exact optimum (measured: the largest relative distance of mean squares)."
        ),
        source="measured here",
        measured=float(np.max(np.abs(settled["risk"] / settled["best"] - 1))),
        expected=0.0,
        tolerance=CLOSE,
        reason=NOISE,
        relation="≤",
        alternative=Alternative(
            "they are at the optimum of the other covariances", float(np.max(_misses_of_other(optima, settled)))
        ),
    )


def _of(ends: pd.DataFrame, way: str, state: str) -> pd.DataFrame:
    """Return the runs with this kind of head and in this state."""
    return ends[(ends["way"] == way) & (ends["state"] == state)]


def _misses_of_other(optima: Optima, runs: pd.DataFrame) -> np.ndarray:
    """Return the relative distances of the runs' mean squares from the optimum of the other covariances."""
    heads = zip(runs["law"], runs["activation"], runs["length"], strict=True)
    others = [optima[next(law for law in LAWS if law != its), pool, length] for its, pool, length in heads]
    return np.abs(runs["risk"].to_numpy() / np.array(others) - 1)


def _runs_claim(ends: pd.DataFrame) -> Claim:
    """Claim that every run of the protocol's list is tracked."""
    lengths = set(ends["length"])
    listed = [run for run in every_run() if run.length in lengths]
    return Claim(
        id="published-experiment-runs",
        statement=(
            f"All runs of the published protocol at {len(lengths)} lengths are tracked: both heads, both covariances "
            f"of the data, one start, and {STARTS} starts on up to {MANY} tokens (measured: the number of runs)."
        ),
        source="measured here",
        measured=float(len(ends)),
        expected=float(len(listed)),
        tolerance=0.0,
        reason=COUNT,
        alternative=Alternative("each head and length has one start", float(sum(run.start == 0 for run in listed))),
    )


def _rest_claim(optima: Optima, ends: pd.DataFrame) -> Claim:
    """Claim that all aligned runs at rest are at their optimum."""
    settled = _of(ends, RIGHT, RESTS)
    near = int(np.sum(np.abs(settled["risk"] / settled["best"] - 1) < CLOSE))
    return Claim(
        id="published-experiment-runs-at-rest",
        statement=(
            f"Of {len(ends)} tracked runs of the published protocol, all that are aligned and at rest have a mean "
            f"square within {CLOSE:.0%} of the exact optimum (measured: the number of these runs)."
        ),
        source="measured here",
        measured=float(near),
        expected=float(len(settled)),
        tolerance=0.0,
        reason=COUNT,
        successes=near,
        trials=len(ends),
        alternative=Alternative(
            "they are at the optimum of the other covariances", float(np.sum(_misses_of_other(optima, settled) < CLOSE))
        ),
    )


def _falling_claim(ends: pd.DataFrame) -> Claim:
    """Claim that all runs that are neither at rest nor swapped still fall towards the optimum."""
    moving, swapped = _of(ends, RIGHT, FALLS), ends[ends["way"] == WRONG]
    ratios, least = moving["risk"] / moving["best"], float((swapped["risk"] / swapped["best"]).min())
    between = int(np.sum((ratios > 1) & (ratios < least)))
    return Claim(
        id="published-experiment-runs-falling",
        statement=(
            f"Of {len(ends)} tracked runs of the published protocol, all that are aligned and not at rest still fall "
            f"towards the exact optimum, in the last {1 - BEFORE:.0%} of the steps by up to {moving['fell'].max():.0%} "
            f"of the mean square at the end. They are above the optimum by up to {ratios.max() - 1:.1%}, and every "
            f"swapped run by {least - 1:.1%} or more (measured: the number of falling runs between the two)."
        ),
        source="measured here",
        measured=float(between),
        expected=float(len(moving)),
        tolerance=0.0,
        reason=COUNT,
        successes=between,
        trials=len(ends),
        alternative=Alternative("they are as far above the optimum as swapped runs", 0.0),
    )


def _swapped_claim(ends: pd.DataFrame) -> Claim:
    """Claim that all runs whose heads have a swapped part end above the optimum."""
    swapped, settled = ends[ends["way"] == WRONG], _of(ends, RIGHT, RESTS)

    def above(runs: pd.DataFrame) -> int:
        return int(np.sum(runs["risk"] / runs["best"] > 1 + CLOSE))

    return Claim(
        id="published-experiment-runs-swapped",
        statement=(
            f"Of {len(ends)} tracked runs of the published protocol, all whose heads have a swapped part end more "
            f"than {CLOSE:.0%} above the exact optimum (measured: the number of these runs)."
        ),
        source="measured here",
        measured=float(above(swapped)),
        expected=float(len(swapped)),
        tolerance=0.0,
        reason=COUNT,
        successes=above(swapped),
        trials=len(ends),
        alternative=Alternative("they are as near the optimum as aligned runs at rest", float(above(settled))),
    )


def _below_claim(ends: pd.DataFrame) -> Claim:
    """Claim that no run is below its optimum on fresh prompts."""
    above = (ends["loss"] - ends["best"]) / ends["loss_std_error"]
    infinite = (noise_power() - ends["best"]) / ends["loss_std_error"]
    return Claim(
        id="published-experiment-every-run-above",
        statement=(
            f"None of {len(ends)} tracked runs of the published protocol is below the exact optimum of its length on "
            f"the fresh prompts of its last {1 - BEFORE:.0%} of steps (measured: the least difference, in standard "
            "errors)."
        ),
        source="measured here",
        measured=float(above.min()),
        expected=0.0,
        tolerance=comparison_quantile(len(ends)),
        reason=f"99.9 % quantile of the largest of {len(ends)} standard normal deviations",
        relation="≥",
        std_error=1.0,
        comparisons=len(ends),
        alternative=Alternative("training reaches the risk of the infinite prompt", float(infinite.max())),
    )


def _above_claim(ends: pd.DataFrame) -> Claim:
    """Claim that heads with a swapped part end above the optimum by more than the noise of training."""
    ratios = ends["risk"] / ends["best"]
    wrong, settled = ends["way"] == WRONG, (ends["way"] == RIGHT) & (ends["state"] == RESTS)
    return Claim(
        id="published-experiment-wrong-way-above",
        statement=(
            f"All {wrong.sum()} of {len(ends)} tracked runs of the published protocol whose heads have a swapped "
            "part end above the optimum of their length (measured: the smallest ratio of mean squares)."
        ),
        source="measured here",
        measured=float(ratios[wrong].min()),
        expected=1 + CLOSE,
        tolerance=0.0,
        reason=NOISE,
        relation="≥",
        alternative=Alternative("they are as near the optimum as aligned runs at rest", float(ratios[settled].max())),
    )


def _wrong_claim(activation: str, law: str, ends: pd.DataFrame) -> Claim:
    """Claim that some but not all starts of one head on short prompts end swapped."""
    short = ends[(ends["activation"] == activation) & (ends["law"] == law) & (ends["length"] <= MANY)]
    swapped = int(np.sum(short["way"] == WRONG))
    counts = listing(
        f"{(runs['way'] == WRONG).sum()} of {len(runs)} at {length}" for length, runs in short.groupby("length")
    )
    under = "the corrected covariances" if law == "corrected" else "the covariances of the published code"
    return Claim(
        id=f"published-experiment-wrong-way-{activation}" + ("-as-published" if law == "as published" else ""),
        statement=(
            f"Of {len(short)} tracked runs of {activation} attention under {under} on up to {MANY} tokens, not all end "
            f"swapped ({counts} tokens; measured: the number of runs that do)."
        ),
        source="measured here",
        measured=float(swapped),
        expected=float(len(short) - 1),
        tolerance=0.0,
        reason="at least one run is not swapped",
        relation="≤",
        successes=swapped,
        trials=len(short),
        alternative=Alternative("every start ends swapped", float(len(short))),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw the mean squares for both covariances with their lines and, below, the swapped fractions."""
    figure, panels = plt.subplots(2, 2, figsize=(WIDE, 6.4), sharex=True, sharey="row", height_ratios=(3, 1))
    titles = {"corrected": "corrected covariances", "as published": "covariances of the published code"}
    for (above, below), (law, title) in zip(panels.T, titles.items(), strict=True):
        part = table[table["law"] == law]
        _risks(above, part, named=law == "as published")
        above.set_title(f"{title}, {part['risk'].notna().sum()} runs")
        _swapped_fractions(below, part)
    panels[0, 0].set_ylabel(MEAN_SQUARE)
    panels[1, 0].set_ylabel("fraction that\nends swapped")
    look = {"color": ink(), "linestyle": "", "marker": "o", "markersize": 5}
    entries = {"least of one head": legend_line("-", 1), "run at rest": Line2D([], [], **look)}
    entries["still falling"] = Line2D([], [], **look | {"marker": "v"})
    entries["with a swapped part"] = Line2D([], [], fillstyle="none", **look)
    # space for the legend above all runs: a swapped run ends at about 1
    panels[0, 0].set_ylim(top=2.3)
    panels[0, 1].legend(list(entries.values()), list(entries), loc="upper right", fontsize=10, borderpad=0)
    return figure


def _risks(axes: Axes, part: pd.DataFrame, *, named: bool) -> None:
    """Draw lines, ridge regression and runs for one pair of covariances, with names at the lines if `named`."""
    axes.set(xscale="log", yscale="log")
    for activation in ("softmax", "linear"):
        curve, colour = part[part[activation].notna()], COLOURS[activation]
        axes.plot(curve["length"], curve[activation], color=colour, linewidth=1)
        runs = part[part["risk"].notna() & (part["activation"] == activation)]
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
    ridge = part[part["bayes"].notna()]
    axes.plot(ridge["length"], ridge["bayes"], color=COLOURS["bayes"], linestyle="", marker=SYMBOLS["bayes"])
    if named:
        first = ridge.iloc[0]
        label(axes, first["length"], first["bayes"], "ridge (Bayes)", COLOURS["bayes"], xytext=(8, 0), fontsize=10)
    plain_ticks(axes)


def _swapped_fractions(axes: Axes, part: pd.DataFrame) -> None:
    """Draw the swapped fractions of both heads at each length with several starts, side by side."""
    for activation, nudge in (("softmax", 0.985), ("linear", 1.015)):
        shares = part[part["wrong"].notna() & (part["activation"] == activation)].sort_values("length")
        look = {"color": COLOURS[activation], "marker": SYMBOLS[activation], "markersize": 4.5, "clip_on": False}
        axes.plot(shares["length"] * nudge, shares["wrong"], linewidth=1, **look)
    axes.set(xlabel="tokens in a prompt, $L$", ylim=(0, 1))
    axes.set_yticks([0, 0.5, 1], labels=["none", "half", "all"])
