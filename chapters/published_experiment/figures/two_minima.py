r"""Where a head ends can depend on its random start.

Plain mean square, exact, on prompts of one length, along training from PyTorch's random starts of the separate query,
key, value and output matrices: linear attention by exact gradient descent, softmax by stochastic descent, the same
starts under both laws of the data. Thick: tracked runs of the published steps. Dashed: the optimum. Dash-dotted: the
best head among those whose scores see labels and whose values are covariates, a saddle, at which descents wait. Dotted:
the second minimum, to which the way on from there leads under the corrected law; under the published law it leads to
the optimum. Training time is steps times step size, as long as the published training.

Alt: Four charts of mean square against training time with many thin curves, linear attention left, softmax right, the
corrected law above, the published code's below. In three of them part of the curves end on a dashed line and part on a
dash-dotted line far above it or, linear attention under the corrected law, on a dotted line below that. Linear
attention under the published law ends on its dashed line from nearly all starts.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from chapters.published_experiment.descents import STEP_SIZE, STEPS, Descents
from chapters.published_experiment.landscape import FLAT, alignment
from chapters.published_experiment.parameters import SECOND_LENGTH
from chapters.published_experiment.protocol import CLOSE, LAWS, POOLS, PUBLISHED_STEP_SIZE, PUBLISHED_STEPS
from chapters.published_experiment.runs import LongRuns
from chapters.published_experiment.stationary_heads import (
    OPTIMUM,
    SECOND,
    SWAPPED,
    Landscapes,
    classify_ends,
    count_ends,
)
from chapters.published_experiment.style import COLOURS, LEVEL_LINES, MEAN_SQUARE
from companion import Alternative, Claim, Column, Numbers, Table
from companion.figures.style import headline, ink, legend_line

CORRECTED, PUBLISHED = LAWS
LEVELS = (OPTIMUM, SWAPPED, SECOND)
# Stationary heads at which a head has not found the optimum.
ASTRAY = (SWAPPED, SECOND)


def numbers(
    descents: Descents, landscapes: Landscapes, curvatures: dict[tuple[str, str, str], float], long: LongRuns
) -> Numbers:
    """Paths of the descents beside the places where they stop; what these are, and how many starts lead there."""
    claims = [_second_minimum_claim(activation, curvatures) for activation in POOLS]
    claims += [_saddle_claim(curvatures), *_way_on_claims(landscapes), _wrong_way_claim(landscapes)]
    claims += [_astray_claim(descents, landscapes, *head) for head in descents if head != ("linear", PUBLISHED)]
    claims += [_long_claim(landscapes, long), _long_waiting_claim(landscapes, long)]
    return Numbers(_table(descents, landscapes, long), claims)


def _table(descents: Descents, landscapes: Landscapes, long: LongRuns) -> Table:
    """Paths of descents and of tracked runs, and the levels at which they may end."""
    frames = [
        pd.DataFrame({"start": start, "time": paths.times[start], "risk": paths.risks[start], "end": where}).assign(
            activation=activation, law=law
        )
        for (activation, law), paths in descents.items()
        for start, where in enumerate(classify_ends(paths, landscapes[activation, law]))
    ]
    frames += [
        pd.DataFrame({"tracked": start, "time": run.steps * PUBLISHED_STEP_SIZE, "risk": run.risks})
        .iloc[9::10]
        .assign(activation=activation, law=CORRECTED)
        for (activation, _, start), run in _here(long).items()
    ]
    frame = pd.concat(frames, ignore_index=True)
    for name in LEVELS:
        levels = {head: places.named[name].square for head, places in landscapes.items() if name in places.named}
        heads = zip(frame["activation"], frame["law"], strict=True)
        frame[name.replace(" ", "_")] = [levels.get(head, np.nan) for head in heads]
    columns = {
        "activation": Column("Head that is trained", "name"),
        "law": Column("Data law: corrected, or as the published code draws", "name"),
        "start": Column("Number of the random start"),
        "tracked": Column(f"Number of the start of a tracked run of {PUBLISHED_STEPS:,} steps"),
        "time": Column("Training time: steps times step size"),
        "risk": Column(f"Mean square of the head there, exact, on prompts of {SECOND_LENGTH} tokens", absolute=1e-3),
        "end": Column("Where the start ends, by its mean square and by the head itself", "name"),
        "optimum": Column("Least mean square"),
        "wrong_way": Column("Least mean square of heads whose scores see labels and whose values are covariates"),
        "second_minimum": Column("Mean square at the second minimum, where there is one"),
    }
    return Table(frame.reindex(columns=list(columns)), columns)


def _here(long: LongRuns) -> LongRuns:
    """The tracked runs on prompts of the length looked at."""
    return {run: path for run, path in long.items() if run[1] == SECOND_LENGTH}


def _second_minimum_claim(activation: str, curvatures: dict[tuple[str, str, str], float]) -> Claim:
    """The least curvature at the worse minimum; none where the way on led to the optimum."""
    but = " but for the rescaling of U against v" if FLAT[activation] else ""
    return Claim(
        id=f"published-experiment-second-minimum-{activation}",
        statement=(
            f"{activation.capitalize()} attention on {SECOND_LENGTH} tokens has a second, worse minimum under the "
            f"corrected law, strict{but}: the least curvature there."
        ),
        source="measured here",
        measured=curvatures.get((activation, CORRECTED, SECOND), 0.0),
        expected=1e-3,  # far above the error of the differences, about the square of their step
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("it is a saddle, like the wrong-way head", curvatures[activation, CORRECTED, SWAPPED]),
    )


def _saddle_claim(curvatures: dict[tuple[str, str, str], float]) -> Claim:
    """The least curvatures at the heads where descents wait."""
    least = {name: [value for (_, _, place), value in curvatures.items() if place == name] for name in ASTRAY}
    return Claim(
        id="published-experiment-wrong-way-saddle",
        statement=(
            "The best head of the wrong family is a saddle for softmax and for linear attention, under both laws: the "
            "largest of the four least curvatures."
        ),
        source="derived here",
        box="two-families",
        measured=max(least[SWAPPED]),
        expected=-1e-3,  # far below the error of the differences, about the square of their step
        tolerance=0.0,
        relation="≤",
        alternative=Alternative("it is curved like the second minima", min(least[SECOND], default=0.0)),
    )


def _way_on_claims(landscapes: Landscapes) -> tuple[Claim, Claim]:
    """The minimum beyond the wrong-way head against the optimum, under either law."""
    ratios = {
        law: [
            landscapes[activation, law].minimum_beyond.square / landscapes[activation, law].optimum.square
            for activation in POOLS
        ]
        for law in LAWS
    }
    least, largest = min(ratios[CORRECTED]), max(ratios[PUBLISHED])
    way = "downhill from the wrong-way head, once a little of the right way is mixed in,"
    return (
        Claim(
            id="published-experiment-way-on",
            statement=(
                f"Under the corrected law, {way} softmax and linear attention come to a minimum above the optimum: the "
                "smaller ratio of mean squares."
            ),
            source="measured here",
            measured=least,
            expected=1 + CLOSE,
            tolerance=0.0,
            relation="≥",
            alternative=Alternative("the law of the published code, where it leads to the optimum", largest),
        ),
        Claim(
            id="published-experiment-way-on-as-published",
            statement=(
                f"Under the law of the published code, {way} both come to the optimum: the larger ratio of mean "
                "squares."
            ),
            source="measured here",
            measured=largest,
            expected=1.0,
            tolerance=1e-6,  # both searches stop at gradients of 1e-7, where curvatures are above 1e-3
            alternative=Alternative("the corrected law, where it leads to a second minimum", least),
        ),
    )


def _wrong_way_claim(landscapes: Landscapes) -> Claim:
    """Which direction is served the wrong way round."""
    heads = [
        landscapes[activation, CORRECTED].named[name].point
        for activation in POOLS
        for name in ASTRAY
        if name in landscapes[activation, CORRECTED].named
    ]

    def along(axis: int) -> float:
        return min(alignment(head, axis=axis) for head in heads)

    return Claim(
        id="published-experiment-wrong-way-round",
        statement=(
            "At the second minima and the wrong-way heads, scores that see labels and values that see covariates serve "
            "one direction, the first principal axis of the covariates: the least cosine."
        ),
        source="heuristic",
        box="served-two-ways",
        measured=along(0),
        expected=0.99,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("it is the second principal axis", along(1)),
    )


def _astray_claim(descents: Descents, landscapes: Landscapes, activation: str, law: str) -> Claim:
    """Count the starts that end at the wrong-way head or at the second minimum."""
    starts, of_linear = (len(descents[head].risks) for head in ((activation, law), ("linear", PUBLISHED)))
    least = count_ends(descents, landscapes, "linear", PUBLISHED, *ASTRAY) / of_linear
    name = "-".join(["published-experiment-trapped", activation] + (["as-published"] if law == PUBLISHED else []))
    under = "the corrected law" if law == CORRECTED else "the law of the published code"
    where = "the wrong-way head or the second minimum" if landscapes[activation, law].second else "the wrong-way head"
    return Claim(
        id=name,
        statement=(
            f"Under {under}, training time {STEPS * STEP_SIZE:g} takes some of {starts} random starts of {activation} "
            f"attention to {where}, by mean square and by the head itself: their number. This is a larger share than "
            f"that of linear attention under the law of the published code, {least * of_linear:g} of {of_linear}."
        ),
        source="measured here",
        measured=float(count_ends(descents, landscapes, activation, law, *ASTRAY)),
        expected=starts * least + 1 / of_linear,  # two shares that differ, differ by one over both numbers of starts
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("it is as for linear attention under the law of the published code", starts * least),
    )


def _long_claim(landscapes: Landscapes, long: LongRuns) -> Claim:
    """Every tracked run on prompts of this length against the places at which it may end, under either law."""
    here = _here(long)

    def worst(law: str) -> float:
        levels = {its: np.array([place.square for place in landscapes[its, law].named.values()]) for its in POOLS}
        return max(float(np.min(np.abs(run.risks[-1] / levels[its] - 1))) for (its, _, _), run in here.items())

    levels = [np.sort([place.square for place in landscapes[its, CORRECTED].named.values()]) for its in POOLS]
    return Claim(
        id="published-experiment-long-starts",
        statement=(
            f"All {len(here)} tracked runs on prompts of {SECOND_LENGTH} tokens end at the mean square of the optimum, "
            "of the second minimum or of the wrong-way head: the largest relative distance from the nearest."
        ),
        source="measured here",
        measured=worst(CORRECTED),
        expected=0.0,
        # half the least gap between two levels: a run that is nearer belongs to one of them
        tolerance=min(float(np.min(np.diff(each) / each[1:])) for each in levels) / 2,
        relation="≤",
        alternative=Alternative("the places under the published code's law", worst(PUBLISHED)),
    )


def _long_waiting_claim(landscapes: Landscapes, long: LongRuns) -> Claim:
    """Count the tracked runs that have not come to the optimum."""

    def above(activation: str) -> float:
        best = landscapes[activation, CORRECTED].optimum.square
        mine = [run.risks[-1] for (its, _, _), run in _here(long).items() if its == activation]
        return float(np.sum(np.array(mine) > (1 + CLOSE) * best))

    starts = sum(its == "softmax" for its, _, _ in _here(long))
    return Claim(
        id="published-experiment-long-waiting",
        statement=(
            f"Of {starts} starts of softmax attention on {SECOND_LENGTH} tokens, some are above the optimum after "
            f"{PUBLISHED_STEPS:,} steps: their number."
        ),
        source="measured here",
        measured=above("softmax"),
        expected=1.0,
        tolerance=0.0,
        relation="≥",
        alternative=Alternative("it is as for the tracked runs of linear attention", above("linear")),
    )


def draw(table: pd.DataFrame) -> Figure:
    """A panel a head and law: its paths, and the levels of the places where they stop."""
    figure, panels = plt.subplots(2, 2, figsize=(8.0, 6.4), sharey=True, sharex=True)
    for row, law in zip(panels, dict.fromkeys(table["law"]), strict=True):
        for panel, activation in zip(row, ("linear", "softmax"), strict=True):
            mine = table[(table["activation"] == activation) & (table["law"] == law)]
            for _, path in mine.groupby("start"):
                panel.plot(path["time"], path["risk"], color=COLOURS[activation], linewidth=0.8, alpha=0.7)
            for _, path in mine.groupby("tracked"):
                panel.plot(path["time"], path["risk"], color=COLOURS[activation], linewidth=2.2, alpha=0.9)
            for column, (_, line) in LEVEL_LINES.items():
                if mine[column].notna().all():
                    panel.axhline(mine[column].iloc[0], color=ink(), linestyle=line, linewidth=1.5)
            panel.set_title(f"{activation}, {law}")
        row[0].set_ylabel(MEAN_SQUARE)
    panels[0, 0].set_ylim(0.8 * table["optimum"].min(), 1.1 * table["wrong_way"].max())
    for panel in panels[1]:
        panel.set_xlabel("training time")
    handles = {f"{name}, $L={SECOND_LENGTH}$": legend_line(line, 1.5) for name, line in LEVEL_LINES.values()}
    handles["tracked runs of the published length"] = legend_line("-", 2.2)
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=2)
    headline(figure, "Where a head ends can depend on its random start")
    return figure
