"""Progress of a build, and its remaining time estimated from the durations of the last runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from companion.project import provenance
from companion.project.paths import Project

# How a line of a build begins that says what runs, and what has ended.
STARTED, DONE = "▸", "✓"


def known_seconds(project: Project, profile: str, names: Iterable[str]) -> dict[str, float | None]:
    """How long each notebook took when it was last run here; None where it was not."""
    origins = {name: provenance.read(project.build(profile).provenance / f"{name}.json") for name in names}
    return {name: origin["seconds"] if origin else None for name, origin in origins.items()}


def time_needed(seconds: Iterable[float | None], cores: int) -> str:
    """In words, for runs on so many cores that take these seconds; nothing if there is none, or one not known."""
    each = list(seconds)
    known = [value for value in each if value is not None]
    if not known or len(known) < len(each):
        return ""
    total = max(sum(known) / cores, *known)
    if total < 60:
        return f"about {max(round(total), 1)} s"
    return f"about {round(total / 60)} min" if total < 5400 else f"about {total / 3600:.1f} h"


@dataclass
class Progress:
    """Reads the output of a build and adds the progress to each line that reports a finished notebook."""

    seconds: Mapping[str, float | None]
    cores: int
    _started: dict[str, float] = field(default_factory=dict)
    _ended: set[str] = field(default_factory=set)

    def told(self, line: str, now: float) -> str:
        """`line`, which was said at second `now`, with what it means for the rest."""
        mark, _, rest = line.partition(" ")
        name = rest.split(" ")[0].removesuffix(":")
        if name not in self.seconds:
            return line
        if mark == STARTED:
            self._started[name] = now
        if mark != DONE:
            return line
        self._ended.add(name)
        left = time_needed((self._left(name, now) for name in self.seconds if name not in self._ended), self.cores)
        return f"{line} — {len(self._ended)} of {len(self.seconds)}{f', {left} left' if left else ''}"

    def _left(self, name: str, now: float) -> float | None:
        took = self.seconds[name]
        return None if took is None else max(took - (now - self._started.get(name, now)), 0.0)
