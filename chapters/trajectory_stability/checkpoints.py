"""Three stops on the trajectory of infinite prompts, and the error of one prompt's gradient there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import jax
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from chapters.trajectory_stability.programs import keys_at, read_prompts
from chapters.trajectory_stability.scenes import ByTask, file_name
from chapters.trajectory_stability.trajectories import Course, InfinitePath, Plan
from companion import gather
from companion.pieces import Arrays, Pieces


@dataclass(frozen=True)
class GradientErrors:
    """`‖∇ of one prompt's loss - that of its law‖²` at the stops, on fresh episodes, a prompt each."""

    lengths: tuple[int, ...]
    squared_gaps: Float[np.ndarray, "prompts 3 k"]


def stops(path: InfinitePath) -> Float[np.ndarray, "3 p"]:
    """θ_∞ at the start, half-way and at the end."""
    steps = len(path.times) - 1
    return path.heads[[0, steps // 2, steps]]


def gradient_errors(
    courses: Mapping[str, Course], infinite: Mapping[str, InfinitePath], plan: Plan, prompts: int, *, keys: ByTask
) -> dict[str, GradientErrors]:
    """By task: the error of the gradient at the stops, of as many fresh prompts as asked for."""
    return {
        name: _all_lengths(name, course, infinite[name], plan, prompts, key=keys[name])
        for name, course in courses.items()
    }


def _all_lengths(
    name: str, course: Course, path: InfinitePath, plan: Plan, prompts: int, *, key: PRNGKeyArray
) -> GradientErrors:
    parts = gather(checkpoint_pieces(name, lambda: course, lambda: path, plan, prompts, key=key))
    return GradientErrors(plan.lengths, np.concatenate([part["gaps"] for part in parts], axis=-1))


def checkpoint_pieces(
    name: str,
    course: Callable[[], Course],
    path: Callable[[], InfinitePath],
    plan: Plan,
    prompts: int,
    *,
    key: PRNGKeyArray,
) -> Pieces:
    """A group of lengths each. Course and path are asked for by the pieces: to list them costs nothing."""
    return {
        f"{file_name(name)}-checkpoints-from-{plan.lengths[group.start]}": partial(
            _squared_gaps, course, path, plan, prompts, group, key=key
        )
        for group in plan.groups
    }


def _squared_gaps(
    ask: Callable[[], Course],
    ask_path: Callable[[], InfinitePath],
    plan: Plan,
    prompts: int,
    group: slice,
    *,
    key: PRNGKeyArray,
) -> Arrays:
    course, heads = ask(), stops(ask_path())
    size, lengths = plan.episodes, plan.lengths[group]
    batches = [_batch_of_gaps(course, heads, np.arange(i, i + size), lengths, key=key) for i in range(0, prompts, size)]
    return {"gaps": np.concatenate(batches)[:prompts]}


def _batch_of_gaps(
    course: Course,
    stopped: Float[np.ndarray, "3 p"],
    indices: Int[np.ndarray, " n"],
    lengths: tuple[int, ...],
    *,
    key: PRNGKeyArray,
) -> Float[np.ndarray, "n 3 k"]:
    loss, mine = course.scene.task.loss, keys_at(key, indices)
    episodes = course.programs.episodes(_keys_of(mine, 0))
    tokens = course.programs.tokens(episodes, _keys_of(mine, 1))
    limits = course.programs.read_laws(stopped, episodes)[1]
    gaps = []
    for checkpoint, limit in zip(stopped, np.moveaxis(limits, 1, 0), strict=True):
        heads = np.tile(checkpoint, (len(lengths), 1))
        slopes = read_prompts(loss, lengths, heads, tokens, (episodes.query, episodes.target))[1]
        gaps.append(np.sum((np.asarray(slopes) - limit[:, None]) ** 2, axis=-1))
    return np.stack(gaps, axis=1)


def _keys_of(many: Key[Array, " n"], purpose: int) -> Key[Array, " n"]:
    """From each key the one for this purpose."""
    return jax.vmap(lambda key: jr.fold_in(key, purpose))(many)
