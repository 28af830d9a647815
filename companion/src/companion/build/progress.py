"""The progress of a build, with the remaining time estimated from earlier durations and from those of this build.

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
    """Return the duration of the last run of each notebook on this machine, or else its core seconds elsewhere.

    It is None for a notebook of which neither is known.
    """
    elsewhere = {name: cost.seconds for name, cost in costs.read(project, profile).items()}
    origins = {name: provenance.read(project.build(profile).provenance / f"{name}.json") for name in names}
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
    """The progress of steps of a build, `cores` at a time.

    `seconds` contains the expected durations of the steps. They are scaled by the durations of the steps that ended, so
    that steps of equal duration may have any expected one.
    """

    seconds: Mapping[str, float | None]
    cores: int
    _started: dict[str, float] = field(default_factory=dict[str, float])
    _measured: dict[str, float] = field(default_factory=dict[str, float])

    def start(self, name: str, now: float) -> None:
        """Note that a step started at second `now`."""
        self._started[name] = now

    def end(self, name: str, now: float) -> str:
        """Note that a step ended at second `now`, and return the progress in words."""
        self._measured[name] = now - self._started[name]
        scale = self._scale()
        left = (self._left(name, now, scale) for name in self.seconds if name not in self._measured)
        remaining = time_needed(left, self.cores)
        return f"{len(self._measured)} of {len(self.seconds)}{f', {remaining} left' if remaining else ''}"

    def _scale(self) -> float:
        """Return the measured duration of the ended steps divided by the expected one."""
        expected = {name: seconds for name in self._measured if (seconds := self.seconds.get(name))}
        return sum(self._measured[name] for name in expected) / sum(expected.values()) if expected else 1.0

    def _left(self, name: str, now: float, scale: float) -> float | None:
        expected = self.seconds[name]
        return None if expected is None else max(scale * expected - (now - self._started.get(name, now)), 0.0)
