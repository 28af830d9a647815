"""Tracked runs of the published protocol on prompts of the length that this chapter studies.

Both tables are extracts from tables of the chapter `published_experiment`, made by `data/published.py`, because a
notebook may read the data of no other chapter.
"""

from pathlib import Path

import pandas as pd

from chapters.published_experiment.every_run import Tables
from chapters.published_experiment.protocol import LAWS
from chapters.published_experiment.runs import LongRun, LongRuns
from chapters.second_minima.parameters import SECOND_LENGTH
from companion import Column

# Tracked tables with their origin, made by the commands in this folder.
DATA = Path(__file__).parent / "data"
PATHS, ENDS = "published_paths", "published_ends"
CORRECTED = next(iter(LAWS))
RUN = {
    "activation": Column("Head that the run trains: softmax or linear attention", "name"),
    "start": Column("Number of the start, which is its seed"),
}
PATH_COLUMNS = {
    **RUN,
    "step": Column("Steps of stochastic gradient descent"),
    "risk": Column("Exact mean square error of the head after this step, label noise included"),
}
END_COLUMNS = {
    **RUN,
    "risk": Column("Exact mean square error of the head at the end, label noise included"),
}


def read_paths() -> LongRuns:
    """Return the tracked runs of the published length with the mean square along the training."""
    frame = pd.read_csv(DATA / f"{PATHS}.csv")
    return {
        (activation, SECOND_LENGTH, start): LongRun(run["step"].to_numpy(), run["risk"].to_numpy())
        for (activation, start), run in frame.groupby(["activation", "start"], sort=False)
    }


def read_ends() -> pd.DataFrame:
    """Return the ends of the tracked runs that `every_run` of `published_experiment` has, one row per run."""
    return pd.read_csv(DATA / f"{ENDS}.csv")


def paths_frame(long: LongRuns) -> pd.DataFrame:
    """Return one row per recorded step of the runs on prompts of this chapter's length."""
    frames = [
        pd.DataFrame({"activation": activation, "start": start, "step": run.steps, "risk": run.risks})
        for (activation, length, start), run in long.items()
        if length == SECOND_LENGTH
    ]
    return pd.concat(frames, ignore_index=True)


def ends_frame(every: Tables) -> pd.DataFrame:
    """Return one row per run on prompts of this chapter's length, under the corrected covariances."""
    ends = every["ends"]
    chosen = ends[(ends["law"] == CORRECTED) & (ends["length"] == SECOND_LENGTH)]
    return chosen[list(END_COLUMNS)].reset_index(drop=True)
