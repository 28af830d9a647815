"""Make the table of the published training with one change at a time, from sixteen random starts each.

    python -m chapters.second_minima.data.cures

makes `cures` in twenty minutes of one core. A killed run continues with the change and head that it was
computing.
"""

from chapters.second_minima.changed_trainings import (
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
from chapters.second_minima.parameters import SECOND_LENGTH
from companion import Table
from companion.authoring.datasets import Result, in_parts, make


def cures() -> Result:
    """Return the table, computed in one part per change and head."""
    kept = in_parts("second_minima", "cures", PARTS, _part, STARTS * 3)
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
