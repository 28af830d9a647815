"""Extract the tracked runs that this chapter draws or compares with from the tables of `published_experiment`.

    python -m chapters.second_minima.data.published

makes `published_paths` and `published_ends` in seconds. No run is computed.
"""

from chapters.published_experiment import every_run, runs
from chapters.published_experiment.protocol import PUBLISHED_STEP_SIZE, PUBLISHED_STEPS
from chapters.second_minima.parameters import SECOND_LENGTH
from chapters.second_minima.published_runs import (
    CORRECTED,
    END_COLUMNS,
    ENDS,
    PATH_COLUMNS,
    PATHS,
    ends_frame,
    paths_frame,
)
from companion import Table
from companion.authoring.datasets import Result, make

PARAMETERS = {
    "length": SECOND_LENGTH,
    "law": CORRECTED,
    "steps": PUBLISHED_STEPS,
    "step_size": PUBLISHED_STEP_SIZE,
    "precision": "float32",
}


def published_paths() -> Result:
    """Return the table with the mean squares along the tracked runs of the published length."""
    long = runs.read_long_runs() | runs.read_runs_from_other_starts()
    return Result(Table(paths_frame(long), PATH_COLUMNS), {**PARAMETERS, "sampling": "collapsed"})


def published_ends() -> Result:
    """Return the table with the ends of all tracked runs of the protocol."""
    return Result(Table(ends_frame(every_run.read_every_run()), END_COLUMNS), {**PARAMETERS, "sampling": "batch_loss"})


if __name__ == "__main__":
    make(__file__, __doc__, {PATHS: published_paths, ENDS: published_ends})
