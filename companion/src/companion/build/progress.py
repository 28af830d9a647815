"""The progress of a build, with the remaining time estimated from the durations of the last runs.

Notebooks that were never run on this machine are expected to take as long as in the book's table of costs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from companion.project import costs, provenance
from companion.project.paths import Project

# The first characters of the lines that report a started and a finished step.
STARTED, DONE = "▸", "✓"
# The environment variable with the arguments of `Progress` as JSON, the prefix of the rules that run a notebook, and
# the rule that computes a task.
KNOWN, RULE, TASK = "COMPANION_PROGRESS", "notebook_", "task"


def known_seconds(project: Project, profile: str, names: Iterable[str]) -> dict[str, float | None]:
    """Return the duration of the last run of each notebook, or else its core seconds elsewhere.

    It is None for a notebook of which neither is known.
    """
    origins = {name: provenance.read(project.build(profile).provenance / f"{name}.json") for name in names}
    elsewhere = {name: cost.seconds for name, cost in costs.read(project, profile).items()}
    return {name: origin["seconds"] if origin else elsewhere.get(name) for name, origin in origins.items()}


def time_needed(seconds: Iterable[float | None], cores: int) -> str:
    """Return in words how long runs of these durations take; empty without runs, or if a duration is unknown."""
    durations = list(seconds)
    known = [duration for duration in durations if duration is not None]
    if not known or len(known) < len(durations):
        return ""
    total = max(sum(known) / cores, *known)
    if total < 60:
        return f"about {max(round(total), 1)} s"
    return f"about {round(total / 60)} min" if total < 5400 else f"about {total / 3600:.1f} h"


@dataclass
class Progress:
    """The progress of a build that runs the notebooks in `seconds`, which contains their expected durations."""

    seconds: Mapping[str, float | None]
    cores: int
    _started: dict[str, float] = field(default_factory=dict[str, float])
    _ended: set[str] = field(default_factory=set[str])

    def start(self, name: str, now: float) -> None:
        """Note that a notebook started at second `now`."""
        self._started[name] = now

    def end(self, name: str, now: float) -> str:
        """Note that a notebook ended at second `now`, and return the progress in words."""
        self._ended.add(name)
        remaining = time_needed((self._left(name, now) for name in self.seconds if name not in self._ended), self.cores)
        return f"{len(self._ended)} of {len(self.seconds)}{f', {remaining} left' if remaining else ''}"

    def _left(self, name: str, now: float) -> float | None:
        duration = self.seconds[name]
        return None if duration is None else max(duration - (now - self._started.get(name, now)), 0.0)


@dataclass
class TaskProgress:
    """The progress of the tasks of a build, whose durations are not known before: `total` tasks on `cores` cores."""

    total: int
    cores: int
    _started: dict[int, float] = field(default_factory=dict[int, float])
    _seconds: list[float] = field(default_factory=list[float])

    def start(self, job: int, now: float) -> None:
        """Note that a task started at second `now`, as the job of this number."""
        self._started[job] = now

    def end(self, job: int, now: float) -> str:
        """Note that it ended at second `now`, and return the progress in words."""
        self._seconds.append(now - self._started[job])
        left = self.total - len(self._seconds)
        mean = sum(self._seconds) / len(self._seconds)
        remaining = time_needed([mean] * left, self.cores)
        return f"{len(self._seconds)} of {self.total}{f', {remaining} left' if remaining else ''}"
