r"""The key of a trained pair rests above the best key, lower with a smaller step, and it leaves the best key.

Two heads trained by the published protocol (Adam, 256 fresh prompts of 40 tokens per step), two seeds per line style.
Solid: from the default start; at the vertical line the step is halved, or decreases to zero along a cosine. Dashed:
from the exact optimum, with the same step throughout. The key is half of the difference of both keys.

Alt: Chart of key against training steps. Curves from above and from below meet at a level far above a dotted line.
After a vertical line, curves with a smaller step fall below this level and stay above the dotted line.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.opposite_heads.style import RUN
from chapters.opposite_heads.trained_pairs import TrainedPairs
from chapters.opposite_heads.training import HIGHER, LOWER, REST
from companion import Claims, Column, Numbers, Table
from companion.figures.style import COLUMN, ink, label, legend_line, legend_with

STEP_COLOURS = {"published": "C0", "half": "C1", "decaying": "C2"}
WORDS = {"published": "published step", "half": "half of the step", "decaying": "decreasing step"}
SET_BEFORE = "a bound that was set before the runs were made"


def numbers(trained: TrainedPairs) -> Numbers:
    """Return the keys along all runs, and the claims on the key at rest."""
    own = trained.rows[(trained.rows["start"] == "own") & (trained.rows["step_size"] == "published")]
    offset = trained.rows["start"].map({"rest": own["step"].max()}).fillna(0).astype(int)
    frame = trained.rows.assign(total_step=trained.rows["step"] + offset, best_key=trained.best_key)
    columns = {
        "start": Column(
            "`own`: default start; `optimum`: exact optimum; `rest`: end of the run from its own start", "name"
        ),
        "step_size": Column("Step size: as published, half of it, or decreasing from it to zero", "name"),
        "seed": Column("Seed of start and prompts"),
        "total_step": Column("Steps of Adam, with those of the run that provides the start"),
        "key": Column("Key of the pair: half of the difference of the two heads' keys"),
        "value": Column("Value of the pair: half of the difference of the two heads' values"),
        "best_key": Column("Key of the exact optimum of a pair"),
    }
    return Numbers(Table(frame[list(columns)], columns), _claims(trained))


def _claims(trained: TrainedPairs) -> Claims:
    """Claim bounds on the key at rest, which exclude the optimum, and that smaller steps lower it."""
    claim = Claims("opposite-heads", source="measured here")
    ends = pd.concat([trained.keys(start, "published") for start in ("own", "optimum")])
    of_runs = f"key at rest over {len(ends)} trainings with the published step, from the default start and the optimum."
    claim.at_least(
        "rest-low",
        f"The smallest {of_runs}",
        ends.min(),
        REST[0],
        because=SET_BEFORE,
        comparisons=len(ends),
        rejects=("training ends at the exact optimum", trained.best_key),
    )
    of_own = trained.rows[trained.rows["start"] == "own"]
    claim.at_most(
        "rest-high",
        f"The largest {of_runs}",
        ends.max(),
        REST[1],
        because=SET_BEFORE,
        comparisons=len(ends),
        rejects=("keys stay at the size of the first steps", of_own.groupby(RUN)["key"].first().max()),
    )
    left = pd.concat([trained.keys("optimum", step) for step in ("published", "half")])
    claim.at_least(
        "leaves-optimum",
        f"{len(left)} trainings from the exact optimum, with the published step or half of it, end at larger keys "
        "(measured: the smallest ratio to the best key).",
        left.min() / trained.best_key,
        HIGHER,
        because=SET_BEFORE,
        comparisons=len(left),
        rejects=("a training that starts at the optimum stays there", 1),
    )
    at_rest = trained.keys("own", "published").mean()
    claim.at_most(
        "half-step",
        "Half of the step lowers the key at rest (measured: the ratio of the mean keys of two seeds).",
        trained.keys("rest", "half").mean() / at_rest,
        LOWER,
        because=SET_BEFORE,
        rejects=("the key at rest does not depend on the step", 1),
    )
    decaying = trained.rows[(trained.rows["start"] == "rest") & (trained.rows["step_size"] == "decaying")]
    claim.at_most(
        "decaying-step",
        "A step that decreases to zero ends at a key nearer to the optimum (measured: the ratio of the mean final key "
        "of two seeds to their mean key at rest).",
        decaying.groupby("seed")["key"].last().mean() / at_rest,
        LOWER,
        because=SET_BEFORE,
        rejects=("the key at rest does not depend on the step", 1),
    )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw the key along all runs, with the exact optimum."""
    figure, axes = plt.subplots(figsize=(COLUMN, 4.6))
    for (start, step, _), run in table.groupby(RUN):
        dashed = "--" if start == "optimum" else "-"
        axes.plot(run["total_step"] / 1000, run["key"], color=STEP_COLOURS[step], linestyle=dashed, linewidth=1.4)
    best, last = table["best_key"].iloc[0], table["total_step"].max() / 1000
    axes.axhline(best, color=ink(), linestyle=":", linewidth=1.5)
    label(axes, 0, best, "best key", ink(), xytext=(6, -14))
    change = table.loc[table["start"] == "own", "total_step"].max() / 1000
    axes.axvline(change, color=ink(), linewidth=0.8)
    label(axes, change, 0.025, "step changes", ink())
    axes.set(xlabel="training steps, in thousands", ylabel=r"key of the pair, $\omega$", xlim=(0, 1.02 * last))
    axes.set_ylim(0, 1.9 * table.loc[table["start"] == "own", "key"].iloc[-1])
    lines = {WORDS[step]: Line2D([], [], color=colour, linewidth=1.4) for step, colour in STEP_COLOURS.items()}
    lines["from the best key"] = legend_line("--", 1.4)
    legend_with(axes, lines, loc="upper right", ncols=2, frameon=True, framealpha=1, edgecolor="none")
    return figure
