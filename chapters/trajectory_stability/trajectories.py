"""Gradient descent on infinite prompts, and gradient descent on finite prompts.

Both use the same episodes and take the same steps from the same head. They differ only in the prompt: the distribution
of the tokens, or new samples from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import jax.random as jr
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from chapters.trajectory_stability.prediction_tasks import Episode
from chapters.trajectory_stability.problems import ByTask, Problem, file_name, problems_of
from chapters.trajectory_stability.programs import Programs, as_flat, keys_at, read_prompts
from companion import gather
from companion.authoring.tasks import Arrays, Tasks


@dataclass(frozen=True)
class TrainingPlan:
    """The parameters of all trainings."""

    lengths: tuple[int, ...]
    episodes: int
    steps: int
    step_size: float
    runs: int
    lengths_per_group: int

    @property
    def groups(self) -> list[slice]:
        """Return the groups of lengths that are computed together, as slices of `lengths`."""
        return [slice(i, i + self.lengths_per_group) for i in range(0, len(self.lengths), self.lengths_per_group)]

    @property
    def times(self) -> Float[np.ndarray, " t"]:
        """Return the training times: step size times the number of steps, from 0 on."""
        return self.step_size * np.arange(self.steps + 1)


@dataclass(frozen=True)
class Course:
    """The start, the episodes and the compiled programs that all trainings of one task share."""

    problem: Problem
    programs: Programs
    episodes: Episode

    @classmethod
    def draw(cls, problem: Problem, plan: TrainingPlan, *, key: PRNGKeyArray) -> "Course":
        """Draw the episodes, number i from the key folded with i."""
        programs = Programs(problem.task, max(plan.lengths))
        return cls(problem, programs, programs.episodes(keys_at(key, np.arange(plan.episodes))))


@dataclass(frozen=True)
class InfinitePath:
    """Gradient descent on the mean loss on infinite prompts, R_∞ of the shared episodes."""

    times: Float[np.ndarray, " t"]
    heads: Float[np.ndarray, "t p"]
    risks: Float[np.ndarray, " t"]
    slopes: Float[np.ndarray, "t p"]


@dataclass(frozen=True)
class FinitePaths:
    """Gradient descent on new prompts at every step; risks and slopes are those of the drawn prompts."""

    lengths: tuple[int, ...]
    heads: Float[np.ndarray, "runs t k p"]
    risks: Float[np.ndarray, "runs t k"]
    slopes: Float[np.ndarray, "runs t k p"]


def simulate_courses(tasks: list[str], plan: TrainingPlan, *, keys: ByTask) -> dict[str, Course]:
    """Draw the episodes of the chosen tasks and of the control."""
    return {name: Course.draw(problem, plan, key=keys[name]) for name, problem in problems_of(tasks).items()}


# --- infinite prompts -------------------------------------------------------------------------------------


def train_infinite_paths(courses: Mapping[str, Course], plan: TrainingPlan) -> dict[str, InfinitePath]:
    """Train on infinite prompts; return the paths by task."""
    return {name: train_infinite_path(course, plan) for name, course in courses.items()}


def train_infinite_path(course: Course, plan: TrainingPlan) -> InfinitePath:
    """Train on infinite prompts for one task; only the episodes are random."""
    head, path = as_flat(course.problem.start), []
    for _ in plan.times:
        values, slopes = course.programs.read_laws(head[None], course.episodes)
        slope = slopes[0].mean(axis=0)
        path.append((head, values.mean(), slope))
        head = head - plan.step_size * slope
    return InfinitePath(plan.times, *map(np.stack, zip(*path, strict=True)))


# --- finite prompts ---------------------------------------------------------------------------------------


def train_finite_paths(courses: Mapping[str, Course], plan: TrainingPlan, *, keys: ByTask) -> dict[str, FinitePaths]:
    """Train on new prompts at every step; return the paths of all runs and lengths by task."""
    return {name: _all_runs(name, course, plan, key=keys[name]) for name, course in courses.items()}


def _all_runs(name: str, course: Course, plan: TrainingPlan, *, key: PRNGKeyArray) -> FinitePaths:
    paths = iter(gather(training_tasks(name, lambda: course, plan, key=key)))
    runs = [[next(paths) for _ in plan.groups] for _ in range(plan.runs)]

    def whole(part: str) -> np.ndarray:
        return np.stack([np.concatenate([path[part] for path in run], axis=1) for run in runs])

    return FinitePaths(plan.lengths, whole("heads"), whole("risks"), whole("slopes"))


def training_tasks(name: str, course: Callable[[], Course], plan: TrainingPlan, *, key: PRNGKeyArray) -> Tasks:
    """Return one training per run and group of lengths, which calls `course` only when it runs."""
    return {
        f"{file_name(name)}-run-{run}-from-{plan.lengths[group.start]}": partial(
            _one_run, course, plan, run, group, key=key
        )
        for run in range(plan.runs)
        for group in plan.groups
    }


def _one_run(ask: Callable[[], Course], plan: TrainingPlan, run: int, group: slice, *, key: PRNGKeyArray) -> Arrays:
    """Train one run: prompt i of step t has the key folded with run, t and i; all lengths share its first tokens."""
    course, path = ask(), []
    lengths, key = plan.lengths[group], jr.fold_in(key, run)
    asked = course.episodes.query, course.episodes.target
    heads = np.tile(as_flat(course.problem.start), (len(lengths), 1))
    for step in range(plan.steps + 1):
        drawn = keys_at(jr.fold_in(key, step), np.arange(plan.episodes))
        tokens = course.programs.tokens(course.episodes, drawn)
        values, slopes = read_prompts(course.problem.task.loss, lengths, heads, tokens, asked)
        mean_slopes = np.mean(slopes, axis=0)
        path.append((heads, np.mean(values, axis=0), mean_slopes))
        heads = heads - plan.step_size * mean_slopes
    return dict(zip(("heads", "risks", "slopes"), map(np.stack, zip(*path, strict=True)), strict=True))


def parameter_gaps(infinite: InfinitePath, finite: FinitePaths) -> Float[np.ndarray, "runs t k"]:
    """Return `‖θ_L(t) - θ_∞(t)‖`."""
    return np.linalg.norm(finite.heads - infinite.heads[:, None], axis=-1)
