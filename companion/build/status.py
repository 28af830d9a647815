"""What `companion list` says: of every figure and of the site, in which state it is."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from companion.build import cache_keys, publication_policy
from companion.figures import store
from companion.project import provenance
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Project

FRESH, REDRAW, STALE, PUBLISHED, NOT_BUILT = "fresh", "redraw", "stale", "published", "not built"


@dataclass(frozen=True)
class Row:
    """A figure: its state, the seconds its notebook took, how many of its claims hold. None is what is not known."""

    notebook: str
    figure: str
    state: str
    seconds: float | None
    claims: int | None
    holding: int | None


@dataclass(frozen=True)
class Listing:
    """Every figure of a profile, and the site."""

    profile: str
    rows: list[Row]
    site: str

    @classmethod
    def of(cls, project: Project, profile: str) -> "Listing":
        """The states as they are now."""
        stamps = cache_keys.stamps(project, profile)
        rows = [
            _row(project, profile, stamps, name, figure)
            for name in project.notebooks()
            for figure in Notebook.named(project, name).figures
        ]
        return cls(profile, rows, _site(project, profile, stamps[cache_keys.BOOK]))

    def as_json(self) -> dict[str, Any]:
        """The same for other programs."""
        return {"profile": self.profile, "figures": [asdict(row) for row in self.rows], "site": self.site}


def _row(project: Project, profile: str, stamps: dict[str, Path], name: str, figure: str) -> Row:
    build = project.build(profile)
    state = _state(project, profile, stamps, name, figure)
    folder = project.published / name if state == PUBLISHED else build.figures / name
    claims = None if store.faults(folder, figure) else store.read_record(folder, figure).claims
    origin = provenance.read(build.provenance / f"{name}.json")
    return Row(
        name,
        figure,
        state,
        origin["seconds"] if origin else None,
        None if claims is None else len(claims),
        None if claims is None else sum(claim.holds for claim in claims),
    )


def _state(project: Project, profile: str, stamps: dict[str, Path], name: str, figure: str) -> str:
    if cache_keys.intact(project, stamps[name]):
        drawn = cache_keys.intact(project, stamps[cache_keys.picture_target(name, figure)])
        return FRESH if drawn else REDRAW
    never_here = not (project.build(profile).executed / f"{name}.ipynb").is_file()
    if profile == DEFAULT_PROFILE and never_here and not publication_policy.departures(project, name, figure):
        return PUBLISHED
    return STALE


def _site(project: Project, profile: str, stamp: Path) -> str:
    if cache_keys.intact(project, stamp):
        return FRESH
    if profile == DEFAULT_PROFILE:
        content = cache_keys.published_book(project)
        if cache_keys.intact(project, cache_keys.stamp_of(project, cache_keys.PUBLISHED_BOOK, profile, content)):
            return PUBLISHED
    return STALE if (project.site(profile) / "index.html").is_file() else NOT_BUILT
