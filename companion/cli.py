"""The command line: `companion --help` lists what it does."""

import functools
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress
from rich.status import Status
from rich.table import Table

from companion import atomic, figure_set, freshness, parameters, provenance, publication
from companion.house import DEFAULT_PROFILE, Build, House
from companion.mistakes import ClaimsFailed, Mistake
from companion.notebooks import Notebook

if TYPE_CHECKING:
    from pandas import DataFrame

    from companion.sweeping import Sweep

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    help="Rerun the notebooks of the companion, rebuild its figures and its site.",
    epilog="`make book` is `companion build` in a fresh environment; `make test` runs every test.",
)
console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

# How a line begins that says what runs, and what has ended.
STARTED, DONE = "▸", "✓"

Profile = Annotated[
    str,
    typer.Option(
        "--profile",
        help="`laptop` is the notebooks' own parameters; the files in profiles/ override some: `smoke` is small, "
        "`full` is for a cluster or a GPU.",
    ),
]
NotebookName = Annotated[str, typer.Argument(metavar="NOTEBOOK", help="A notebook of book/, without the ending.")]


def main() -> None:
    """Entry point of the `companion` command."""
    app()


def explained(command: Callable[..., None]) -> Callable[..., None]:
    """Show mistakes and failed claims as sentences; exit with 2 and 3."""

    @functools.wraps(command)
    def run(*args, **kwargs):
        try:
            command(*args, **kwargs)
        except Mistake as mistake:
            errors.print(f"[bold red]Error:[/] {_plain(str(mistake))}", soft_wrap=True)
            raise typer.Exit(2) from None
        except ClaimsFailed as failure:
            errors.print(f"[bold red]A claim does not hold.[/] {_plain(str(failure))}", soft_wrap=True)
            raise typer.Exit(3) from None

    return run


@app.command("list")
@explained
def list_figures(profile: Profile = DEFAULT_PROFILE) -> None:
    """Show every figure: fresh, to be redrawn or stale, how long its notebook took, how many claims hold."""
    house = House.here()
    house.require_profile(profile)
    build = house.build(profile)
    table = Table("notebook", "figure", "state", "seconds", "claims", title=f"Profile {profile}", title_justify="left")
    stamps = freshness.stamps(house, profile)
    for name in house.notebooks():
        fresh = freshness.intact(house, stamps[name])
        origin = provenance.read(build.provenance / f"{name}.json")
        seconds = f"{origin['seconds']:.0f}" if origin else "—"
        for figure in Notebook.named(house, name).figures:
            drawn = fresh and freshness.intact(house, stamps[freshness.picture_target(name, figure)])
            state = "[green]fresh[/]" if drawn else "[yellow]redraw[/]" if fresh else "[yellow]stale[/]"
            whole = not figure_set.faults(build.figures / name, figure)
            record = figure_set.read_record(build.figures / name, figure) if whole else None
            claims = f"{sum(claim['holds'] for claim in record['claims'])}/{len(record['claims'])}" if record else "—"
            table.add_row(name, figure, state, seconds, claims)
    book = "[green]fresh[/]" if freshness.intact(house, stamps[freshness.BOOK]) else "[yellow]stale[/]"
    table.add_row("", "the site", book, "", "")
    console.print(table)


@app.command()
@explained
def run(
    notebook: NotebookName,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="A parameter; repeatable."),
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
) -> None:
    """Run one notebook, with parameters of your own if you like.

    Without `-p` its results become those of the profile, if every claim holds. With `-p` they go to a folder of their
    own, under `_build/runs/`, whatever its claims say.
    """
    house = House.here()
    house.require_notebook(notebook)
    house.require_profile(profile)
    overrides = dict(map(parameters.parse_assignment, parameter or []))
    source = Notebook.named(house, notebook)
    parameters.check(house, source, parameters.resolve(house, source, profile, overrides))
    from companion import runner  # imports what a mistaken parameter should not have to wait for

    console.print(f"{STARTED} {notebook} ({profile})")
    report = runner.run(house, notebook, profile, overrides)
    console.print(
        f"[green]{DONE}[/] {notebook}: {len(report.figures)} figures, {report.claims} claims hold, "
        f"{report.seconds:.0f} s. {report.folder}",
        soft_wrap=True,
    )
    if report.replaced:
        console.print(f"  replaced in figures/{notebook}: {', '.join(report.replaced)}", soft_wrap=True)


