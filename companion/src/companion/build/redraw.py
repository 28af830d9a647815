"""Redraw figures from stored tables without a kernel, for example after a change of a caption or a colour."""

import shutil
from pathlib import Path

from companion.analysis.dependencies import Library
from companion.build import cache_keys, publication_policy
from companion.build.run_spec import Target, pictures_of
from companion.figures import rendering, store, table_io
from companion.figures.record import FigureRecord, RunRecord
from companion.io import atomic
from companion.io.errors import UserError, did_you_mean
from companion.project import slicing
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Project


def figures_named(project: Project, names: list[str]) -> list[Target]:
    """Return the figures of `names`: `notebook/figure`, a figure, or a notebook (all its figures)."""
    known = [target for name in project.notebooks() for target in pictures_of(project, name)]
    targets: list[Target] = []
    for name in names:
        matching = [target for target in known if name in (str(target), target.notebook, target.figure)]
        if not matching:
            words = {word for target in known for word in (target.notebook, target.figure) if word}
            raise UserError(f"There is no figure and no notebook {name!r}. {did_you_mean(name, words)}")
        targets += matching
    return list(dict.fromkeys(targets))


def redraw(project: Project, target: Target, profile: str = DEFAULT_PROFILE) -> list[str]:
    """Redraw one figure from its stored table; return the published figures that it replaced.

    The table is that of the last run of `profile`. If nothing was run, it is the published table; a published picture
    that was drawn by the present code and has the present caption is not replaced then, although the fonts of this
    machine may differ.
    """
    name, figure, build = target.notebook, target.figure or "", project.build(profile)
    with atomic.locked(build.locks / name, f"{name}: waiting for another process that runs it"):
        table, run = _stored(project, name, figure, profile)
        content = cache_keys.made_of(project, target, profile)
        module = project.import_module(project.figure_module(name, figure))
        shown = build.figures / name if table.is_relative_to(build.folder) else project.published / name
        with atomic.staging_folder(build.staging, name) as staging:
            new = staging / name
            shutil.copytree(shown, new) if shown.is_dir() else new.mkdir()
            library = Library.at(project.root, project.settings.science)
            run = _with_present_names(run, project, module.__name__, library)
            frame = table_io.read_csv(table, run.columns)
            drawn = rendering.write_set(new, module, frame, run, library)
            if shown == project.published / name and _is_up_to_date(shown, figure, drawn):
                return []
            cache_keys.forget(build, target)
            atomic.replace_folder(new, shown)
        if shown != project.published / name and cache_keys.is_fresh(project, Target(name), profile):
            cache_keys.leave_stamp_of(project, target, profile, content, store.files(shown, figure))
    if shown == project.published / name:
        return [figure]
    if profile != DEFAULT_PROFILE:
        return []
    return publication_policy.publish_figures(project, name, figure).replaced


def _with_present_names(run: RunRecord, project: Project, module: str, library: Library) -> RunRecord:
    """Return the record with the present names of the functions and files behind the figure.

    A function that only draws can be renamed or moved without a new run, and the site shows the code of these names.
    """
    cells = Notebook.named(project, run.notebook).code
    steps = slicing.steps_of(cells, run.figure, project.settings.science)
    functions, files = library.shown(module, steps.functions), library.files([module, *steps.functions])
    return run.model_copy(update={"functions": tuple(functions), "sources": tuple(files)})


def _is_up_to_date(published: Path, figure: str, drawn: FigureRecord) -> bool:
    """Return whether published files are intact and their record equals `drawn`, except for the checksums."""
    if store.faults(published, figure):
        return False
    record = store.read_record(published, figure)
    return record == drawn.model_copy(update={"files": record.files})


def _stored(project: Project, name: str, figure: str, profile: str) -> tuple[Path, RunRecord]:
    """Return the path of the stored table and the record of the run that computed it."""
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
