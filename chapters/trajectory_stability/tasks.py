"""The expensive parts of the chapter by name, so that other processes and machines can compute them.

The parameter `tasks` lists tasks of in-context learning; the function `tasks` lists parts of the computation.
"""

from functools import cache, partial

from chapters.trajectory_stability.checkpoints import checkpoint_tasks
from chapters.trajectory_stability.problems import Keys, Problem, keys, problems_of
from chapters.trajectory_stability.trajectories import (
    Course,
    InfinitePath,
    TrainingPlan,
    follow_law,
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
    plan, random_keys = TrainingPlan(tuple(lengths), episodes, steps, step_size, runs, lengths_per_group), keys(seed)
    by_task = [_of_task(name, problem, plan, prompts, random_keys) for name, problem in problems_of(tasks).items()]
    return {name: compute for listed in by_task for name, compute in listed.items()}


def _of_task(name: str, problem: Problem, plan: TrainingPlan, prompts: int, random_keys: Keys) -> Tasks:
    """Return the parts for one learning task; shared results are computed on demand, once per process."""
    course = cache(partial(Course.draw, problem, plan, key=random_keys.episodes[name]))

    @cache
    def path() -> InfinitePath:
        return follow_law(course(), plan)

    return {
        **training_tasks(name, course, plan, key=random_keys.training[name]),
        **checkpoint_tasks(name, course, path, plan, prompts, key=random_keys.checkpoints[name]),
    }
