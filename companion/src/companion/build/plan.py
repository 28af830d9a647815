"""The steps of a build with their reasons, for `companion build --dry-run`. Nothing is run or written."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from companion.build import cache_keys, publication_policy
from companion.build.cache_keys import AnyTarget, Site
from companion.build.run_spec import Target, pictures_of
from companion.project.paths import DEFAULT_PROFILE, Project

# The most names in a list, and the most characters of a value, that a reason shows.
MANY, LONG = 3, 40

# The words of a reason before the names that changed, by part of a key.
NAMED = {
    "sources": "code of",
    "data": "data:",
    "notebooks": "numbers of",
    "pictures": "pictures:",
    "pages": "pages:",
    "settings": "configuration:",
    "machine": "companion:",
    "computing": "version of",
    "drawing": "version of",
}
# The words of a reason without names.
WORDS = NAMED | {
    "parameters": "parameters",
    "cells": "code in its cells",
    "computing": "versions of the packages that compute",
    "drawing": "versions of the packages that draw",
    "context": "the context of the computation",
    "numbers": "its numbers",
    "picture": "its `draw`, its caption or the style",
}


@dataclass(frozen=True)
class Step:
    """One step of a build and its reasons."""

    verb: str
    what: str
    why: list[str]


def plan(project: Project, profile: str, *, site: bool) -> list[Step]:
    """Return the steps of `companion build` in their order, with or without the site; none if all is fresh."""
    content = cache_keys.all_made_of(project, profile)
    reasons = {target: _reasons(project, profile, target, made_of) for target, made_of in content.items()}
    steps = []
    for name in project.notebooks():
        if why := reasons[Target(name)]:
            steps.append(Step("run", name, why))
            continue
        pictures = pictures_of(project, name)
        redrawn = [Step("draw", str(target), reasons[target]) for target in pictures if reasons[target]]
        steps += redrawn
        if not redrawn and profile == DEFAULT_PROFILE and (changes := publication_policy.differing(project, name)):
            names = _some([*changes.replaced, *changes.removed])
            steps.append(Step("put back", f"figures/{name}", [f"{names} differs from what was built"]))
    if site and reasons[Site.BUILT]:
        steps.append(Step("build", "the site", reasons[Site.BUILT]))
    return steps


def _reasons(project: Project, profile: str, target: AnyTarget, content: dict[str, Any]) -> list[str]:
    """Return why `target`, which is made of `content`, is stale; an empty list if it is fresh."""
    build = project.build(profile)
    stamp = cache_keys.stamp_of(project, target, profile, content)
    if cache_keys.intact(project, stamp):
        return []
    if altered := cache_keys.altered(project, stamp):
        return [f"{_some(altered)} was altered or removed"]
    before = cache_keys.remembered(build, target)
    if before is None:
        is_notebook = isinstance(target, Target)
        result = build.executed / f"{target.notebook}.ipynb" if is_notebook else project.site(profile)
        return ["its sources changed" if result.exists() else "it was not built yet"]
    # the remembered content has been written and read as JSON
    return list(_changes(before, json.loads(json.dumps(content)))) or ["its last results are gone"]


def _changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences between two contents, one phrase per changed part."""
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
    """Return the names that were added, removed, or have a different value."""
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name) or name not in old)


def _values(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> str:
    """Return the old and the new value, as in ` (1 → 2)`, or nothing if that is long."""
    words = f" ({old.get(name, 'none')} → {new.get(name, 'none')})"
    return words if len(words) <= LONG else ""


def _some(names: list[str]) -> str:
    """Return the first few names and the number of the others."""
    more = f" and {len(names) - MANY} more" if len(names) > MANY else ""
    return ", ".join(names[:MANY]) + more