@app.command()
@explained
def sweep(
    notebooks: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NOTEBOOK]...", help="Which; without, all that have these parameters."),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUES", help="`seed=1:10` or `length=10,100`; repeatable."),
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
    cores: Annotated[int, typer.Option(min=1, help="How many runs at once.")] = 2,
) -> None:
    """Run notebooks at several values of parameters: do their claims still hold?

    Every combination is a run of its own, kept under `_build/runs/`: stop it when you like, the same line goes on.
    """
    from companion import sweeping

    house = House.here()
    house.require_profile(profile)
    sweeps = sweeping.plan(house, notebooks or [], parameter or [], profile)
    missing = [(one, point) for one in sweeps for point in one.points if not one.is_there(point)]
    console.print(f"{STARTED} {len(missing)} runs of {sum(len(one.points) for one in sweeps)}; the others are there")
    failed = 0
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=console) as bar:
        task = bar.add_task("Runs", total=len(missing))
        for one, point, fault in sweeping.run(missing, cores):
            bar.advance(task)
            if fault:
                failed += 1
                console.print(f"[red]✗[/] {one.name} at {point}: {_plain(fault)}", soft_wrap=True)
    broken = sum(_show_sweep(one, sweeping.write(one)) for one in sweeps)
    if failed:
        raise Mistake(f"{failed} runs left no results; why is above. The others are kept.")
    if broken:
        raise ClaimsFailed(f"{broken} outcomes of claims above.")


def _show_sweep(sweep: "Sweep", claims: "DataFrame") -> int:
    """A table of its claims, where more is to be seen; how many outcomes do not hold."""
    if claims.empty:
        return 0
    name, points = sweep.name, len(sweep.points)
    table = Table("claim", "holds", "furthest off", title=f"{name}, {points} runs", title_justify="left")
    for claim, outcomes in claims.groupby("claim", sort=False):
        holds = sum(outcomes["holds"])
        colour = "green" if holds == len(outcomes) else "red"
        table.add_row(
            str(claim), f"[{colour}]{holds}/{len(outcomes)}[/]", f"{outcomes['deviation'].max():.2f} tolerances"
        )
    console.print(table)
    console.print(f"Tables and a picture: {sweep.folder}", soft_wrap=True)
    return len(claims) - sum(claims["holds"])


@app.command()
@explained
def draw(
    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIGURE]...", help="`notebook/figure`, a figure, or a notebook for all of its own."),
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
) -> None:
    """Redraw figures from their stored tables, without a kernel; without names, those whose picture is out of date.

    What is read again is `draw` and the docstring of the figure's file, and the style. In a fresh clone, where nothing
    was run yet, the published tables are drawn.
    """
    from companion import redrawing

    house = House.here()
    house.require_profile(profile)
    pairs = redrawing.named(house, figures) if figures else _outdated(house, profile)
    if not pairs:
        console.print("Every picture of numbers that are fresh is up to date.")
    for name, figure in pairs:
        replaced = redrawing.draw(house, name, figure, profile)
        place = f"; replaced in figures/{name}: {', '.join(replaced)}" if replaced else ""
        console.print(f"[green]{DONE}[/] {name}/{figure} drawn{place}", soft_wrap=True)


def _outdated(house: House, profile: str) -> list[tuple[str, str]]:
    stamps = freshness.stamps(house, profile)
    return [
        (name, figure)
        for name in house.notebooks()
        if freshness.intact(house, stamps[name])
        for figure in Notebook.named(house, name).figures
        if not freshness.intact(house, stamps[freshness.picture_target(name, figure)])
    ]


@app.command()
@explained
def compare(
    old: Annotated[
        Path, typer.Argument(metavar="OLD", help="A build: `_build/laptop`, one of `_build/runs`, or `figures`.")
    ],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Another.")],
) -> None:
    """Compare two builds figure by figure: columns, rows, every number to its last digit, claims.

    Names the first difference of each figure. Exit code 0: equal; 1: not.
    """
    from companion.comparing import differences

    found = differences(old, new)
    for name, difference in found.items():
        console.print(f"{'[yellow]≠[/]' if difference else '[green]=[/]'} {name}", soft_wrap=True)
        if difference:
            console.print(f"  {difference}", markup=False, soft_wrap=True)
    differing = sum(map(bool, found.values()))
    console.print(f"{len(found) - differing} figures are equal, {differing} differ.")
    if differing:
        raise typer.Exit(1)


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
    from companion import precomputing

    house = House.here()
    house.require_notebook(notebook)
    house.require_profile(profile)
    if name is None:
        files = precomputing.files(house, notebook, profile)
        for piece_name, file in files.items():
            console.print(f"[green]{DONE}[/]" if file.is_file() else " ", piece_name)
        console.print(f"{sum(file.is_file() for file in files.values())} of {len(files)} pieces are there.")
        return
    console.print(f"{STARTED} {notebook}/{name} ({profile})")
    clock = time.monotonic()
    with atomic.announced(house.build(profile).running / f"{notebook}-{name}"):
        precomputing.compute(house, notebook, name, profile)
    console.print(f"[green]{DONE}[/] {notebook}/{name}: {time.monotonic() - clock:.0f} s")


