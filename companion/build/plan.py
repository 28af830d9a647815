"""What a build would do, and why: `companion build --dry-run`. Nothing is run, nothing is written."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from companion.build import cache_keys, publication_policy
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Project

RUN, DRAW, BUILD, PUT_BACK = "run", "draw", "build", "put back"
# Longer lists of names, and longer values, bury what they are there to tell.
MANY, LONG = 3, 40

# What has names, and what has none.
NAMED = {
    "sources": "code of",
    "data": "data:",
    "notebooks": "numbers of",
    "pictures": "pictures:",
    "pages": "pages:",
    "machine": "companion:",
    "computing": "version of",
    "drawing": "version of",
}
WORDS = NAMED | {
    "parameters": "parameters",
    "cells": "code in its cells",
    "computing": "versions of the packages that compute",
    "drawing": "versions of the packages that draw",
    "context": "the context that all is computed in",
    "numbers": "its numbers",
    "picture": "its `draw`, its caption or the style",
    "live": "which figures that move stand under others",
    "api": "which packages are explained",
}


@dataclass(frozen=True)
class Step:
    """One thing to do, and why."""

    verb: str
    what: str
    why: list[str]


def plan(project: Project, profile: str, *, site: bool) -> list[Step]:
    """What `companion build` would do, in its order; empty if all is fresh. The `site` is left out on request."""
    content = cache_keys.all_made_of(project, profile)
    why = {target: _why(project, profile, target, made_of) for target, made_of in content.items()}
    steps = []
    for name in project.notebooks():
        figures = Notebook.named(project, name).figures
        if why[name]:
            steps.append(Step(RUN, name, why[name]))
            continue
        drawn = [Step(DRAW, f"{name}/{figure}", why[cache_keys.picture_target(name, figure)]) for figure in figures]
        drawn = [step for step in drawn if step.why]
        steps += drawn
        if not drawn and profile == DEFAULT_PROFILE:
            replaced, dropped = publication_policy.differing(project, name)
            if other := [*replaced, *dropped]:
                steps.append(Step(PUT_BACK, f"figures/{name}", [f"{_some(other)} there is not what was built"]))
    if site and why[cache_keys.BOOK]:
        steps.append(Step(BUILD, "the site", why[cache_keys.BOOK]))
    return steps


def _why(project: Project, profile: str, target: str, content: dict[str, Any]) -> list[str]:
    """Why `target`, which is made of `content`, is to be built; empty if it is fresh."""
    build = project.build(profile)
    stamp = cache_keys.stamp_of(project, target, profile, content)
    if cache_keys.intact(project, stamp):
        return []
    if altered := cache_keys.altered(project, stamp):
        return [f"{_some(altered)} was altered or removed"]
    before = cache_keys.remembered(build, target)
    if before is None:
        there = (
            project.site(profile) if target == cache_keys.BOOK else build.executed / f"{target.partition('-')[0]}.ipynb"
        )
        return ["what it is made of changed" if there.exists() else "it was not built yet"]
    # what is remembered has been through JSON
    return list(_changes(before, json.loads(json.dumps(content)))) or ["its last results are gone"]


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """What is other `now`, a sentence's end a part."""
    for part in now:
        old, new = before.get(part), now[part]
        if old == new:
            continue
        if part == "parameters" and isinstance(old, dict):
            yield from (f"parameter {name}{_values(old, new, name)}" for name in _differing(old, new))
        elif isinstance(old, dict) and part in NAMED:
            yield f"{NAMED[part]} {_some(_differing(old, new))}"
        else:
            yield WORDS[part]


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The names that are new, gone, or stand for something else."""
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name) or name not in old)


def _values(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> str:
    """` (1 → 2)`; nothing if that is long."""
    words = f" ({old.get(name, 'none')} → {new.get(name, 'none')})"
    return words if len(words) <= LONG else ""


def _some(names: list[str]) -> str:
    """The first few, and how many more."""
    more = f" and {len(names) - MANY} more" if len(names) > MANY else ""
    return ", ".join(names[:MANY]) + more
