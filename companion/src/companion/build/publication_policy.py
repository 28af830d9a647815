"""The policy of a rebuild: a published figure is replaced only if its numbers moved or its sources changed."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from companion.analysis import dependencies
from companion.figures import store
from companion.figures.record import FigureRecord, NotebookClaims, PublishedClaim, PublishedWithheld
from companion.io import git
from companion.io.atomic import locked, replace_folder, staging_folder
from companion.io.errors import UserError
from companion.project import slicing
from companion.project.notebooks import Notebook
from companion.project.parameters import resolve
from companion.project.paths import DEFAULT_PROFILE, Project, relative, visible

# If this is the only departure of a published figure, `companion redraw` brings it up to date.
DRAWN_BY_OTHER_CODE = "it was drawn by different code"


@dataclass(frozen=True)
class Changes:
    """The published figures of a notebook that were replaced, and those that were removed."""

    replaced: list[str]
    removed: list[str]

    def __bool__(self) -> bool:
        """Return whether anything changed."""
        return bool(self.replaced or self.removed)

    def sentences(self, folder: str) -> list[str]:
        """Return the changes of `folder` in words, one phrase for the replaced figures and one for the removed."""
        parts = {"replaced in": self.replaced, "removed from": self.removed}
        return [f"{verb} {folder}: {', '.join(figures)}" for verb, figures in parts.items() if figures]


def publish_figures(project: Project, name: str, only: str | None = None) -> Changes:
    """Update `figures/<name>/` with the results of the default profile; return what changed there.

    With `only`, update only that figure; the other figures of the notebook, which may not have been built, are kept.

    If parameters, text and drawing code of a figure are unchanged and its numbers agree within tolerance, the published
    files are not touched, although fonts and rounding of this machine may differ. A figure that agrees with the last
    git commit again, after a change that was undone, gets the committed bytes. So `git status` is clean exactly if the
    results were reproduced. A kill can leave figures of two versions, which the next call replaces.

    Raises:
      UserError: if a file is too large to be tracked.
    """
    build = project.build(DEFAULT_PROFILE)
    built, published = build.figures / name, project.published / name
    with locked(build.locks / f"publish-{name}", f"{name}: waiting for another process to publish it"):
        changes = differing(project, name)
        if only is not None:
            changes = Changes([figure for figure in changes.replaced if figure == only], [])
        if not changes:
            return changes
        for figure in changes.replaced:
            store.require_small(built, figure)
        with staging_folder(build.staging, f"publish-{name}") as staging:
            new = staging / name
            new.mkdir()
            for figure in {*store.parts_in(published), *changes.replaced}.difference(changes.removed):
                origin = published
                if figure in changes.replaced:
                    committed = _committed(project, published, figure, staging / "committed")
                    origin = committed if _reproduces(build.tables / name, built, committed, figure) else built
                for path in store.files(origin, figure):
                    shutil.copyfile(path, new / path.name)
            replace_folder(new, published)
    return changes


def _committed(project: Project, published: Path, figure: str, folder: Path) -> Path:
    """Copy the files of a published figure from git's last commit into `folder`, where they exist, and return it."""
    folder.mkdir(exist_ok=True)
    for path in store.files(published, figure):
        try:
            content = git.output_of(project.root, "show", f"HEAD:./{relative(path, project.root)}")
        except (OSError, subprocess.CalledProcessError):  # no git, no commit, a new figure
            break
        (folder / path.name).write_bytes(content)
    return folder


def differing(project: Project, name: str) -> Changes:
    """Return the figures whose published files would be replaced, and those that no notebook builds any more.

    The claims of the notebook are one of them, `CLAIMS`.
    """
    build = project.build(DEFAULT_PROFILE)
    built, published = build.figures / name, project.published / name
    parts = store.parts_in(built)
    replaced = [part for part in parts if not _reproduces(build.tables / name, built, published, part)]
    return Changes(replaced, sorted(set(store.parts_in(published)) - set(parts)))


def _reproduces(tables: Path, built: Path, published: Path, figure: str) -> bool:
    if figure == store.CLAIMS:
        return _reproduces_claims(built, published)
    if store.faults(published, figure):
        return False
    old, new, table = store.read_record(published, figure), store.read_record(built, figure), f"{figure}{store.DATA}"
    if old.without_numbers() != new.without_numbers():
        return False
    if old.claims == new.claims and (published / table).read_bytes() == (built / table).read_bytes():
        return True
    from companion.figures.comparison import compare  # pandas takes a second to import, and most calls end above

    return compare(old, new, (published / table, tables / table)).reproduces


def _reproduces_claims(built: Path, published: Path) -> bool:
    try:
        old, new = store.read_claims(published), store.read_claims(built)
    except UserError:
        return False
    if old is None or new is None:
        return False
    from companion.figures.comparison import compare_claims

    return old == new or all(difference.bound <= 1 for difference in compare_claims(old, new))


def departures(project: Project, name: str, figure: str) -> list[str]:
    """Return how a published figure departs from the sources of the clone, without computing it.

    Its files, its parameters, the statements of its notebook and its drawing code are compared, but not the functions
    that the statements call.
    """
    folder, notebook = project.published / name, Notebook.named(project, name)
    if faults := store.faults(folder, figure):
        return faults
    record = store.read_record(folder, figure)
    drawn_by = dependencies.Library.at(project.root, project.settings.science).picture_digest(
        project.figure_module(name, figure)
    )
    departed = {
        "it has different parameters": record.parameters != resolve(project, notebook, DEFAULT_PROFILE),
        "the statements that lead to it differ": list(record.steps)
        != slicing.steps_of(notebook.code, figure, project.settings.science).lines,
        DRAWN_BY_OTHER_CODE: record.picture != drawn_by,
    }
    return [departure for departure, is_so in departed.items() if is_so]


def published_claims(project: Project, profile: str = DEFAULT_PROFILE) -> list[PublishedClaim]:
    """Return the claims of all figures on the site of `profile`, in the order of its pages."""
    return [
        PublishedClaim(**dict(claim), notebook=record.notebook, figure=record.figure)
        for record in _records_shown(project, profile)
        for claim in record.claims
    ]


def withheld_claims(project: Project, profile: str = DEFAULT_PROFILE) -> list[PublishedWithheld]:
    """Return the claims that the figures on the site of `profile` withhold, in the order of its pages."""
    return [
        PublishedWithheld(**dict(claim), notebook=record.notebook, figure=record.figure)
        for record in _records_shown(project, profile)
        for claim in record.withheld
    ]


def _records_shown(project: Project, profile: str) -> Iterator[FigureRecord | NotebookClaims]:
    for name in project.notebooks():
        folder, shown = project.shown_figures(profile) / name, Notebook.named(project, name).figures
        existing = {path.name.removesuffix(store.RECORD) for path in visible(folder, f"*{store.RECORD}")}
        existing.discard(store.CLAIMS)
        for figure in [*filter(existing.__contains__, shown), *sorted(existing - set(shown))]:
            yield store.read_record(folder, figure)
        if claims := store.read_claims(folder):
            yield claims
