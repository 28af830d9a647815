"""The states of all figures and of the site, for `companion list`."""

from pathlib import Path
from typing import Any

from companion.build import cache_keys, publication_policy
from companion.build.cache_keys import AnyTarget, Site
from companion.build.run_spec import Target, pictures_of
from companion.figures import store
from companion.project import provenance
from companion.project.paths import DEFAULT_PROFILE, Project

FRESH, REDRAW, STALE, PUBLISHED, NOT_BUILT = "fresh", "redraw", "stale", "published", "not built"


def listing(project: Project, profile: str) -> dict[str, Any]:
    """Return the present states of all figures of a profile and of the site, as JSON for other programs.

    The row of a figure has its state, the seconds its notebook took, its number of claims, and how many of them hold;
    None if that is not known.
    """
    stamps = cache_keys.stamps(project, profile)
    targets = [target for name in project.notebooks() for target in pictures_of(project, name)]
    rows = [_row(project, profile, stamps, target) for target in targets]
    return {"profile": profile, "figures": rows, "site": _site(project, profile, stamps[Site.BUILT])}


def _row(project: Project, profile: str, stamps: dict[AnyTarget, Path], target: Target) -> dict[str, Any]:
    name, figure, build = target.notebook, target.figure or "", project.build(profile)
    state = _state(project, profile, stamps, target)
    folder = project.published / name if state == PUBLISHED else build.figures / name
    claims = None if store.faults(folder, figure) else store.read_record(folder, figure).claims
    origin = provenance.read(build.provenance / f"{name}.json")
    return {
        "notebook": name,
        "figure": figure,
        "state": state,
        "seconds": origin["seconds"] if origin else None,
        "claims": None if claims is None else len(claims),
        "holding": None if claims is None else sum(claim.holds for claim in claims),
    }


def _state(project: Project, profile: str, stamps: dict[AnyTarget, Path], target: Target) -> str:
    name, figure = target.notebook, target.figure or ""
    if cache_keys.intact(project, stamps[Target(name)]):
        return FRESH if cache_keys.intact(project, stamps[target]) else REDRAW
    was_run = (project.build(profile).executed / f"{name}.ipynb").is_file()
    if profile == DEFAULT_PROFILE and not was_run and not publication_policy.departures(project, name, figure):
        return PUBLISHED
    return STALE


def _site(project: Project, profile: str, stamp: Path) -> str:
    if cache_keys.intact(project, stamp):
        return FRESH
    if profile == DEFAULT_PROFILE and cache_keys.is_fresh(project, Site.PUBLISHED, profile):
        return PUBLISHED
    return STALE if (project.site(profile) / "index.html").is_file() else NOT_BUILT
