"""The published training changed in one thing at a time, sixteen random starts each: where they end.

    python -m chapters.published_experiment.data.cures

makes `second_minima/cures`, twenty minutes of one core. A killed run goes on with the change and head that it was at.
"""

from chapters.published_experiment.changed_trainings import (
    BATCH,
    CHANGES,
    COLUMNS,
    PARTS,
    PROMPTS,
    STARTS,
    STEP_SIZE,
    STEPS,
    TABLE,
    frame_of,
    train_and_judge,
)
from chapters.published_experiment.parameters import SECOND_LENGTH
from companion import Table
from companion.authoring.datasets import Result, in_parts, make


def cures() -> Result:
    """One table: a part a change and head."""
    kept = in_parts("published_experiment", "cures", PARTS, _part, STARTS * 3)
    parameters = {
        "length": SECOND_LENGTH,
        "starts": STARTS,
        "steps": STEPS,
        "step_size": STEP_SIZE,
        "batch": BATCH,
        "judging_prompts": PROMPTS,
        "sampling": "batch_loss; plain for several heads",
        "precision": "float32",
    }
    return Result(Table(frame_of(PARTS, kept), COLUMNS), parameters)


def _part(part: tuple[str, str]):
    change, activation = part
    return train_and_judge(CHANGES[change], activation)


if __name__ == "__main__":
    make(__file__, __doc__, {TABLE: cures})
