"""The heavy parts of the chapter by name, for other processes and machines."""

from functools import cache, partial

from chapters.trajectory_stability.checkpoints import checkpoint_pieces
from chapters.trajectory_stability.problems import Keys, Problem, keys, problems_of
from chapters.trajectory_stability.trajectories import (
    Course,
    InfinitePath,
    TrainingPlan,
    follow_law,
    training_pieces,
)
from companion.authoring.tasks import Pieces


def pieces(
    *,
    seed: int,
    tasks: list[str],
    lengths: list[int],
    episodes: int,
    steps: int,
    step_size: float,
    runs: int,
    prompts: int,
    piece_lengths: int,
) -> Pieces:
    """Trainings by task, run and group of lengths; errors of gradients by task and group of lengths."""
    plan, of_tasks = TrainingPlan(tuple(lengths), episodes, steps, step_size, runs, piece_lengths), keys(seed)
    by_task = [_of_task(name, problem, plan, prompts, of_tasks) for name, problem in problems_of(tasks).items()]
    return {name: compute for listed in by_task for name, compute in listed.items()}


def _of_task(name: str, problem: Problem, plan: TrainingPlan, prompts: int, of_tasks: Keys) -> Pieces:
    """What the pieces of a task share, each of them computes when it is asked for, once a process."""
    course = cache(partial(Course.draw, problem, plan, key=of_tasks.episodes[name]))

    @cache
    def path() -> InfinitePath:
        return follow_law(course(), plan)

    return {
        **training_pieces(name, course, plan, key=of_tasks.training[name]),
        **checkpoint_pieces(name, course, path, plan, prompts, key=of_tasks.checkpoints[name]),
    }
