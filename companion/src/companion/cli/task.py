"""`companion task`: compute one task of a notebook."""

import time
from typing import Annotated

import typer

from companion.build.progress import DONE, STARTED
from companion.build.run_spec import RunSpec
from companion.cli.terminal import ONE_NOTEBOOK, NotebookName, Profile, app, console, report_errors
from companion.io import atomic
from companion.project.paths import DEFAULT_PROFILE, Project


@app.command(rich_help_panel=ONE_NOTEBOOK)
@report_errors
def task(
    notebook: NotebookName,
    name: Annotated[
        str | None, typer.Argument(metavar="[TASK]", help="Task to compute (default: none; all tasks are listed).")
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
) -> None:
    """Compute one task of a notebook, or list its tasks.

    A task is a part of a heavy computation, for example one seed, whose result is cached. The notebook reads the result
    instead of computing it. `companion build --tasks` computes all tasks, each in its own process; so does Snakemake on
    a cluster with `--config tasks=1`.

    Example:

        companion task first_figure --profile full
    """
    from companion.build import task_cache

    project = Project.here()
    spec = RunSpec(notebook, profile)
    if name is None:
        files = task_cache.files(project, spec)
        for task_name, file in files.items():
            console.print(f"[green]{DONE}[/]" if file.is_file() else " ", task_name)
        console.print(f"{sum(file.is_file() for file in files.values())} of {len(files)} tasks are cached.")
        return
    console.print(f"{STARTED} {notebook}/{name} ({profile})")
    start = time.monotonic()
    with atomic.announced(project.build(profile).running / f"{notebook}-{name}"):
        task_cache.compute(project, spec, name)
    console.print(f"[green]{DONE}[/] {notebook}/{name}: {time.monotonic() - start:.0f} s")
