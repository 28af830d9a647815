"""Three checkpoints on the trajectory of infinite prompts: sizes of tilts, and errors of one prompt's gradient."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from chapters.trajectory_stability.problems import DIMENSION, ByTask, file_name
from chapters.trajectory_stability.programs import as_head, keys_at, read_prompts
from chapters.trajectory_stability.trajectories import Course, InfinitePath, TrainingPlan
from companion import gather
from companion.authoring.tasks import Arrays, Tasks
from lib.batching import in_batches

CHECKPOINTS = ("start", "half-way", "end")

# H² at the checkpoints, by task.
Norms = Mapping[str, Float[np.ndarray, " 3"]]


@dataclass(frozen=True)
class GradientErrors:
    """`‖∇ loss of a prompt - ∇ loss of its infinite prompt‖²` at the checkpoints, with one prompt per new episode."""

    lengths: tuple[int, ...]
    squared_gaps: Float[np.ndarray, "prompts 3 k"]


def stops(path: InfinitePath) -> Float[np.ndarray, "3 p"]:
    """Return θ_∞ at the start, half-way and at the end."""
    steps = len(path.times) - 1
    return path.heads[[0, steps // 2, steps]]


def solve_squared_norms(courses: Mapping[str, Course], infinite: Mapping[str, InfinitePath]) -> Norms:
    """Return H² at the checkpoints by task: the largest `‖Γ^{1/2} U Γ_q^{1/2}‖²` over the episodes' Γ, with Γ_q = I."""
    return {name: _squared_norms(course, infinite[name]) for name, course in courses.items()}


def _squared_norms(course: Course, path: InfinitePath) -> Float[np.ndarray, " 3"]:
    covs = course.programs.covariances(course.episodes)
    forms = np.stack([np.asarray(as_head(flat).bilinear)[:, :DIMENSION] for flat in stops(path)])
    scores = np.einsum("cij,nik,ckl->cnjl", forms, covs, forms)
    return np.linalg.eigvalsh(scores)[..., -1].max(axis=1)


def simulate_gradient_errors(
    courses: Mapping[str, Course],
    infinite: Mapping[str, InfinitePath],
    plan: TrainingPlan,
    prompts: int,
    *,
    keys: ByTask,
) -> dict[str, GradientErrors]:
    """Return the errors of the gradient at the checkpoints by task, for this number of new prompts."""
    return {
        name: _all_lengths(name, course, infinite[name], plan, prompts, key=keys[name])
        for name, course in courses.items()
    }


def _all_lengths(
    name: str, course: Course, path: InfinitePath, plan: TrainingPlan, prompts: int, *, key: PRNGKeyArray
) -> GradientErrors:
    parts = gather(checkpoint_tasks(name, lambda: course, lambda: path, plan, prompts, key=key))
    return GradientErrors(plan.lengths, np.concatenate([part["gaps"] for part in parts], axis=-1))


def checkpoint_tasks(
    name: str,
    course: Callable[[], Course],
    path: Callable[[], InfinitePath],
    plan: TrainingPlan,
    prompts: int,
    *,
    key: PRNGKeyArray,
) -> Tasks:
    """Return one computation per group of lengths, which calls `course` and `path` only when it runs."""
    return {
        f"{file_name(name)}-checkpoints-from-{plan.lengths[group.start]}": partial(
            _squared_gaps, course, path, plan, prompts, group, key=key
        )
        for group in plan.groups
    }


def _squared_gaps(
    ask: Callable[[], Course],
    ask_path: Callable[[], InfinitePath],
    plan: TrainingPlan,
    prompts: int,
    group: slice,
    *,
    key: PRNGKeyArray,
) -> Arrays:
    gaps = partial(_batch_of_gaps, ask(), stops(ask_path()), plan.lengths[group], key=key)
    return {"gaps": in_batches(gaps, np.arange(prompts), batch=plan.episodes)}


def _batch_of_gaps(
    course: Course,
    stopped: Float[np.ndarray, "3 p"],
    lengths: tuple[int, ...],
    indices: Int[np.ndarray, " n"],
    *,
    key: PRNGKeyArray,
) -> Float[np.ndarray, "n 3 k"]:
    loss, mine = course.problem.task.loss, keys_at(key, indices)
    episodes = course.programs.episodes(_keys_of(mine, 0))
    tokens = course.programs.tokens(episodes, _keys_of(mine, 1))
    limits = course.programs.read_laws(stopped, episodes)[1]
    gaps = []
    for checkpoint, limit in zip(stopped, limits, strict=True):
        heads = np.tile(checkpoint, (len(lengths), 1))
        slopes = read_prompts(loss, lengths, heads, tokens, (episodes.query, episodes.target))[1]
        gaps.append(np.sum((np.asarray(slopes) - limit[:, None]) ** 2, axis=-1))
    return np.stack(gaps, axis=1)


@jax.jit
def _keys_of(many: Key[Array, " n"], purpose: int) -> Key[Array, " n"]:
    """Return from each key the one for this purpose."""
    return jax.vmap(lambda key: jr.fold_in(key, purpose))(many)
