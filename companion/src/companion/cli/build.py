"""`companion build`: rebuild figures and the site."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from companion.build import cache_keys, fork_server, publication_policy
from companion.build.progress import KNOWN, STARTED, known_seconds, time_needed
from companion.build.run_spec import RunSpec, Target, pictures_of
from companion.cli.terminal import (
    BUILD_AND_READ,
    Profile,
    app,
    console,
    counted,
    escaped,
    report_errors,
    report_unlisted,
)
from companion.io import atomic, processes
from companion.io.errors import UserError
from companion.project import parameters
from companion.project.paths import DEFAULT_PROFILE, Project

# The folder on whose path Snakemake finds the logger plugin.
PLUGINS = Path(fork_server.__file__).with_name("snakemake_plugins")


@app.command(rich_help_panel=BUILD_AND_READ)
@report_errors
def build(
    profile: Profile = DEFAULT_PROFILE,
    cores: Annotated[int, typer.Option(min=1, help="Number of notebooks that run at the same time.")] = 2,
    target: Annotated[
        Literal["site", "figures"], typer.Option(help="What to build: `site` (figures and site) or `figures`.")
    ] = "site",
    tasks: Annotated[
        bool,
        typer.Option(
            "--tasks",
            help="Compute tasks first, each in its own process. A task is a part of a heavy computation, for example "
            "one seed, whose result is cached.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Run nothing; list what would run, with the reasons.")
    ] = False,
) -> None:
    """Rebuild all stale figures and the site.

    A change is recognised by its content, not by the time of a file. Before notebooks run, the build prints how long
    they need, from the last runs on this machine or from the book's table of costs. While they run, it scales this
    estimate by the durations of those that ended.

    Example:

        companion build --profile smoke --cores 4
    """
    project = Project.here()
    project.require_profile(profile)
    report_unlisted(project)
    parameters.check_profiles(project)
    stamps = cache_keys.stamps(project, profile)
    stale = [name for name in project.notebooks() if not cache_keys.intact(project, stamps[Target(name)])]
    for name in stale:  # the parameters of a fresh notebook were checked when it ran
        RunSpec(name, profile).check(project)
    seconds = known_seconds(project, profile, stale)
    if dry_run:
        _print_plan(project, profile, target)
        _print_duration(seconds, cores)
        return
    with atomic.locked(project.generated / ".build.lock", "Waiting for another build to end."):
        if profile == DEFAULT_PROFILE:
            _restore_published(project)
        _print_duration(seconds, cores)
        command = [
            *(sys.executable, "-m", "snakemake", target, "--cores", str(cores), "--directory", str(project.root)),
            *("--snakefile", str(project.root / "Snakefile"), "--config", f"profile={profile}"),
            *(["tasks=1"] if tasks else []),
            # this command holds its own lock, and stamps are the only outputs: a killed build leaves nothing to unlock
            *("--nolock", "--rerun-incomplete", "--rerun-triggers", "mtime", "--quiet", "all"),
            *("--profile", "none", "--workflow-profile", "none"),  # a user's profile may name another scheduler
            *("--logger", "companion"),
        ]
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with (
            _fork_server(project, stale) as environment,
            processes.started(
                command, cwd=project.root, env=environment | _logger(seconds, cores), **output
            ) as process,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                console.print(line.rstrip(), markup=False)
            process.wait()
    if process.returncode:
        edited = cache_keys.stamps(project, profile) != stamps
        reason = "its sources were edited while it ran" if edited else "the error is above"
        raise UserError(f"The build failed: {reason}. Finished work is kept; run the same command to continue.")
    if target == "site":
        console.print(f"[green]The site is built:[/] {escaped(project.site(profile) / 'index.html')}")


def _print_duration(seconds: Mapping[str, float | None], cores: int) -> None:
    """Print how long the notebooks to run are expected to take, if that is known."""
    if duration := time_needed(seconds.values(), cores):
        console.print(f"{counted(len(seconds), 'notebook')} to run: {duration} with {cores} at a time.")


@contextmanager
def _fork_server(project: Project, stale: Sequence[str]) -> Iterator[dict[str, str]]:
    """Start a fork server if several notebooks are stale; yield the environment variables of the build's processes."""
    if not project.settings.preload or len(stale) <= 1 or not fork_server.can_be():
        yield {**os.environ}
        return
    from companion.build import execution

    # modules that the server preloads read these variables before a runner can set them
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(project.search_path), "MPLBACKEND": "agg"}
    with (
        execution.socket_folder() as folder,
        processes.started(
            fork_server.command(socket := str(folder / "fork-server"), project.settings.preload),
            env=environment,
            stdin=subprocess.PIPE,
        ),
    ):
        yield {**os.environ, fork_server.FORK_SERVER: socket}


def _logger(seconds: Mapping[str, float | None], cores: int) -> dict[str, str]:
    """Return the environment variables for the logger plugin of Snakemake: its path and what it must know."""
    path = [str(PLUGINS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(path), KNOWN: json.dumps({"seconds": seconds, "cores": cores})}


def _print_plan(project: Project, profile: str, target: str) -> None:
    """Print what a build would do, one line per step."""
    from companion.build.plan import plan

    steps = plan(project, profile, site=target == "site")
    for step in steps:
        console.print(f"{STARTED} {step.verb} {step.what}: {escaped('; '.join(step.why))}")
    if not steps:
        console.print("Nothing would run: everything is fresh.")


def _restore_published(project: Project) -> None:
    """Publish fresh results whose files in `figures/` are missing or changed, after a kill or a manual edit."""
    stamps = cache_keys.stamps(project, DEFAULT_PROFILE)
    for name in project.notebooks():
        targets = [Target(name), *pictures_of(project, name)]
        fresh = all(cache_keys.intact(project, stamps[target]) for target in targets)
        if fresh and publication_policy.publish_figures(project, name):
            cache_keys.forget(project.build(DEFAULT_PROFILE), cache_keys.Site.BUILT)
