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

from companion import atomic, freshness, nursery, parameters, processes, publication
from companion.cli.terminal import Profile, app, console, explained, plain
from companion.house import DEFAULT_PROFILE, Build, House
from companion.mistakes import Mistake
from companion.notebooks import Notebook
from companion.progress import DONE, STARTED, Progress, known_seconds, time_needed

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
    house = House.here()
    house.require_profile(profile)
    house.require_configuration()
    parameters.check_profiles(house)
    if target not in ("site", "figures"):
        raise Mistake(f"--target is `site` or `figures`. Got {target!r}.")
    stamps = freshness.stamps(house, profile)
    stale = [name for name in house.notebooks() if not freshness.intact(house, stamps[name])]
    for name in stale:  # what is fresh was checked when it ran
        notebook = Notebook.named(house, name)
        parameters.check(house, notebook, parameters.resolve(house, notebook, profile))
    seconds = known_seconds(house, profile, stale)
    if dry_run:
        _tell_plan(house, profile, target, pieces)
        if took := time_needed(seconds.values(), cores):
            console.print(f"The notebooks took {took} last time.")
        return
    with atomic.locked(house.generated / ".build.lock", "Waiting for another build to end."):
        if profile == DEFAULT_PROFILE:
            _restore_published(house)
        command = [
            *(sys.executable, "-m", "snakemake", target, "--cores", str(cores), "--directory", str(house.root)),
            *("--snakefile", str(house.root / "Snakefile"), "--config", f"profile={profile}"),
            *(["pieces=1"] if pieces else []),
            # ours is the lock, and stamps are the only outputs: a killed run leaves nothing to unlock or to doubt
            *("--nolock", "--rerun-incomplete", "--rerun-triggers", "mtime", "--quiet", "all"),
        ]
        said = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with (
            _kernels_forked(house, stale) as environment,
            processes.started(command, cwd=house.root, env=environment, **said) as process,
        ):
            _follow(process, house.build(profile), Progress(seconds, cores))
    if process.returncode:
        edited = freshness.stamps(house, profile) != stamps
        why = "what it builds was edited meanwhile" if edited else "what went wrong is above"
        raise Mistake(f"The build stopped; {why}. What was built is kept: run it again to go on.")
    if target == "site":
        console.print(f"[green]The site is here:[/] {plain(house.site(profile) / 'index.html')}", soft_wrap=True)


@contextmanager
def _kernels_forked(house: House, stale: Sequence[str]) -> Iterator[dict[str, str]]:
    """The environment of a build's processes; for several notebooks it says where kernels are forked."""
    if not house.settings.preload or len(stale) <= 1 or not nursery.can_be():
        yield {**os.environ}
        return
    from companion import runner  # slow to import

    # it reads what it is set to before the runner says so
    early = {**os.environ, "PYTHONPATH": str(house.root), "MPLBACKEND": "agg"}
    with (
        runner.socket_folder() as folder,
        processes.started(
            nursery.command(where := str(folder / "nursery"), house.settings.preload), env=early, stdin=subprocess.PIPE
        ),
    ):
        yield {**os.environ, nursery.NURSERY: where}


def _tell_plan(house: House, profile: str, target: str, pieces: bool) -> None:
    """What a build would do, a line a step."""
    from companion import planning

    steps = planning.plan(house, profile, site=target == "site")
    for step in steps:
        console.print(f"{STARTED} {step.verb} {step.what}: {plain('; '.join(step.why))}", soft_wrap=True)
        if pieces and step.verb == planning.RUN:
            from companion import precomputing  # imports the chapters that have pieces, so only when asked for

            files = precomputing.files(house, step.what, profile).values()
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


def _restore_published(house: House) -> None:
    """Bring `figures/` in line with results that are fresh, after a kill or an edit by hand."""
    stamps = freshness.stamps(house, DEFAULT_PROFILE)
    for name in house.notebooks():
        targets = [name, *freshness.pictures(house, name)]
        fresh = all(freshness.intact(house, stamps[target]) for target in targets)
        if fresh and publication.publish_figures(house, name):
            freshness.forget(house.build(DEFAULT_PROFILE), freshness.BOOK)


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
    from companion.site import build_published_site, build_site

    house = House.here()
    house.require_profile(profile)
    if published and profile != DEFAULT_PROFILE:
        raise Mistake(f"Only figures of profile {DEFAULT_PROFILE!r} are published: leave out `--profile {profile}`.")
    console.print(f"{STARTED} the site")
    with atomic.announced(house.build(profile).running / "the site"):
        site = build_published_site(house) if published else build_site(house, profile)
    console.print(f"[green]{DONE}[/] the site: {plain(site)}", soft_wrap=True)


@app.command()
@explained
def pdf(profile: Profile = DEFAULT_PROFILE) -> None:
    """Print the built site as one PDF, with Chromium: every page, in the order of the contents, links within.

    Under figures are their claims; code, data, parameters and origin are left to the site. Chromium is the one that
    `$CHROMIUM` names, else one on the `PATH`.
    """
    from companion.site import is_built

    house = House.here()
    house.require_profile(profile)
    if not is_built(house, profile):
        raise Mistake(f"There is no whole site to print. Build it with `companion build --profile {profile}`.")
    try:
        from companion.printing import print_book
    except ModuleNotFoundError as missing:
        raise Mistake(f"Printing needs {missing.name}: install the extra `pdf` of this book.") from missing
    console.print(f"{STARTED} the PDF")
    console.print(f"[green]{DONE}[/] the PDF: {plain(print_book(house, profile))}", soft_wrap=True)


@app.command()
@explained
def serve(
    profile: Profile = DEFAULT_PROFILE,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The next, if it is taken; 0 takes a free one.")] = 8000,
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Show the built site in a browser, from this machine to this machine only. Ctrl-C ends it."""
    from companion.site import is_built

    house = House.here()
    house.require_profile(profile)
    site = house.site(profile)
    again = f"Build it with `companion build --profile {profile}`."
    if not (site / "index.html").is_file():
        raise Mistake(f"There is no site in {site} yet. {again}")
    if not is_built(house, profile):
        raise Mistake(f"The last build of the site in {site} did not end well, and it may lack pages. {again}")
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
                raise Mistake(f"Port {candidate} cannot be used: {error.strerror}. Name one from 1024 on.") from error
    raise Mistake(f"Ports {ports[0]} to {ports[-1]} are taken. Name another, or 0 for any: `companion serve --port 0`.")


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
    from companion.scaffold import FIRST_NOTEBOOK, lay_out, lay_out_book

    if (notebook is None) == (book is None):
        raise Mistake("Name a notebook, `companion new NAME`, or a folder, `companion new --book FOLDER`.")
    for path in lay_out_book(book) if book else lay_out(House.here(), str(notebook)):
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
    from companion.address import public_address, spread

    if url and unset:
        raise Mistake("Give an address or --unset, not both.")
    house = House.here()
    changed = spread(house, "" if unset else url)
    address = public_address(house) or "The address is not set"
    console.print(f"{address}: {', '.join(changed) if changed else 'every copy says so already'}", soft_wrap=True)
