r"""Training from different random starts ends at different solutions, and not always at the optimum.

Each curve is one training from a random start, drawn as PyTorch draws its linear layers: the exact mean square, on
prompts of one length. Linear attention descends exactly, softmax by stochastic descent, from the same starts for both
covariances. The best swapped head is a saddle; descent from it reaches the second minimum or, under the published
covariances, the optimum.

Alt: Four charts of mean square against training time with many thin curves, linear attention left, softmax right, the
corrected covariances above, those of the published code below. In three of them some curves end on a dashed line, and
others on a dash-dotted line far above it or, for linear attention under the corrected covariances, on a dotted line
below that. In the fourth, linear attention under the published covariances ends on its dashed line from all starts.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from chapters.published_experiment.protocol import CLOSE, LAWS, POOLS, PUBLISHED_STEP_SIZE, PUBLISHED_STEPS
from chapters.published_experiment.runs import LongRuns
from chapters.published_experiment.style import COLOURS
from chapters.second_minima.descents import STEP_SIZE, STEPS, Descents
from chapters.second_minima.landscape import FLAT, alignment
from chapters.second_minima.parameters import SECOND_LENGTH
from chapters.second_minima.stationary_heads import SECOND, SWAPPED, Landscapes, classify_ends, count_ends
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, legend_line

CORRECTED, PUBLISHED = LAWS
# Levels at which descents can stop: column of the table, name, and line style.
LEVEL_LINES = {
    "optimum": ("optimum", "--"),
    "wrong_way": ("best swapped", "-."),
    "second_minimum": ("second minimum", ":"),
}
# Lines of the paths, by kind.
LOOKS = {"descent": {"linewidth": 0.8, "alpha": 0.7}, "tracked": {"linewidth": 2.2, "alpha": 0.9}}
# Ends that are not the optimum.
ASTRAY = (SWAPPED, SECOND)
DIFFERENCES = "far above the error of the differences, which is about the square of their step"

# Steps of a run amplify rounding: SSE4.2 and AVX-512 differ by 3.4e-4 in one row, a tenth of the tolerance. The true
# digits are three.
ROUNDING_OF_A_RUN = 4e-3


def numbers(
    descents: Descents, landscapes: Landscapes, curvatures: dict[tuple[str, str, str], float], long: LongRuns
) -> Numbers:
    """Return the paths and the levels of stationary heads; claim what these are and how many starts end there."""
    groups = []
    for (activation, law), paths in descents.items():
        levels = _levels(landscapes, activation, law)
        for start, end in enumerate(classify_ends(paths, landscapes[activation, law])):
            path = {"start": start, "end": end, "time": paths.times[start], "risk": paths.risks[start]}
            groups.append({"activation": activation, "law": law, "kind": "descent", **path, **levels})
    for (activation, _, start), run in long.items():
        levels = _levels(landscapes, activation, CORRECTED)
        path = {"start": start, "time": run.steps[9::10] * PUBLISHED_STEP_SIZE, "risk": run.risks[9::10]}
        groups.append({"activation": activation, "law": CORRECTED, "kind": "tracked", **path, **levels})
    columns = {
        "activation": Column("Head that is trained", "name"),
        "law": Column("Covariances of the data: corrected, or as the published code draws them", "name"),
        "kind": Column(f"`descent`: computed here; `tracked`: a tracked run of {PUBLISHED_STEPS:,} steps", "name"),
        "start": Column("Number of the random start; both kinds have separate numbers"),
        "time": Column("Training time: steps times step size"),
        "risk": Column(
            f"Exact mean square at this time, on prompts of {SECOND_LENGTH} tokens", absolute=ROUNDING_OF_A_RUN
        ),
        "end": Column("Stationary head at which the start ends, by mean square and by distance of heads", "name"),
        "optimum": Column("Least mean square"),
        "wrong_way": Column("Least mean square of swapped heads: scores depend on labels, values are covariates"),
        "second_minimum": Column("Mean square at the second minimum, where one was found"),
    }
    claim = Claims("published-experiment", source="measured here")
    _claim_stationary_heads(claim, landscapes, curvatures)
    _claim_starts_astray(claim, descents, landscapes)
    _claim_tracked_runs(claim, landscapes, long)
    return Numbers(Table.of(groups, columns), claim)


def _claim_stationary_heads(
    claim: Claims, landscapes: Landscapes, curvatures: dict[tuple[str, str, str], float]
) -> None:
    """Claim which stationary heads are minima, where descent from swapped heads ends, and their direction."""
    least = {name: [value for (_, _, place), value in curvatures.items() if place == name] for name in ASTRAY}
    for activation in POOLS:
        exception = ", up to the scaling of $U$ against $v$" if FLAT[activation] else ""
        where = " at $‖U‖ = ‖v‖$" if FLAT[activation] else ""
        claim.at_least(
            f"second-minimum-{activation}",
            f"{activation.capitalize()} attention on {SECOND_LENGTH} tokens has a second minimum above the optimum, "
            f"under the corrected covariances, and it is strict{exception} (measured: the least curvature{where}).",
            curvatures.get((activation, CORRECTED, SECOND), 0),  # 0 where none was found
            1e-3,
            because=DIFFERENCES,
            rejects=("it is a saddle, like the best swapped head", curvatures[activation, CORRECTED, SWAPPED]),
        )
    claim.at_most(
        "wrong-way-saddle",
        "The best swapped head is a saddle for softmax and for linear attention, under both covariances of the data "
        "(measured: the largest of the four least curvatures).",
        max(least[SWAPPED]),
        -1e-3,
        because=DIFFERENCES,
        source="derived here",
        box="two-families",
        rejects=("it is curved like the second minima", min(least[SECOND], default=0)),
    )
    above, as_published = (
        [landscapes[its, law].minimum_beyond.square / landscapes[its, law].optimum.square for its in POOLS]
        for law in (CORRECTED, PUBLISHED)
    )
    descent = "descent from the best swapped head, with a small aligned part added,"
    claim.at_least(
        "way-on",
        f"Under the corrected covariances, {descent} ends at a minimum above the optimum, for softmax and for linear "
        "attention (measured: the smaller ratio of mean squares).",
        min(above),
        1 + CLOSE,
        because="a distance at which no run counts as having reached the optimum",
        rejects=("it ends at the optimum, as under the covariances of the published code", max(as_published)),
    )
    claim.equal(
        "way-on-as-published",
        f"Under the covariances of the published code, {descent} ends at the optimum, for softmax and for linear "
        "attention (measured: the larger ratio of mean squares).",
        max(as_published),
        1,
        within=1e-6,
        because="both searches stop at gradients of 10⁻⁷, where curvatures are above 10⁻³",
        rejects=("it ends at a second minimum, as under the corrected covariances", min(above)),
    )
    named = [landscapes[its, CORRECTED].named for its in POOLS]
    heads = [places[name].point for places in named for name in ASTRAY if name in places]
    first, second = (min(alignment(head, axis=axis) for head in heads) for axis in (0, 1))
    claim.at_least(
        "wrong-way-round",
        "At the second minima and at the best swapped heads, the swapped part uses one direction of the covariates, "
        "their first principal axis (measured: the least cosine).",
        first,
        0.99,
        because="an angle of about eight degrees, far from the other principal axes",
        source="heuristic",
        box="served-two-ways",
        rejects=("it is the second principal axis", second),
    )


def _claim_starts_astray(claim: Claims, descents: Descents, landscapes: Landscapes) -> None:
    """Claim that some starts end at the best swapped head or at the second minimum."""
    reference = ("linear", PUBLISHED)
    of_linear, few = len(descents[reference].risks), count_ends(descents, landscapes, *reference, *ASTRAY)
    for activation, law in (head for head in descents if head != reference):
        starts = len(descents[activation, law].risks)
        astray = count_ends(descents, landscapes, activation, law, *ASTRAY)
        under = "the corrected covariances" if law == CORRECTED else "the covariances of the published code"
        where = "the best swapped head" + (" or the second minimum" if landscapes[activation, law].second else "")
        claim.at_least(
            f"trapped-{activation}" + ("-as-published" if law == PUBLISHED else ""),
            f"Under {under}, some of {starts} random starts of {activation} attention end at {where} after training "
            f"time {STEPS * STEP_SIZE:g}. Linear attention under the covariances of the published code does so from "
            f"{few} of {of_linear} starts, a smaller fraction (measured: the number of starts).",
            astray,
            starts * few / of_linear + 1 / of_linear,
            because="two different fractions differ by at least one over the product of their numbers of starts",
            count=(astray, starts),
            rejects=(
                "the fraction is that of linear attention under the covariances of the published code",
                starts * few / of_linear,
            ),
        )


def _claim_tracked_runs(claim: Claims, landscapes: Landscapes, long: LongRuns) -> None:
    """Claim that every tracked run ends at a stationary head, and that some of softmax have not reached the optimum."""
    ends = [(activation, run.risks[-1]) for (activation, _, _), run in long.items()]
    levels = {head: np.sort([place.square for place in places.named.values()]) for head, places in landscapes.items()}
    off, off_published = (
        max(np.min(np.abs(square / levels[activation, law] - 1)) for activation, square in ends)
        for law in (CORRECTED, PUBLISHED)
    )
    gap = min(np.min(1 - levels[its, CORRECTED][:-1] / levels[its, CORRECTED][1:]) for its in POOLS)
    claim.at_most(
        "long-starts",
        f"All {len(long)} tracked runs on prompts of {SECOND_LENGTH} tokens end at the mean square of the optimum, of "
        "the second minimum or of the best swapped head (measured: the largest relative distance from the nearest of "
        "these).",
        off,
        0,
        within=gap / 2,
        because="half the least gap between two levels, so that a run belongs to one of them",
        rejects=("they end at the levels of the published code's covariances", off_published),
    )
    waiting = [its for its, square in ends if square > (1 + CLOSE) * landscapes[its, CORRECTED].optimum.square]
    starts = sum(its == "softmax" for its, _ in ends)
    claim.count(
        "long-waiting",
        f"Of {starts} tracked starts of softmax attention on {SECOND_LENGTH} tokens, at least one is above the "
        f"optimum after {PUBLISHED_STEPS:,} steps (measured: the number of these starts).",
        waiting.count("softmax"),
        starts,
        at_least=1,
        because="at least one start",
        rejects=("none, as for the tracked runs of linear attention", waiting.count("linear")),
    )


def draw(table: pd.DataFrame) -> Figure:
    """Draw one panel for each head and pair of covariances: the paths, and the levels of stationary heads."""
    figure, panels = plt.subplots(2, 2, figsize=(WIDE, 6.4), sharey=True, sharex=True)
    for row, law in zip(panels, dict.fromkeys(table["law"]), strict=True):
        for panel, activation in zip(row, ("linear", "softmax"), strict=True):
            part = table[(table["activation"] == activation) & (table["law"] == law)]
            for (kind, _), path in part.groupby(["kind", "start"]):
                panel.plot(path["time"], path["risk"], color=COLOURS[activation], **LOOKS[kind])
            _draw_levels(panel, part)
            panel.set_title(f"{activation}, {law.removeprefix('as ')} covariances")
        row[0].set_ylabel(f"mean square error, $L={SECOND_LENGTH}$")
    panels[0, 0].set_ylim(0.8 * table["optimum"].min(), 1.1 * table["wrong_way"].max())
    for panel in panels[1]:
        panel.set_xlabel("training time")
    tracked = {"thick: tracked runs, as long as published": legend_line("-", LOOKS["tracked"]["linewidth"])}
    figure.legend(list(tracked.values()), list(tracked), loc="outside lower center")
    return figure


def _levels(landscapes: Landscapes, activation: str, law: str) -> dict[str, float]:
    """Return the mean squares of the stationary heads; a column is empty if there is no such head."""
    return {name.replace(" ", "_"): place.square for name, place in landscapes[activation, law].named.items()}


def _draw_levels(axes: Axes, part: pd.DataFrame) -> None:
    """Draw the level of each stationary head, and at its right the name and the number of starts that end there."""
    ends = part[part["kind"] == "descent"].groupby("start")["end"].last()
    rest = (~ends.isin([column.replace("_", " ") for column in LEVEL_LINES])).sum()
    for column, (name, line) in LEVEL_LINES.items():
        if part[column].isna().any():
            continue
        count, level = (ends == column.replace("_", " ")).sum(), part[column].iloc[0]
        axes.axhline(level, color=ink(), linestyle=line, linewidth=1.5)
        text = f"{name}:\n{count} of {len(ends)}" if count else name
        if column == "optimum" and rest:
            text += f",\n{rest} not there yet"
        side, up = {"wrong_way": ("bottom", 1), "second_minimum": ("top", 1)}.get(column, ("center", 0))
        label(axes, part["time"].max(), level, text, ink(), va=side, xytext=(12, up), fontsize=10)