@app.command()
@explained
def build(
    profile: Profile = DEFAULT_PROFILE,
    cores: Annotated[int, typer.Option(min=1, help="How many notebooks run at once.")] = 2,
    target: Annotated[str, typer.Option(help="`site`, or only the `figures`.")] = "site",
    pieces: Annotated[
        bool, typer.Option("--pieces", help="Compute heavy computations in pieces first, each in its own process.")
    ] = False,
) -> None:
    """Rebuild what is stale: figures, then the site, each from the other's content."""
    house = House.here()
    house.require_profile(profile)
    house.require_configuration()
    parameters.check_profiles(house)
    stamps = freshness.stamps(house, profile)
    for name in house.notebooks():
        if not freshness.intact(house, stamps[name]):  # what is fresh was checked when it ran
            notebook = Notebook.named(house, name)
            parameters.check(house, notebook, parameters.resolve(house, notebook, profile))
    if target not in ("site", "figures"):
        raise Mistake(f"--target is `site` or `figures`. Got {target!r}.")
    with atomic.locked(house.generated / ".build.lock", "Waiting for another build to end."):
        if profile == DEFAULT_PROFILE:
            _restore_published(house)
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "snakemake", target, "--cores", str(cores), "--directory", str(house.root)),
                *("--snakefile", str(house.root / "Snakefile"), "--config", f"profile={profile}"),
                *(["pieces=1"] if pieces else []),
                # ours is the lock, and stamps are the only outputs: a killed run leaves nothing to unlock or to doubt
                *("--nolock", "--rerun-incomplete", "--rerun-triggers", "mtime", "--quiet", "all"),
            ],
            cwd=house.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        _follow(process, house.build(profile))
    if process.returncode:
        raise Mistake("The build stopped; what went wrong is above. What was built is kept: run it again to go on.")
    if target == "site":
        console.print(f"[green]The site is here:[/] {house.site(profile) / 'index.html'}", soft_wrap=True)


def _follow(process: subprocess.Popen[str], build: Build) -> None:
    """Pass on what the build says, line by line; on a terminal, show what its processes announce to be running."""
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
            console.print(line.rstrip(), markup=False, soft_wrap=True)
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
def book(profile: Profile = DEFAULT_PROFILE) -> None:
    """Assemble the site from results that are there, every warning an error."""
    from companion.site import build_site

    house = House.here()
    house.require_profile(profile)
    console.print(f"{STARTED} the site")
    with atomic.announced(house.build(profile).running / "the site"):
        site = build_site(house, profile)
    console.print(f"[green]{DONE}[/] the site: {site}", soft_wrap=True)


@app.command()
@explained
def serve(
    profile: Profile = DEFAULT_PROFILE,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
) -> None:
    """Show the built site in a browser, from this machine to this machine only. Ctrl-C ends it."""
    house = House.here()
    house.require_profile(profile)
    site = house.site(profile)
    if not (site / "index.html").is_file():
        raise Mistake(f"There is no site in {site} yet. Build it with `companion build --profile {profile}`.")
    import http.server  # slow to import, as nothing else here is

    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        console.print(f"http://127.0.0.1:{server.server_port}/ — Ctrl-C ends it.")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            console.print("Ended.")


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
        console.print(f"[green]+[/] {path}", soft_wrap=True)
    inside = f"cd {book} && " if book else ""
    console.print(f"It runs as it is: {inside}companion run {notebook or FIRST_NOTEBOOK}", soft_wrap=True)


@app.command()
@explained
def address(
    url: Annotated[str | None, typer.Argument(metavar="[URL]", help="https://github.com/OWNER/NAME")] = None,
) -> None:
    """Write the repository's public address, defined in _config.yml, to every place that needs a copy."""
    from companion.address import public_address, spread

    house = House.here()
    changed = spread(house, url)
    console.print(f"{public_address(house)}: {', '.join(changed) if changed else 'every copy says so already'}")


def _plain(text: str) -> str:
    """Square brackets are markup to rich and citations to us."""
    return text.replace("[", "\\[")
