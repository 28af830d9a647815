"""The short trainings by name, so that other processes and machines can compute them."""

from chapters.published_experiment.protocol import law_of
from chapters.published_experiment.runs import Plan, Schedule, training_tasks
from companion.authoring.tasks import Tasks
from lib.random import named_keys


def tasks(
    *,
    seed: int,
    covariance_bug: bool,
    sgd_lengths: list[int],
    sgd_runs: int,
    sgd_steps: int,
    sgd_step_size: float,
    sgd_batch: int,
) -> Tasks:
    """Return the trainings by activation and length."""
    plan = Plan(law_of(covariance_bug), sgd_lengths, sgd_runs, Schedule(sgd_steps, sgd_step_size, sgd_batch))
    return training_tasks(plan, key=named_keys(seed, "runs")["runs"])
