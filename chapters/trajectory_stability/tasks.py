"""The expensive parts of the chapter by name, so that other processes and machines can compute them.

The parameter `tasks` lists tasks of in-context learning; the function `tasks` lists parts of the computation.
"""

from functools import cache, partial

from chapters.trajectory_stability.checkpoints import checkpoint_tasks
from chapters.trajectory_stability.problems import Problem, keys_by_task, problems_of
from chapters.trajectory_stability.trajectories import (
    Course,
    InfinitePath,
    TrainingPlan,
    train_infinite_path,
    training_tasks,
)
from companion.authoring.tasks import Tasks


def tasks(
    *,
    seed: int,
    tasks: list[str],
    lengths: list[int],
    episodes: int,
    steps: int,
    step_size: float,
    runs: int,
    prompts: int,
    lengths_per_group: int,
) -> Tasks:
    """Return the trainings by task, run and group of lengths, and the gradient errors by task and group of lengths."""
    plan = TrainingPlan(tuple(lengths), episodes, steps, step_size, runs, lengths_per_group)
    by_task = [_of_task(name, problem, plan, prompts, seed) for name, problem in problems_of(tasks).items()]
    return {name: compute for listed in by_task for name, compute in listed.items()}


def _of_task(name: str, problem: Problem, plan: TrainingPlan, prompts: int, seed: int) -> Tasks:
    """Return the parts for one learning task; shared results are computed on demand, once per process."""
    course = cache(partial(Course.draw, problem, plan, key=keys_by_task(seed, "episodes")[name]))

    @cache
    def path() -> InfinitePath:
        return train_infinite_path(course(), plan)

    return {
        **training_tasks(name, course, plan, key=keys_by_task(seed, "training")[name]),
        **checkpoint_tasks(name, course, path, plan, prompts, key=keys_by_task(seed, "checkpoints")[name]),
    }
