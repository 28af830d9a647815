r"""Training ends where the exact theory says.

Plain mean square against training time, the number of steps times their size. Solid: tracked runs of 300,000
steps of 0.001, the exact mean square of the head at that time. Thin, with markers: runs made here with a larger
step, mean square over the fresh prompts of a twentieth of the run. Dashed: the exact optima. Left softmax, right
linear attention.

Alt: Two charts of mean square against logarithmic training time. Solid curves come down in steps from about 1.1
and end on dashed lines. Thin curves of short runs come down at about the same time and end on or a little above
dashed lines.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from chapters.published_experiment.marks import MARKERS, MEAN_SQUARE, plain_ticks
from chapters.published_experiment.optima import Optima
from chapters.published_experiment.protocol import (
    CLOSE,
    POOLS,
    PUBLISHED_STEP_SIZE,
    PUBLISHED_STEPS,
    noise_power,
)
from chapters.published_experiment.runs import LongRuns, Trainings, short_frame
from companion import Alternative, Claim, Column, Numbers, Table
from companion.style import ink


def numbers(optima: Optima, short: Trainings, long: LongRuns, *, law: str) -> Numbers:
    """Mean squares along runs; the tracked ones end at the optimum."""
    claims = [_long_claim(activation, optima, long) for activation in POOLS]
    return Numbers(_table(law, optima, short_frame(short), long), claims)


def _table(law: str, optima: Optima, short: pd.DataFrame, long: LongRuns) -> Table:
    """Mean square against training time, steps times step size."""
    tracked = _thinned(long).assign(law="corrected", loss=np.nan, loss_std_error=np.nan)
    frame = pd.concat([tracked, short.assign(law=law)], ignore_index=True)
    frame["optimum"] = [optima[run] for run in zip(frame["law"], frame["activation"], frame["length"], strict=True)]
    columns = {
        "law": Column("Data law", "name"),
        "activation": Column("Head that is trained", "name"),
        "length": Column("Tokens in a prompt, L", "tokens"),
        "start": Column("Number of the start; tracked and short runs count on their own"),
        "time": Column("Training time: steps times step size; of a mean over steps, the middle"),
        "risk": Column("Exact mean square along a tracked run of 300,000 steps of 0.001"),
        "loss": Column(
            "Mean square over the fresh prompts of a twentieth of a run made here", std_error="loss_std_error"
        ),
        "loss_std_error": Column("Its standard error", std_error="loss_std_error"),
        "optimum": Column("Least mean square of this head, exact"),
    }
    return Table(frame.reindex(columns=list(columns)), columns)


def _thinned(long: LongRuns) -> pd.DataFrame:
    """Of the tracked runs, rows evenly spread on a logarithmic axis."""
    kept = np.unique(np.round(np.geomspace(1, PUBLISHED_STEPS // 1000, 60)).astype(int)) * 1000
    frames = [
        pd.DataFrame(
            {
                "activation": activation,
                "length": length,
                "start": start,
                "time": run.steps[shown] * PUBLISHED_STEP_SIZE,
                "risk": run.risks[shown],
            }
        )
        for (activation, length, start), run in long.items()
        for shown in (np.isin(run.steps, kept),)
    ]
    return pd.concat(frames, ignore_index=True)


def _long_claim(activation: str, optima: Optima, long: LongRuns) -> Claim:
    """Ends of the tracked runs against the optimum that no parameter was fitted for."""
    mine = [head for head in sorted(long) if head[0] == activation]
    ends = np.array([long[head].risks[-1] for head in mine])

    def worst(levels) -> float:
        return float(np.max(np.abs(ends / levels - 1)))

    def under(law: str) -> np.ndarray:
        return np.array([optima[law, activation, length] for _, length, _ in mine])

    alternatives = {
        "softmax": Alternative("the optimum under the published code's data law", worst(under("as published"))),
        "linear": Alternative("the least risk of the infinite prompt", worst(noise_power())),
    }
    at = ", ".join(str(length) for length in sorted({length for _, length, _ in mine}))
    return Claim(
        id=f"published-experiment-long-{activation}",
        statement=(
            f"After {PUBLISHED_STEPS:,} steps of the published training, {activation} attention on prompts of {at} "
            "tokens is at its exact optimum: the largest relative distance of mean squares."
        ),
        source="derived here",
        measured=worst(under("corrected")),
        expected=0.0,
        tolerance=CLOSE,
        relation="≤",
        alternative=alternatives[activation],
    )


def draw(table: pd.DataFrame) -> Figure:
    """Curves of runs, long and short, above the dashed lines of their optima."""
    figure, panels = plt.subplots(1, 2, figsize=(8.0, 4.8), sharey=True)
    lengths = sorted(table["length"].unique().tolist())
    colours = {length: f"C{i}" for i, length in enumerate(lengths)}
    for panel, activation in zip(panels, MARKERS, strict=True):
        runs = table[table["activation"] == activation]
        for (length, _), run in runs[runs["risk"].notna()].groupby(["length", "start"]):
            panel.plot(run["time"], run["risk"], color=colours[length], linewidth=2.5)
        for (length, _), run in runs[runs["loss"].notna()].groupby(["length", "start"]):
            panel.plot(run["time"], run["loss"], color=colours[length], linewidth=0.8, marker="o", markersize=3)
        for (length, _), run in runs.groupby(["length", "law"]):
            panel.axhline(run["optimum"].iloc[0], color=colours[length], linestyle="--", linewidth=1.3)
        panel.set(xscale="log", yscale="log", xlabel="training time", title=activation)
        plain_ticks(panel)
    panels[0].set(ylabel=MEAN_SQUARE, ylim=(0.9 * table["optimum"].min(), 1.2))
    handles = [Line2D([], [], color=colours[length], linewidth=2.5) for length in lengths]
    labels = [f"$L={length}$" for length in lengths]
    handles += [
        Line2D([], [], color=ink(), linewidth=2.5),
        Line2D([], [], color=ink(), linewidth=0.8, marker="o", markersize=3),
        Line2D([], [], color=ink(), linestyle="--", linewidth=1.3),
    ]
    labels += ["300,000 steps of 0.001", "short runs, larger step", "exact optimum"]
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
