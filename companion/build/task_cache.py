"""Compute the tasks of a chapter beforehand, in separate processes, for the notebook to find.

They lie in a folder that bears the content key of what decides them, and nothing else, in its name: what was computed
from other parameters or other sources is not found, and what prose, captions and claims say does not matter.
"""

import inspect
import io
import os
from pathlib import Path

import numpy as np

from companion.authoring.tasks import Tasks
from companion.build import cache_keys
from companion.io import atomic
from companion.io.errors import UserError, did_you_mean
from companion.project.notebooks import Notebook
from companion.project.parameters import check, resolve
from companion.project.paths import CACHE, Project


def folder(project: Project, name: str, profile: str) -> Path | None:
    """Where the tasks of notebook `name` belong, as it is now; None if it has none."""
    key = cache_keys.task_key(project, name, profile)
    return project.build(profile).tasks / f"{name}.{key}" if key else None


def files(project: Project, name: str, profile: str) -> dict[str, Path]:
    """Every task of notebook `name`, and its file, whether or not it is there; most notebooks have none."""
    target = folder(project, name, profile)
    return {task: target / f"{task}.npz" for task in _tasks(project, name, profile)} if target else {}


def compute(project: Project, name: str, task: str, profile: str) -> Path:
    """Compute one task and leave its file, whole or not at all."""
    target = folder(project, name, profile)
    if target is None:
        raise UserError(f"Notebook {name!r} has no tasks: there is no {project.chapter(name) / 'tasks.py'}.")
    project.make_importable()
    os.environ[CACHE] = str(project.cache)
    project.settings.open_context()
    tasks = _tasks(project, name, profile)
    if task not in tasks:
        raise UserError(f"Notebook {name!r} has no task {task!r} in this profile. {did_you_mean(task, tasks)}")
    arrays = tasks[task]()
    if folder(project, name, profile) != target:
        raise UserError(f"{name} was edited while {task} was computed, which is of neither version. Compute it again.")
    content = io.BytesIO()
    np.savez(content, **arrays)  # pyright: ignore
    atomic.write_bytes(target / f"{task}.npz", content.getvalue())
    return target / f"{task}.npz"


def _tasks(project: Project, name: str, profile: str) -> Tasks:
    notebook = Notebook.named(project, name)
    values = check(project, notebook, resolve(project, notebook, profile)).model_dump()
    listed = project.import_module(f"{project.settings.chapters}.{name}.tasks").tasks
    return listed(**{parameter: values[parameter] for parameter in inspect.signature(listed).parameters})
