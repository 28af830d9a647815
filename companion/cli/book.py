"""Commands about the book as a whole: build, book, pdf, serve, new, address."""

import errno
import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.status import Status

from companion.build import cache_keys, fork_server, publication_policy
from companion.build.progress import DONE, STARTED, Progress, known_seconds, time_needed
from companion.cli.terminal import Profile, app, console, explained, plain
from companion.io import atomic, processes
from companion.io.errors import UserError
from companion.project import parameters
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Build, Project

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer


# `companion serve` looks for a free port among so many.
PORTS_TRIED = 20


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


@app.command()
@explained
def book(
    profile: Profile = DEFAULT_PROFILE,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="From notebooks as stored and the tracked figures alone: nothing need be run."
        ),
    ] = False,
) -> None:
    """Assemble the site from results that are there, every warning an error.

    With `--published` a fresh clone will do, to fix a sentence and look at its page: the site shows `figures/`. It is
    refused if a figure there is known to be of other code or other parameters than today's.
    """
    from companion.site.jupyter_book import build_published_site, build_site

    project = Project.here()
    project.require_profile(profile)
    if published and profile != DEFAULT_PROFILE:
        raise UserError(f"Only figures of profile {DEFAULT_PROFILE!r} are published: leave out `--profile {profile}`.")
    console.print(f"{STARTED} the site")
    with atomic.announced(project.build(profile).running / "the site"):
        site = build_published_site(project) if published else build_site(project, profile)
    console.print(f"[green]{DONE}[/] the site: {plain(site)}", soft_wrap=True)


@app.command()
@explained
def pdf(profile: Profile = DEFAULT_PROFILE) -> None:
    """Print the built site as one PDF, with Chromium: every page, in the order of the contents, links within.

    Under figures are their claims; code, data, parameters and origin are left to the site. Chromium is the one that
    `$CHROMIUM` names, else one on the `PATH`.
    """
    from companion.site.jupyter_book import is_built

    project = Project.here()
    project.require_profile(profile)
    if not is_built(project, profile):
        raise UserError(f"There is no whole site to print. Build it with `companion build --profile {profile}`.")
    try:
        from companion.site.pdf import print_book
    except ModuleNotFoundError as missing:
        raise UserError(f"Printing needs {missing.name}: install the extra `pdf` of this book.") from missing
    console.print(f"{STARTED} the PDF")
    console.print(f"[green]{DONE}[/] the PDF: {plain(print_book(project, profile))}", soft_wrap=True)


@app.command()
@explained
def serve(
    profile: Profile = DEFAULT_PROFILE,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The next, if it is taken; 0 takes a free one.")] = 8000,
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Show the built site in a browser, from this machine to this machine only. Ctrl-C ends it."""
    from companion.site.jupyter_book import is_built

    project = Project.here()
    project.require_profile(profile)
    site = project.site(profile)
    again = f"Build it with `companion build --profile {profile}`."
    if not (site / "index.html").is_file():
        raise UserError(f"There is no site in {site} yet. {again}")
    if not is_built(project, profile):
        raise UserError(f"The last build of the site in {site} did not end well, and it may lack pages. {again}")
    with listening(site, port) as server:
        place = f"http://127.0.0.1:{server.server_port}/"
        if open_browser:
            import webbrowser

            # some browsers return only when they are closed
            threading.Thread(target=webbrowser.open, args=(place,), daemon=True).start()
        try:
            if port not in (0, server.server_port):
                console.print(f"Port {port} is taken.")
            console.print(f"{place} — Ctrl-C ends it.")
            server.serve_forever()
        except KeyboardInterrupt:
            console.print("Ended.")


def listening(site: Path, port: int) -> "ThreadingHTTPServer":
    """A server of the files in `site` on loopback, at `port` or the first free one of the next few."""
    import http.server  # slow to import, as nothing else here is

    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    ports = range(port, min(port + PORTS_TRIED, 65536))
    for candidate in ports:
        try:
            return http.server.ThreadingHTTPServer(("127.0.0.1", candidate), handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise UserError(f"Port {candidate} cannot be used: {error.strerror}. Name one from 1024 on.") from error
    raise UserError(
        f"Ports {ports[0]} to {ports[-1]} are taken. Name another, or 0 for any: `companion serve --port 0`."
    )


@app.command()
@explained
def new(
    notebook: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Lower case, words joined by underscores.")
    ] = None,
    book: Annotated[
        Path | None, typer.Option("--book", metavar="FOLDER", help="Lay out a whole book there, of one notebook.")
    ] = None,
) -> None:
    """Lay out a new notebook with its chapter, profile entries and table-of-contents row; or a new book."""
    from companion.cli.scaffold import FIRST_NOTEBOOK, lay_out, lay_out_book

    if (notebook is None) == (book is None):
        raise UserError("Name a notebook, `companion new NAME`, or a folder, `companion new --book FOLDER`.")
    for path in lay_out_book(book) if book else lay_out(Project.here(), str(notebook)):
        console.print(f"[green]+[/] {plain(path)}", soft_wrap=True)
    inside = f"cd {plain(book)} && " if book else ""
    console.print(f"It runs as it is: {inside}companion run {notebook or FIRST_NOTEBOOK}", soft_wrap=True)


@app.command()
@explained
def address(
    url: Annotated[
        str | None, typer.Argument(metavar="[URL]", help="https://github.com/<account>/<repository>")
    ] = None,
    unset: Annotated[bool, typer.Option("--unset", help="Take the address back out of every file.")] = False,
) -> None:
    """Write the repository's public address, defined in _config.yml, to every place that needs a copy."""
    from companion.project.repository import public_address, write_copies

    if url and unset:
        raise UserError("Give an address or --unset, not both.")
    project = Project.here()
    changed = write_copies(project, "" if unset else url)
    address = public_address(project) or "The address is not set"
    console.print(f"{address}: {', '.join(changed) if changed else 'every copy says so already'}", soft_wrap=True)
