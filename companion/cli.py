"""The command line: list, run, build, shard, serve, new, address. `companion --help` says what each is for."""

import functools
import http.server
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from companion import atomic, figure_set, freshness, parameters, provenance, publication
from companion.house import DEFAULT_PROFILE, House
from companion.mistakes import ClaimsFailed, Mistake
from companion.notebooks import Notebook

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    help="Rerun the notebooks of the companion, rebuild its figures and its site.",
    epilog="`make book` is `companion build` in a fresh environment; `make test` runs every test.",
)
console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

# How a line begins that says what runs and what has ended.
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
    """Show every figure: fresh or stale, how long its notebook took, how many claims hold."""
    house = House.here()
    house.require_profile(profile)
    build = house.build(profile)
    table = Table("notebook", "figure", "state", "seconds", "claims", title=f"Profile {profile}", title_justify="left")
    for name in house.notebooks():
        fresh = freshness.is_fresh(house, name, profile)
        origin = provenance.read(build.provenance / f"{name}.json")
        seconds = f"{origin['seconds']:.0f}" if origin else "—"
        for figure in Notebook.named(house, name).figures:
            whole = not figure_set.faults(build.figures / name, figure)
            record = figure_set.read_record(build.figures / name, figure) if whole else None
            claims = f"{sum(claim['holds'] for claim in record['claims'])}/{len(record['claims'])}" if record else "—"
            table.add_row(name, figure, "[green]fresh[/]" if fresh else "[yellow]stale[/]", seconds, claims)
    book = "[green]fresh[/]" if freshness.is_fresh(house, freshness.BOOK, profile) else "[yellow]stale[/]"
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

    Without `-p` its results become those of the profile. With `-p` they go to a folder of their own,
    under `_build/runs/`.
    """
    from companion import runner

    house = House.here()
    house.require_notebook(notebook)
    house.require_profile(profile)
    overrides = dict(map(parameters.parse_assignment, parameter or []))
    parameters.check(
        Notebook.named(house, notebook),
        parameters.resolve(house, Notebook.named(house, notebook), profile, overrides),
    )
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
def shard(
    notebook: NotebookName,
    name: Annotated[str | None, typer.Argument(metavar="[SHARD]", help="Which; without, all are listed.")] = None,
    profile: Profile = DEFAULT_PROFILE,
) -> None:
    """Compute one piece of a heavy simulation beforehand; the notebook takes it instead of computing it.

    `companion build --shards` does this for all pieces, as Snakemake on a cluster does with `--config shards=1`.
    """
    from companion import shards

    house = House.here()
    house.require_notebook(notebook)
    house.require_profile(profile)
    if name is None:
        files = shards.files(house, notebook, profile)
        for shard_name, file in files.items():
            console.print(f"[green]{DONE}[/]" if file.is_file() else " ", shard_name)
        console.print(f"{sum(file.is_file() for file in files.values())} of {len(files)} shards are there.")
        return
    console.print(f"{STARTED} {notebook}/{name} ({profile})")
    clock = time.monotonic()
    shards.compute(house, notebook, name, profile)
    console.print(f"[green]{DONE}[/] {notebook}/{name}: {time.monotonic() - clock:.0f} s")


@app.command()
@explained
def build(
    profile: Profile = DEFAULT_PROFILE,
    cores: Annotated[int, typer.Option(min=1, help="How many notebooks run at once.")] = 2,
    target: Annotated[str, typer.Option(help="`site`, or only the `figures`.")] = "site",
    shards: Annotated[
        bool, typer.Option("--shards", help="Compute heavy simulations in pieces first, each in its own process.")
    ] = False,
) -> None:
    """Rebuild what is stale: figures, then the site, each from the other's content."""
    house = House.here()
    house.require_profile(profile)
    parameters.check_profiles(house)
    for name in house.notebooks():
        if not freshness.is_fresh(house, name, profile):  # what is fresh was checked when it ran
            notebook = Notebook.named(house, name)
            parameters.check(notebook, parameters.resolve(house, notebook, profile))
    if target not in ("site", "figures"):
        raise Mistake(f"--target is `site` or `figures`. Got {target!r}.")
    with atomic.locked(house.generated / ".build.lock", "Waiting for another build to end."):
        if profile == DEFAULT_PROFILE:
            _restore_published(house)
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "snakemake", target, "--cores", str(cores), "--directory", str(house.root)),
                *("--snakefile", str(house.root / "Snakefile"), "--config", f"profile={profile}"),
                *(["shards=1"] if shards else []),
                # ours is the lock, and stamps are the only outputs: a killed run leaves nothing to unlock or to doubt
                *("--nolock", "--rerun-incomplete", "--rerun-triggers", "mtime", "--quiet", "all"),
            ],
            cwd=house.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        _follow(process)
    if process.returncode:
        raise Mistake("The build stopped; what went wrong is above. What was built is kept: run it again to go on.")
    if target == "site":
        console.print(f"[green]The site is here:[/] {house.site(profile) / 'index.html'}", soft_wrap=True)


def _follow(process: subprocess.Popen[str]) -> None:
    """Pass on what the build says, line by line; on a terminal, also show what is running."""
    assert process.stdout is not None
    running: list[str] = []
    with console.status("Looking for what is stale") as status, process.stdout as lines:
        for line in lines:
            console.print(line.rstrip(), markup=False, soft_wrap=True)
            sign, _, rest = line.partition(" ")
            name = rest.split(" (")[0].split(":")[0].strip()
            if sign == STARTED:
                running.append(name)
            elif sign == DONE and name in running:
                running.remove(name)
            status.update(f"Running {', '.join(running)}" if running else "Looking for what is left")
    process.wait()


def _restore_published(house: House) -> None:
    """Bring `figures/` in line with results that are fresh, after a kill or an edit by hand."""
    for name in house.notebooks():
        if freshness.is_fresh(house, name, DEFAULT_PROFILE) and publication.publish_figures(house, name):
            freshness.forget(house.build(DEFAULT_PROFILE), freshness.BOOK)


@app.command()
@explained
def book(profile: Profile = DEFAULT_PROFILE) -> None:
    """Assemble the site from results that are there, every warning an error."""
    from companion.site import build_site

    house = House.here()
    house.require_profile(profile)
    console.print(f"{STARTED} the site")
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
    notebook: Annotated[str, typer.Argument(metavar="NAME", help="Lower case, words joined by underscores.")],
) -> None:
    """Lay out a new notebook: source, experiment, plot, profile entry, table-of-contents row."""
    from companion.scaffold import lay_out

    for path in lay_out(House.here(), notebook):
        console.print(f"[green]+[/] {path}")
    console.print(f"It runs as it is: companion run {notebook}")


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
