"""Drawing figures again from numbers that are there, without a kernel: for a caption, a colour, a label."""

import shutil
from pathlib import Path

from companion.analysis.dependencies import Library
from companion.build import cache_keys, publication_policy
from companion.figures import mathtext_cache, rendering, store, table_io
from companion.figures.record import FigureRecord, RunRecord
from companion.io import atomic
from companion.io.errors import UserError, did_you_mean
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Project


def named(project: Project, names: list[str]) -> list[tuple[str, str]]:
    """Return the pairs (notebook, figure) of `names`: `notebook/figure`, a figure, or a notebook (all figures)."""
    known = [(name, figure) for name in project.notebooks() for figure in Notebook.named(project, name).figures]
    found = []
    for name in names:
        mine = [pair for pair in known if name in ("/".join(pair), *pair)]
        if not mine:
            words = {word for pair in known for word in pair}
            raise UserError(f"There is no figure and no notebook {name!r}. {did_you_mean(name, words)}")
        found += mine
    return list(dict.fromkeys(found))


def draw(project: Project, name: str, figure: str, profile: str = DEFAULT_PROFILE) -> list[str]:
    """Redraw one figure from its stored table; the published figures that this replaced.

    The table is that of the last run of `profile`; where nothing was run, the published one, and then a picture that is
    of today's code and words is left alone, whatever this machine's fonts would make of it.
    """
    build = project.build(profile)
    with atomic.locked(build.locks / name, f"{name}: waiting for another process that runs it"):
        table, run = _stored(project, name, figure, profile)
        target = cache_keys.picture_target(name, figure)
        content = cache_keys.made_of(project, target, profile)
        stamp = cache_keys.stamp_of(project, target, profile, content)
        module = project.import_module(project.figure_module(name, figure))
        shown = build.figures / name if table.is_relative_to(build.folder) else project.published / name
        with atomic.staging_folder(build.staging, f"draw-{name}") as staging:
            new = staging / name
            shutil.copytree(shown, new) if shown.is_dir() else new.mkdir()
            library = Library.at(project.root, project.settings.science)
            frame = table_io.read_csv(table, run.columns)
            mathtext_cache.parse_once()
            drawn = rendering.write_set(new, module, frame, run, library)
            if shown == project.published / name and _is_up_to_date(shown, figure, drawn):
                return []
            cache_keys.forget(build, target)
            atomic.replace_folder(new, shown)
        if shown != project.published / name and cache_keys.is_fresh(project, name, profile):
            cache_keys.leave_stamp(project, stamp, store.files(shown, figure), content)
    if shown == project.published / name:
        return [figure]
    return publication_policy.publish_figures(project, name, figure) if profile == DEFAULT_PROFILE else []


def _is_up_to_date(published: Path, figure: str, drawn: FigureRecord) -> bool:
    """Return whether a published set is whole and its record equals `drawn`, except for the files' checksums."""
    if store.faults(published, figure) or not store.has_current_form(published, figure):
        return False
    record = store.read_record(published, figure)
    return record == drawn.model_copy(update={"files": record.files})


def _stored(project: Project, name: str, figure: str, profile: str) -> tuple[Path, RunRecord]:
    """Return the path of the CSV and what is recorded of the run that computed it."""
    built, published = project.build(profile).tables / name, project.published / name
    if all((built / f"{figure}{ending}").is_file() for ending in (store.DATA, store.RECORD)):
        return built / f"{figure}{store.DATA}", store.read_run_record(built, figure)
    both_published = all((published / f"{figure}{ending}").is_file() for ending in (store.DATA, store.RECORD))
    if profile == DEFAULT_PROFILE and both_published:
        return published / f"{figure}{store.DATA}", store.read_record(published, figure)
    raise UserError(
        f"There are no numbers of {name}/{figure} in profile {profile!r} yet. Run `companion run {name} --profile "
        f"{profile}` first."
    )
