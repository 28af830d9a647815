"""`companion piece`: compute one piece of a heavy computation."""

import time
from typing import Annotated

import typer

from companion.build.progress import DONE, STARTED
from companion.cli.terminal import NotebookName, Profile, app, console, explained
from companion.io import atomic
from companion.project.paths import DEFAULT_PROFILE, Project


@app.command()
@explained
def piece(
    notebook: NotebookName,
    name: Annotated[str | None, typer.Argument(metavar="[PIECE]", help="Which; without, all are listed.")] = None,
    profile: Profile = DEFAULT_PROFILE,
) -> None:
    """Compute one piece of a heavy computation beforehand; the notebook takes it instead of computing it.

    `companion build --pieces` does this for all pieces, as Snakemake on a cluster does with `--config pieces=1`.
    """
    from companion.build import precompute

    project = Project.here()
    project.require_notebook(notebook)
    project.require_profile(profile)
    if name is None:
        files = precompute.files(project, notebook, profile)
        for piece_name, file in files.items():
            console.print(f"[green]{DONE}[/]" if file.is_file() else " ", piece_name)
        console.print(f"{sum(file.is_file() for file in files.values())} of {len(files)} pieces are there.")
        return
    console.print(f"{STARTED} {notebook}/{name} ({profile})")
    clock = time.monotonic()
    with atomic.announced(project.build(profile).running / f"{notebook}-{name}"):
        precompute.compute(project, notebook, name, profile)
    console.print(f"[green]{DONE}[/] {notebook}/{name}: {time.monotonic() - clock:.0f} s")
