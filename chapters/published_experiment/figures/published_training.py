r"""Training from a selected start ends at the exact optimum, and shorter runs fall at about the same training time.

Long runs have the number and size of steps of the published training; the mean square of the head (without a factor
½) is exact. Shorter runs have larger steps; their mean square is that on the fresh prompts of each part of the run.
Both kinds of runs exist at the length that is drawn strongly.

Alt: Two charts of mean square against logarithmic training time. Solid curves start together, fall in steps and end on
dashed lines. Thin curves of the runs made here fall at about the same time and end on dashed lines or a little above.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.published_experiment.optima import MEAN_SQUARE_COLUMNS, Optima
from chapters.published_experiment.protocol import CLOSE, LAWS, NOISE, PUBLISHED_STEP_SIZE, PUBLISHED_STEPS, noise_power
from chapters.published_experiment.runs import STEPS_A_ROW, LongRuns, Trainings, short_frame
from chapters.published_experiment.style import MEAN_SQUARE, plain_ticks
from chapters.wording import listing
from companion import Claims, Column, Numbers, Table
from companion.figures.style import WIDE, ink, label, legend_line, sequence


def numbers(optima: Optima, short: Trainings, long: LongRuns, *, law: str) -> Numbers:
    """Return mean squares along runs; claim that the tracked runs end at the optimum."""
    columns = {
        "kind": Column(
            f"`tracked`: a tracked run of {PUBLISHED_STEPS:,} steps, exact; `short`: a run made here", "name"
        ),
        **MEAN_SQUARE_COLUMNS,
        "start": Column("Number of the random start; tracked runs and short runs have separate numbers"),
        "time": Column("Training time: steps times step size; the middle of the interval for a mean over steps"),
        "optimum": Column("Least mean square of this head, exact"),
    }
    # steps of the tracked runs, evenly spread on a logarithmic axis
    kept = np.unique(np.round(np.geomspace(1, PUBLISHED_STEPS // STEPS_A_ROW, 60)).astype(int)) * STEPS_A_ROW
    groups = []
    for (activation, length, start), run in long.items():
        shown = np.isin(run.steps, kept)
        path = {"time": run.steps[shown] * PUBLISHED_STEP_SIZE, "mean_square": run.risks[shown]}
        setting = {"law": "corrected", "predictor": activation, "length": length, "start": start}
        groups.append({"kind": "tracked", **setting, **path, "optimum": optima["corrected", activation, length]})
    losses = short_frame(short).assign(kind="short", law=law)
    losses["optimum"] = [optima[law, *head] for head in zip(losses["predictor"], losses["length"], strict=True)]
    return Numbers(Table.of([*groups, losses], columns), _claims(optima, long))


def _claims(optima: Optima, long: LongRuns) -> Claims:
    claim = Claims("published-experiment", source="measured here")
    for activation in ("softmax", "linear"):
        lengths = [length for its, length, _ in sorted(long) if its == activation]
        ends = np.array([run.risks[-1] for (its, _, _), run in sorted(long.items()) if its == activation])
        away = {law: np.abs(ends / [optima[law, activation, length] for length in lengths] - 1).max() for law in LAWS}
        others = {
            "softmax": ("they are at the optimum of the published code's covariances", away["as published"]),
            "linear": ("they are at the least risk of the infinite prompt", np.abs(ends / noise_power() - 1).max()),
        }
        at = listing(f"{length:,}" for length in sorted(set(lengths)))
        claim.at_most(
            f"long-{activation}",
            f"After {PUBLISHED_STEPS:,} steps of the published training from one start, {activation} attention on "
            f"prompts of {at} tokens is at its exact optimum (measured: the largest relative distance of mean "
            "squares).",
            away["corrected"],
            0,
            within=CLOSE,
            because=NOISE,
            rejects=others[activation],
        )
    return claim


def draw(table: pd.DataFrame) -> Figure:
    """Draw curves of long and short runs, and the dashed lines of their optima."""
    figure, panels = plt.subplots(1, 2, figsize=(WIDE, 4.5), sharey=True)
    lengths = sorted(table["length"].unique().tolist())
    colours = dict(zip(lengths, sequence(len(lengths)), strict=True))
    looks = {"tracked": {"linewidth": 2.5}, "short": {"linewidth": 0.8, "marker": "o", "markersize": 3}}
    # lengths with one kind of runs are pale
    opacity = {length: 1 if runs["kind"].nunique() > 1 else 0.35 for length, runs in table.groupby("length")}
    for panel, activation in zip(panels, ("softmax", "linear"), strict=True):
        runs = table[table["predictor"] == activation]
        for kind, look in looks.items():
            for (length, _), run in runs[runs["kind"] == kind].groupby(["length", "start"]):
                panel.plot(run["time"], run["mean_square"], color=colours[length], alpha=opacity[length], **look)
        for (length, _), run in runs.groupby(["length", "law"]):
            level = run["optimum"].iloc[0]
            panel.axhline(level, color=colours[length], linestyle="--", linewidth=1.3, alpha=opacity[length])
            above = {"xytext": (0, 8), "ha": "left", "fontsize": 10}
            label(panel, table["time"].min(), level, f"$L={length}$", colours[length], **above)
        panel.set(xscale="log", yscale="log", xlabel="training time (steps × step size)", title=activation)
        plain_ticks(panel)
    panels[0].set(ylabel=MEAN_SQUARE, ylim=(0.9 * table["optimum"].min(), 1.3))
    lines = {
        "long run, published steps, selected start": Line2D([], [], color=ink(), **looks["tracked"]),
        "shorter runs, fresh prompts": Line2D([], [], color=ink(), **looks["short"]),
        "exact optimum": legend_line("--", 1.3),
    }
    figure.legend(list(lines.values()), list(lines), loc="outside lower center", ncols=3, fontsize=10)
    return figure
