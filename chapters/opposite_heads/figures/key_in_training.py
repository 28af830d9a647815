r"""The key of a trained pair rests above the best key, lower with a smaller step, and it leaves the best key.

Two heads trained by the published protocol (Adam, 256 fresh prompts of 40 tokens per step), with two seeds per line
style. Solid curves: from the default start. Dashed curves: from the exact optimum, which is the dotted line. At the
vertical line the step of the solid runs changes: it is halved, or decreases to zero along a cosine. Dashed curves in
the colour of half of the step have this step from the beginning. The key is half of the difference of the two heads'
keys.

Alt: Chart of key against training steps. Curves from above and from below meet at a level far above a dotted line.
After a vertical line, curves with a smaller step fall below this level and stay above the dotted line.
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from chapters.opposite_heads.style import RUN
from chapters.opposite_heads.trained_pairs import TrainedPairs
from chapters.opposite_heads.training import HIGHER, LOWER, REST
from companion import Alternative, Claim, Column, Numbers, Table
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
    claims = (*_rest_claims(trained), _leaving_claim(trained), _half_claim(trained), _decay_claim(trained))
    return Numbers(Table(frame[list(columns)], columns), claims)


def _rest_claims(trained: TrainedPairs) -> list[Claim]:
    """Claim that all runs with the published step end between two bounds, which exclude the optimum."""
    ends = pd.concat([trained.keys(start, "published") for start in ("own", "optimum")])
    about = {"because": SET_BEFORE, "source": "measured here", "comparisons": len(ends)}
    of_runs = f"key at rest over {len(ends)} trainings with the published step, from the default start and the optimum."
    return [
        Claim.at_least(
            "opposite-heads-rest-low",
            f"The smallest {of_runs}",
            float(ends.min()),
            REST[0],
            alternative=Alternative("training ends at the exact optimum", trained.best_key),
            **about,
        ),
        Claim.at_most(
            "opposite-heads-rest-high",
            f"The largest {of_runs}",
            float(ends.max()),
            REST[1],
            alternative=Alternative(
                "keys stay at the size of the first steps",
                float(trained.rows.loc[trained.rows["start"] == "own"].groupby(RUN)["key"].first().max()),
            ),
            **about,
        ),
    ]


def _leaving_claim(trained: TrainedPairs) -> Claim:
    """Claim that training from the optimum leaves it."""
    ends = pd.concat([trained.keys("optimum", step) for step in ("published", "half")])
    return Claim.at_least(
        "opposite-heads-leaves-optimum",
        f"{len(ends)} trainings from the exact optimum, with the published step or half of it, end at larger keys "
        "(measured: the smallest ratio to the best key).",
        float(ends.min() / trained.best_key),
        HIGHER,
        because=SET_BEFORE,
        source="measured here",
        comparisons=len(ends),
        alternative=Alternative("a training that starts at the optimum stays there", 1.0),
    )


def _half_claim(trained: TrainedPairs) -> Claim:
    """Claim that half of the step gives a lower rest."""
    return Claim.at_most(
        "opposite-heads-half-step",
        "Half of the step lowers the key at rest (measured: the ratio of the mean keys of two seeds).",
        float(trained.keys("rest", "half").mean() / trained.keys("own", "published").mean()),
        LOWER,
        because=SET_BEFORE,
        source="measured here",
        alternative=Alternative("the key at rest does not depend on the step", 1.0),
    )


def _decay_claim(trained: TrainedPairs) -> Claim:
    """Claim that a step that decreases to zero brings the key closer to the optimum."""
    last = trained.rows[(trained.rows["start"] == "rest") & (trained.rows["step_size"] == "decaying")]
    last = last.groupby("seed")["key"].last()
    return Claim.at_most(
        "opposite-heads-decaying-step",
        "A step that decreases to zero ends at a key nearer to the optimum (measured: the ratio of the mean final key "
        "of two seeds to their mean key at rest).",
        float(last.mean() / trained.keys("own", "published").mean()),
        LOWER,
        because=SET_BEFORE,
        source="measured here",
        alternative=Alternative("the key at rest does not depend on the step", 1.0),
    )


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
    axes.set(xlabel="training steps, in thousands", ylabel=r"key of the pair, $\omega$", xlim=(0, 1.02 * last))
    axes.set_ylim(0, 1.9 * table.loc[table["start"] == "own", "key"].iloc[-1])
    lines = {WORDS[step]: legend_line("-", 1.4) for step in STEP_COLOURS}
    for line, colour in zip(lines.values(), STEP_COLOURS.values(), strict=True):
        line.set_color(colour)
    legend_with(
        axes,
        {**lines, "from the optimum": legend_line("--", 1.4)},
        loc="upper right",
        ncols=2,
        frameon=True,
        framealpha=1,
        edgecolor="none",
    )
    return figure
