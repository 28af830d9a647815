"""The distance between the two trajectories, and the terms of Grönwall's envelope of it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from chapters.trajectory_stability.problems import sub_gaussian
from chapters.trajectory_stability.trajectories import Course, FinitePaths, InfinitePath, parameter_gaps
from lib.statistics import standard_error

# Step of central differences of the gradient, in double precision.
DIFFERENCE = 1e-4


@dataclass(frozen=True)
class Envelope:
    """Distances of the runs from the infinite path, and of this path from zero, for one task from the first step on."""

    times: Float[np.ndarray, " t"]
    lengths: tuple[int, ...]
    gaps: Float[np.ndarray, "runs t k"]
    from_zero: Float[np.ndarray, " t"]
    prompt_noise: Float[np.ndarray, " k"]
    curvature: float

    @property
    def distance(self) -> Float[np.ndarray, "t k"]:
        """Return the root mean square over runs of the distance."""
        return _root_mean_square(self.gaps)

    @property
    def std_error(self) -> Float[np.ndarray, "t k"]:
        """Return the standard error of the distance, from the runs."""
        return np.asarray(standard_error(self.gaps**2)) / (2 * self.distance)

    def step_at(self, unit: float) -> int:
        """Return the first step at which `βt` has reached `unit`, or the last step; never the first one."""
        return int(np.clip(np.searchsorted(self.curvature * self.times, unit), 1, len(self.times) - 1))

    @property
    def bound(self) -> Float[np.ndarray, "t k"]:
        """Return `g(L) t e^{βt}`."""
        times = self.times[:, None]
        return self.prompt_noise * times * np.exp(self.curvature * times)


def solve_envelopes(
    courses: Mapping[str, Course], infinite: Mapping[str, InfinitePath], finite: Mapping[str, FinitePaths]
) -> dict[str, Envelope]:
    """Return the envelopes by sub-Gaussian task: g(L) from drawn prompts, β from heads between the trajectories."""
    return {
        name: Envelope(
            infinite[name].times[1:],
            finite[name].lengths,
            parameter_gaps(infinite[name], finite[name])[:, 1:],
            np.linalg.norm(infinite[name].heads[1:], axis=-1),
            prompt_noise(course, finite[name]),
            curvature(course, region(infinite[name], finite[name])),
        )
        for name, course in sub_gaussian(courses).items()
    }


def prompt_noise(course: Course, finite: FinitePaths) -> Float[np.ndarray, " k"]:
    """Return g(L): `‖∇R̂_L - ∇R_∞‖` at θ_L(t), root mean square over runs, largest over time."""
    heads = finite.heads
    slopes = course.programs.read_laws(heads.reshape(-1, heads.shape[-1]), course.episodes)[1].mean(axis=1)
    gaps = np.linalg.norm(finite.slopes - slopes.reshape(heads.shape), axis=-1)
    return _root_mean_square(gaps).max(axis=0)


def region(infinite: InfinitePath, finite: FinitePaths) -> Float[np.ndarray, "m p"]:
    """Return heads at which the proof needs β: θ_∞, the farthest finite head, and their mean, at nine times."""
    times = np.linspace(0, len(infinite.times) - 1, 9).round().astype(int)
    centres, heads = infinite.heads[times], np.moveaxis(finite.heads[:, times], 1, 0)
    heads = heads.reshape(len(times), -1, heads.shape[-1])
    farthest = np.argmax(np.linalg.norm(heads - centres[:, None], axis=-1), axis=1)
    far = heads[np.arange(len(times)), farthest]
    return np.concatenate([centres, (centres + far) / 2, far])


def curvature(course: Course, heads: Float[np.ndarray, "m p"]) -> float:
    """Return β: the largest norm of the Hessian of R_∞ at these heads, by central differences."""
    moves = DIFFERENCE * np.eye(heads.shape[1])
    probes = (heads[:, None, None] + np.stack([moves, -moves])).reshape(-1, heads.shape[1])
    slopes = course.programs.read_laws(probes, course.episodes)[1].mean(axis=1)
    up, down = np.moveaxis(slopes.reshape(len(heads), 2, len(moves), -1), 1, 0)
    return float(np.linalg.norm((up - down) / (2 * DIFFERENCE), ord=2, axis=(1, 2)).max())


def _root_mean_square(gaps: Float[np.ndarray, "runs ..."]) -> Float[np.ndarray, "..."]:
    """Return the root mean square over runs."""
    return np.sqrt(np.mean(gaps**2, axis=0))
