"""The state evolution at the settings of the chapter: its iterations, its ends and their free entropies."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

from chapters.message_passing.evolution import FixedPoint, fixed_point, state_evolution
from chapters.message_passing.settings import COMPARED, HARD, HARD_ALPHAS, STARTS, Setting
from companion import Column

# Risks that differ by more belong to different ends; on the grid no difference is between 1e-6 and this value.
DIFFERENT = 0.01
# An end whose risk has a larger standard error is computed again on more quasi-random points: near a hard phase.
LARGEST_ERROR, MORE_POINTS = 5e-4, 16_384
# Sample ratios of the curves at the compared settings: those of the runs, and three between neighbours.
CURVE = tuple(round(2 ** (step / 4), 3) for step in range(13))

# Columns of the figures: a risk with its error, and the ends of the state evolution from both starts.
RISK_COLUMNS = {
    "risk": Column("Excess risk; the output 0 has risk 1", std_error="std_error"),
    "std_error": Column("Standard error: of the quasi-random average, or over runs", moves_with="risk"),
}
ENDS_COLUMNS = {
    "start": Column("`uninformed`: no information; `informed`: at or close to the truth", "name"),
    "alpha": Column("Sample ratio $α = n/D$"),
    **RISK_COLUMNS,
    "two": Column("Whether the two starts of the evolution have different ends", "yes or no"),
    "hard": Column("Whether the phase is hard: two ends, and the informed one is Bayes-optimal", "yes or no"),
}


class Measured(NamedTuple):
    """A value and its standard error, of the quasi-random average or over runs."""

    value: float
    std_error: float

    def away(self, other: "Measured") -> float:
        """Return the difference from `other`, in combined standard errors."""
        return (self.value - other.value) / float(np.hypot(self.std_error, other.std_error))


class Ends(NamedTuple):
    """Risks and free entropies at the ends of the evolution from both starts, at one sample ratio."""

    uninformed: Measured
    informed: Measured
    entropies: tuple[float, float]

    @property
    def gap(self) -> Measured:
        """Return the risk at the uninformed end minus that at the informed end."""
        error = np.hypot(self.uninformed.std_error, self.informed.std_error)
        return Measured(self.uninformed.value - self.informed.value, float(error))

    @property
    def two(self) -> bool:
        """Whether the two ends differ."""
        return abs(self.gap.value) > DIFFERENT

    @property
    def hard(self) -> bool:
        """Whether message passing misses the end of the Bayes-optimal estimator."""
        uninformed, informed = self.entropies
        return self.two and informed > uninformed


def solve_state_evolution(
    setting: Setting, alpha: float, iterations: int
) -> Mapping[str, Float[np.ndarray, " iterations"]]:
    """Return the risk after each iteration, by start."""
    evolution = {"noise_std": setting.noise_std, "alpha": alpha, "iterations": iterations}
    return {
        start: np.asarray(state_evolution(setting.task, start_overlap=known, **evolution).risk)
        for start, known in STARTS.items()
    }


def ends_rows(ends: Mapping[float, Ends]) -> list[tuple[str, float, float, float, bool, bool]]:
    """Return the rows of `ENDS_COLUMNS`, two per sample ratio."""
    return [
        (start, alpha, *getattr(both, start), both.two, both.hard) for alpha, both in ends.items() for start in STARTS
    ]


def solve_ends(setting: Setting, alphas: Iterable[float]) -> dict[float, Ends]:
    """Return both ends at each sample ratio."""
    found = {}
    for alpha in map(float, alphas):
        first, second = (_end(setting, alpha, start) for start in STARTS)
        found[alpha] = Ends(_risk(first), _risk(second), (float(first.free_entropy), float(second.free_entropy)))
    return found


def _end(setting: Setting, alpha: float, start: str) -> FixedPoint:
    """Return the fixed point from a start."""
    how = {"noise_std": setting.noise_std, "alpha": alpha, "start_overlap": STARTS[start]}
    end = fixed_point(setting.task, **how)
    if end.std_error > LARGEST_ERROR:
        end = fixed_point(setting.task, **how, points=MORE_POINTS)
    return end


def _risk(point: FixedPoint) -> Measured:
    return Measured(float(point.end.risk), float(point.std_error))


def solve_hard_ends(ratios: int) -> dict[float, Ends]:
    """Return both ends in the setting with a hard phase, at `ratios` sample ratios and those of the runs."""
    between = np.linspace(HARD_ALPHAS[0], HARD_ALPHAS[-1], ratios).round(3).tolist()
    return solve_ends(HARD, sorted({*between, *HARD_ALPHAS}))


def solve_noisy_ends() -> dict[float, Ends]:
    """Return both ends at the noise of the compared settings and the middle sample ratios of the runs."""
    return solve_ends(Setting(HARD.length, HARD.snr, COMPARED[0].noise_std), HARD_ALPHAS[2:5])


def solve_best_risks(alphas: Iterable[float] = CURVE) -> dict[tuple[Setting, float], Measured]:
    """Return the Bayes-optimal risk at the compared settings, at each sample ratio."""
    ratios = sorted({float(alpha) for alpha in alphas})
    return {(setting, alpha): _risk(_end(setting, alpha, "uninformed")) for setting in COMPARED for alpha in ratios}


def has_two_ends(phases: pd.DataFrame) -> pd.Series:
    """Return at which points of the grid the two starts have different ends."""
    return (phases["risk_uninformed"] - phases["risk_informed"]).abs() > DIFFERENT


def is_hard(phases: pd.DataFrame) -> pd.Series:
    """Return at which points of the grid message passing misses the end of the best estimator."""
    return has_two_ends(phases) & (phases["free_entropy_informed"] > phases["free_entropy_uninformed"])


def widths(phases: pd.DataFrame) -> pd.DataFrame:
    """Return the range of hard sample ratios per length, noise and signal strength; NaN if there is none."""
    cells = phases.assign(two=has_two_ends(phases), hard=phases["alpha"].where(is_hard(phases)))
    edges = cells.groupby(["length", "noise_std", "snr"]).agg(
        lowest=("hard", "min"), highest=("hard", "max"), two=("two", "sum")
    )
    return edges.reset_index()
