"""The rule by which a rebuild replaces a published figure: only if its numbers moved, or what made them changed."""

import math
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from companion.analysis import dependencies
from companion.figures import store
from companion.figures.record import ClaimRecord, PublishedClaim
from companion.io.atomic import locked, replace_folder, staging_folder
from companion.project import slicing
from companion.project.notebooks import Notebook
from companion.project.parameters import resolve
from companion.project.paths import DEFAULT_PROFILE, Project, relative

# What alone makes `companion redraw` enough to bring a published figure up to date.
DRAWN_OTHERWISE = "it is drawn by other code"


def publish_figures(project: Project, name: str, alone: str | None = None) -> list[str]:
    """Bring `figures/<name>/` up to date with what the default profile built; the figures that were replaced.

    Or bring one figure `alone`; its sisters, which may not have been built at all, stay as they are.

    A figure whose parameters, words, picture code and numbers (within tolerance) are the published ones is left alone
    to the byte, whatever this machine's fonts and rounding made of it. One that is again what git has in the last
    commit, after a change that was taken back, gets those bytes. So `git status` is clean exactly when the results were
    reproduced. The folder is exchanged in one step. Raises a `UserError` if a file is too large to be tracked.
    """
    build = project.build(DEFAULT_PROFILE)
    built, published = build.figures / name, project.published / name
    with locked(build.locks / f"publish-{name}", f"{name}: waiting for another process to publish it"):
        replaced, dropped = differing(project, name)
        if alone is not None:
            replaced, dropped = [figure for figure in replaced if figure == alone], []
        if not replaced and not dropped:
            return []
        for figure in replaced:
            store.require_small(built, figure)
        with staging_folder(build.staging, f"publish-{name}") as staging:
            new = staging / name
            new.mkdir()
            for figure in {*store.names_in(published), *replaced}.difference(dropped):
                origin = published
                if figure in replaced:
                    committed = _committed(project, published, figure, staging / "committed")
                    origin = committed if _reproduces(build.tables / name, built, committed, figure) else built
                for suffix in store.SUFFIXES:
                    shutil.copyfile(origin / f"{figure}{suffix}", new / f"{figure}{suffix}")
            replace_folder(new, published)
    return replaced + dropped


def _committed(project: Project, published: Path, figure: str, folder: Path) -> Path:
    """Copy the files of a published figure from git's last commit into `folder`, where they exist, and return it."""
    folder.mkdir(exist_ok=True)
    for path in store.files(published, figure):
        command = ["git", "show", f"HEAD:./{relative(path, project.root)}"]
        try:
            shown = subprocess.run(command, cwd=project.root, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):  # no git, no commit, a new figure
            break
        (folder / path.name).write_bytes(shown.stdout)
    return folder


def differing(project: Project, name: str) -> tuple[list[str], list[str]]:
    """The figures whose published files are to be replaced by those built here, and those that nothing builds."""
    build = project.build(DEFAULT_PROFILE)
    built, published = build.figures / name, project.published / name
    figures = store.names_in(built)
    replaced = [figure for figure in figures if not _reproduces(build.tables / name, built, published, figure)]
    return replaced, sorted(set(store.names_in(published)) - set(figures))


def _reproduces(tables: Path, built: Path, published: Path, figure: str) -> bool:
    if store.faults(published, figure) or not store.has_current_form(published, figure):
        return False
    old, new = store.read_record(published, figure), store.read_record(built, figure)
    if old.without_numbers() != new.without_numbers() or not all(map(_same_bounds, old.claims, new.claims)):
        return False
    from companion.figures.tolerances import moved  # pandas takes a second to import, and most calls end above

    table = f"{figure}{store.DATA}"
    return not moved(published / table, tables / table, new.columns)


def _same_bounds(old: ClaimRecord, new: ClaimRecord) -> bool:
    return bounds_moved(old, new).largest <= 1


@dataclass(frozen=True)
class BoundsMoved:
    """The movement of a claim's bounds, in units of what rounding allows: above 1, the bound changed."""

    expected: float = 0.0
    tolerance: float = 0.0
    std_error: float = 0.0

    @property
    def largest(self) -> float:
        """The largest of the three."""
        return max(self.expected, self.tolerance, self.std_error)


def bounds_moved(old: ClaimRecord, new: ClaimRecord) -> BoundsMoved:
    """Return how far the tolerance of a claim (in standard errors where it has one) and its expected value moved.

    Some bounds are measured themselves, so the rounding of another machine is allowed.
    """
    if (old.std_error is None) != (new.std_error is None):
        return BoundsMoved(std_error=math.inf)
    if old.std_error and new.std_error:  # the expected value may be measured, too
        return BoundsMoved(tolerance=apart(old.tolerance / old.std_error, new.tolerance / new.std_error))
    return BoundsMoved(apart(old.expected, new.expected), apart(old.tolerance, new.tolerance))


def apart(one: float | None, other: float | None, allowed: float = 1e-12) -> float:
    """Return the distance of two numbers of a claim in units of a thousandth of the larger, or of `allowed` if larger.

    It is infinite if only one of the two is a finite number.
    """
    if one == other:
        return 0.0
    if one is None or other is None:
        return math.inf
    if math.isnan(one) and math.isnan(other):
        return 0.0
    if not (math.isfinite(one) and math.isfinite(other)):
        return math.inf
    return abs(one - other) / max(1e-3 * max(abs(one), abs(other)), allowed)


def departures(project: Project, name: str, figure: str) -> list[str]:
    """Return how a published figure differs from the sources of the clone, without computing it.

    Its files, its parameters, the steps of its notebook, what draws it. Not the functions that the steps call.
    """
    folder, notebook = project.published / name, Notebook.named(project, name)
    if faults := store.faults(folder, figure):
        return faults
    record = store.read_record(folder, figure)
    drawn_by = dependencies.Library.at(project.root, project.settings.science).picture_digest(
        project.figure_module(name, figure)
    )
    found = {
        "it has other parameters": record.parameters != resolve(project, notebook, DEFAULT_PROFILE),
        "other steps lead to it": list(record.steps)
        != slicing.behind(notebook.code, figure, project.settings.science).lines,
        DRAWN_OTHERWISE: record.picture != drawn_by,
    }
    return [departure for departure, is_so in found.items() if is_so]


def published_claims(project: Project, profile: str = DEFAULT_PROFILE) -> list[PublishedClaim]:
    """Every claim of the figures that the site of `profile` shows, in the order in which its pages show them."""
    claims: list[PublishedClaim] = []
    for name in project.notebooks():
        folder, shown = project.shown_figures(profile) / name, Notebook.named(project, name).figures
        there = {path.name.removesuffix(store.RECORD) for path in folder.glob(f"*{store.RECORD}")}
        for figure in [*filter(there.__contains__, shown), *sorted(there - set(shown))]:
            claims += PublishedClaim.all_of(store.read_record(folder, figure))
    return claims
