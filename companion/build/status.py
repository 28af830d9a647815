"""What `companion list` says: of every figure and of the site, in which state it is."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from companion.build import cache_keys, publication_policy
from companion.figures import store
from companion.project import provenance
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, House

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
    def of(cls, house: House, profile: str) -> "Listing":
        """The states as they are now."""
        stamps = cache_keys.stamps(house, profile)
        rows = [
            _row(house, profile, stamps, name, figure)
            for name in house.notebooks()
            for figure in Notebook.named(house, name).figures
        ]
        return cls(profile, rows, _site(house, profile, stamps[cache_keys.BOOK]))

    def as_json(self) -> dict[str, Any]:
        """The same for other programs."""
        return {"profile": self.profile, "figures": [asdict(row) for row in self.rows], "site": self.site}


def _row(house: House, profile: str, stamps: dict[str, Path], name: str, figure: str) -> Row:
    build = house.build(profile)
    state = _state(house, profile, stamps, name, figure)
    folder = house.published / name if state == PUBLISHED else build.figures / name
    claims = None if store.faults(folder, figure) else store.read_record(folder, figure)["claims"]
    origin = provenance.read(build.provenance / f"{name}.json")
    return Row(
        name,
        figure,
        state,
        origin["seconds"] if origin else None,
        None if claims is None else len(claims),
        None if claims is None else sum(claim["holds"] for claim in claims),
    )


def _state(house: House, profile: str, stamps: dict[str, Path], name: str, figure: str) -> str:
    if cache_keys.intact(house, stamps[name]):
        drawn = cache_keys.intact(house, stamps[cache_keys.picture_target(name, figure)])
        return FRESH if drawn else REDRAW
    never_here = not (house.build(profile).executed / f"{name}.ipynb").is_file()
    if profile == DEFAULT_PROFILE and never_here and not publication_policy.departures(house, name, figure):
        return PUBLISHED
    return STALE


def _site(house: House, profile: str, stamp: Path) -> str:
    if cache_keys.intact(house, stamp):
        return FRESH
    if profile == DEFAULT_PROFILE:
        content = cache_keys.published_book(house)
        if cache_keys.intact(house, cache_keys.stamp_of(house, cache_keys.PUBLISHED_BOOK, profile, content)):
            return PUBLISHED
    return STALE if (house.site(profile) / "index.html").is_file() else NOT_BUILT
