"""`companion build`: rebuild figures and the site."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.status import Status

from companion.build import cache_keys, fork_server, publication_policy
from companion.build.progress import STARTED, Progress, known_seconds, time_needed
from companion.cli.terminal import Profile, app, console, explained, plain
from companion.io import atomic, processes
from companion.io.errors import UserError
from companion.project import parameters
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Build, Project


@app.command()
@explained
def build(
    profile: Profile = DEFAULT_PROFILE,
    cores: Annotated[int, typer.Option(min=1, help="How many notebooks run at once.")] = 2,
    target: Annotated[str, typer.Option(help="`site`, or only the `figures`.")] = "site",
    pieces: Annotated[
        bool, typer.Option("--pieces", help="Compute heavy computations in pieces first, each in its own process.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would run, and why.")] = False,
) -> None:
    """Rebuild what is stale: figures, then the site, each from the other's content.

    Where a notebook ends, it is said how many of those to be run have ended, and how long the others took last time.
    """
    project = Project.here()
    project.require_profile(profile)
    project.require_configuration()
    parameters.check_profiles(project)
    if target not in ("site", "figures"):
        raise UserError(f"--target is `site` or `figures`. Got {target!r}.")
    stamps = cache_keys.stamps(project, profile)
    stale = [name for name in project.notebooks() if not cache_keys.intact(project, stamps[name])]
    for name in stale:  # what is fresh was checked when it ran
        notebook = Notebook.named(project, name)
        parameters.check(project, notebook, parameters.resolve(project, notebook, profile))
    seconds = known_seconds(project, profile, stale)
    if dry_run:
        _tell_plan(project, profile, target, pieces)
        if took := time_needed(seconds.values(), cores):
            console.print(f"The notebooks took {took} last time.")
        return
    with atomic.locked(project.generated / ".build.lock", "Waiting for another build to end."):
        if profile == DEFAULT_PROFILE:
            _restore_published(project)
        command = [
            *(sys.executable, "-m", "snakemake", target, "--cores", str(cores), "--directory", str(project.root)),
            *("--snakefile", str(project.root / "Snakefile"), "--config", f"profile={profile}"),
            *(["pieces=1"] if pieces else []),
            # ours is the lock, and stamps are the only outputs: a killed run leaves nothing to unlock or to doubt
            *("--nolock", "--rerun-incomplete", "--rerun-triggers", "mtime", "--quiet", "all"),
        ]
        said = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with (
            _kernels_forked(project, stale) as environment,
            processes.started(command, cwd=project.root, env=environment, **said) as process,
        ):
            _follow(process, project.build(profile), Progress(seconds, cores))
    if process.returncode:
        edited = cache_keys.stamps(project, profile) != stamps
        why = "what it builds was edited meanwhile" if edited else "what went wrong is above"
        raise UserError(f"The build stopped; {why}. What was built is kept: run it again to go on.")
    if target == "site":
        console.print(f"[green]The site is here:[/] {plain(project.site(profile) / 'index.html')}", soft_wrap=True)


@contextmanager
def _kernels_forked(project: Project, stale: Sequence[str]) -> Iterator[dict[str, str]]:
    """The environment of a build's processes; for several notebooks it says where kernels are forked."""
    if not project.settings.preload or len(stale) <= 1 or not fork_server.can_be():
        yield {**os.environ}
        return
    from companion.build import execution

    # it reads what it is set to before the runner says so
    early = {**os.environ, "PYTHONPATH": str(project.root), "MPLBACKEND": "agg"}
    with (
        execution.socket_folder() as folder,
        processes.started(
            fork_server.command(where := str(folder / "fork-server"), project.settings.preload),
            env=early,
            stdin=subprocess.PIPE,
        ),
    ):
        yield {**os.environ, fork_server.FORK_SERVER: where}


def _tell_plan(project: Project, profile: str, target: str, pieces: bool) -> None:
    """What a build would do, a line a step."""
    from companion.build import plan

    steps = plan.plan(project, profile, site=target == "site")
    for step in steps:
        console.print(f"{STARTED} {step.verb} {step.what}: {plain('; '.join(step.why))}", soft_wrap=True)
        if pieces and step.verb == plan.RUN:
            from companion.build import precompute

            files = precompute.files(project, step.what, profile).values()
            if missing := sum(not file.is_file() for file in files):
                console.print(f"  before it, {missing} of its {len(files)} pieces")
    if not steps:
        console.print("Nothing would run: all is fresh.")


def _follow(process: subprocess.Popen[str], build: Build, progress: Progress) -> None:
    """Pass on what the build says, line by line, and how far it is.

    On a terminal, show what its processes announce to be running.
    """
    ended = threading.Event()

    def watch(status: Status) -> None:
        while not ended.wait(0.5):
            running = atomic.alive(build.running)
            status.update(f"Running {', '.join(running)}" if running else "Looking for what is stale")

    assert process.stdout is not None
    with console.status("Looking for what is stale") as status, process.stdout as lines:
        watcher = threading.Thread(target=watch, args=(status,), daemon=True)
        watcher.start()
        for line in lines:
            console.print(progress.told(line.rstrip(), time.monotonic()), markup=False, soft_wrap=True)
        ended.set()
    process.wait()


def _restore_published(project: Project) -> None:
    """Bring `figures/` in line with results that are fresh, after a kill or an edit by hand."""
    stamps = cache_keys.stamps(project, DEFAULT_PROFILE)
    for name in project.notebooks():
        targets = [name, *cache_keys.pictures(project, name)]
        fresh = all(cache_keys.intact(project, stamps[target]) for target in targets)
        if fresh and publication_policy.publish_figures(project, name):
            cache_keys.forget(project.build(DEFAULT_PROFILE), cache_keys.BOOK)
