"""Compute tasks of a chapter beforehand and cache their results for the notebook.

The results are in a folder whose name contains the cache key of the tasks: results from other parameters or sources are
never read, and prose, captions and claims do not matter.
"""

import inspect
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from companion.build import cache_keys
from companion.build.run_spec import CheckedRun, RunSpec
from companion.io import atomic
from companion.io.errors import UserError, did_you_mean
from companion.project.paths import CACHE, Project

if TYPE_CHECKING:
    from companion.authoring.tasks import Tasks


def folder(project: Project, run: CheckedRun) -> Path | None:
    """Return the folder of the task results that a run can use, or None if its notebook has no tasks."""
    name = run.spec.notebook
    key = cache_keys.task_key(project, name, run.resolved)
    return project.build(run.spec.profile).tasks / f"{name}.{key}" if key else None


def files(project: Project, spec: RunSpec) -> dict[str, Path]:
    """Return the file of every task of a run by the name of the task, whether or not it exists."""
    run = spec.check(project)
    results = folder(project, run)
    return {task: results / f"{task}.npz" for task in _tasks(project, run)} if results else {}


def compute(project: Project, spec: RunSpec, task: str) -> Path:
    """Compute one task and write its file atomically; return the path.

    Raises:
      UserError: if there is no such task, or the sources were edited during the computation.
    """
    name, run = spec.notebook, spec.check(project)
    results = folder(project, run)
    if results is None:
        raise UserError(f"Notebook {name!r} has no tasks: there is no {project.chapter(name) / 'tasks.py'}.")
    project.make_importable()
    os.environ[CACHE] = str(project.cache)
    project.settings.open_context()
    tasks = _tasks(project, run)
    if task not in tasks:
        raise UserError(f"Notebook {name!r} has no task {task!r} in this profile. {did_you_mean(task, tasks)}")
    arrays = tasks[task]()
    if folder(project, spec.check(project)) != results:
        raise UserError(f"{name} was edited while {task} was computed, so the result is discarded. Compute it again.")
    import numpy as np  # only this function needs it, and a run should refuse a wrong parameter at once

    content = io.BytesIO()
    np.savez(content, **arrays)  # pyright: ignore
    atomic.write_bytes(results / f"{task}.npz", content.getvalue())
    return results / f"{task}.npz"


def _tasks(project: Project, run: CheckedRun) -> "Tasks":
    listed = project.import_module(f"{project.settings.chapters}.{run.spec.notebook}.tasks").tasks
    return listed(**{parameter: run.values[parameter] for parameter in inspect.signature(listed).parameters})
