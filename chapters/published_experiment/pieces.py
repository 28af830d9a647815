"""The trainings, for other processes and other machines."""

from chapters.published_experiment.protocol import keys, law_of
from chapters.published_experiment.runs import Plan, Schedule, training_pieces
from companion.authoring.tasks import Pieces


def pieces(
    *,
    seed: int,
    covariance_bug: bool,
    sgd_lengths: list[int],
    sgd_runs: int,
    sgd_steps: int,
    sgd_step_size: float,
    sgd_batch: int,
) -> Pieces:
    """Trainings by activation and length."""
    plan = Plan(law_of(covariance_bug), sgd_lengths, sgd_runs, Schedule(sgd_steps, sgd_step_size, sgd_batch))
    return training_pieces(plan, key=keys(seed).runs)
