"""The command line: `companion --help` lists what it does."""

import errno
import functools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import progress as bars
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.status import Status
from rich.table import Table

from companion import atomic, freshness, parameters, processes, provenance, publication, stopping
from companion.house import DEFAULT_PROFILE, Build, House
from companion.mistakes import ClaimsFailed, Mistake, did_you_mean
from companion.notebooks import Notebook
from companion.progress import DONE, STARTED, Progress, known_seconds, time_needed

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

    from pandas import DataFrame

    from companion.sweeping import Sweep
    from companion.verifying import Verdict

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    epilog="`make book` is `companion build` in a fresh environment; `make test` runs every test.",
)
console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

# How a disk, or a person's share of one, says that it is full.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)

# `companion serve` looks for a free port among so many.
PORTS_TRIED = 20


def _completed(known: Callable[[House], list[str]]) -> Callable[[str], list[str]]:
    """What a shell offers for a word that was begun; outside a book nothing, and no fault."""

    def offered(begun: str) -> list[str]:
        try:
            return [name for name in known(House.here()) if name.startswith(begun)]
        except Mistake:
            return []

    return offered


Profile = Annotated[
    str,
    typer.Option(
        "--profile",
        help="`laptop` is the notebooks' own parameters; the files in profiles/ override some: `smoke` is small, "
        "`full` is for a cluster or a GPU.",
        autocompletion=_completed(House.profile_names),
    ),
]
NotebookName = Annotated[
    str,
    typer.Argument(
        metavar="NOTEBOOK",
        help="A notebook of book/, without the ending.",
        autocompletion=_completed(House.notebooks),
    ),
]


def _say_version(asked: bool) -> None:
    if asked:
        print(provenance.version())
        raise typer.Exit


@app.callback()
def common(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version and exit.")
    ] = False,
) -> None:
    """Rerun the notebooks of the companion, rebuild its figures and its site."""


def explained(command: Callable[..., None]) -> Callable[..., None]:
    """Show in sentences mistakes and a full disk (exit code 2), failed claims (3), a signal (as a shell tells it)."""

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
        except OSError as fault:
            if fault.errno not in NO_SPACE:
                raise
            place = f" ({_plain(fault.filename)})" if fault.filename else ""
            errors.print(
                f"[bold red]Error:[/] No space is left on the disk{place}. Nothing is half-written: make room, and the "
                "same line goes on.",
                soft_wrap=True,
            )
            raise typer.Exit(2) from None
        except KeyboardInterrupt as stop:
            errors.print(stopping.SENTENCE)
            raise typer.Exit(stopping.exit_code(stop)) from None

    return run


@app.command("list")
@explained
def list_figures(
    profile: Profile = DEFAULT_PROFILE,
    as_json: Annotated[bool, typer.Option("--json", help="The same for other programs.")] = False,
) -> None:
    """Show every figure: its state, how long its notebook took, how many of its claims hold.

    **fresh**: built here from what is there now. **redraw**: its numbers are fresh, its picture is not; no kernel is
    needed. **stale**: what it is made of has changed, or it was not computed yet. **published**: never computed here,
    and shown as it is in `figures/`, as in a fresh clone; a function of the library that has changed since is not seen.
    The site is **fresh**, **published** (`companion book --published`), **stale** or **not built**.
    """
    from companion.listing import Listing

    house = House.here()
    house.require_profile(profile)
    listing = Listing.of(house, profile)
    if as_json:
        print(atomic.dump_json(listing.as_json()), end="")
        return
    table = Table("notebook", "figure", "state", "seconds", "claims", title=f"Profile {profile}", title_justify="left")
    for row in listing.rows:
        table.add_row(
            row.notebook,
            row.figure,
            _in_colour(row.state),
            "—" if row.seconds is None else f"{row.seconds:.0f}",
            "—" if row.claims is None else f"{row.holding}/{row.claims}",
        )
    table.add_row("", "the site", _in_colour(listing.site), "", "")
    _show_table(table)


def _in_colour(state: str) -> str:
    return f"[{'green' if state in ('fresh', 'published') else 'yellow'}]{state}[/]"


def _show_table(table: Table) -> None:
    """Print a table: within the width of a terminal, names folded; elsewhere as wide as it is, whole in every line."""
    for column in table.columns:
        column.overflow = "fold"
    if console.is_terminal:
        console.print(table)
        return
    widest = Measurement.get(console, console.options.update(max_width=sys.maxsize), table).maximum
    Console(highlight=False, width=widest).print(table)


@app.command(context_settings={"allow_extra_args": True})
@explained
def run(
    context: typer.Context,
    notebook: NotebookName,
    *,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="A parameter; repeatable."),
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
    figure: Annotated[
        str | None,
        typer.Option("--figure", metavar="FIGURE", help="Run only the steps that lead to this figure, for yourself."),
    ] = None,
    apart: Annotated[
        bool, typer.Option("--apart", help="Run as published, and keep the results to yourself, as with `-p`.")
    ] = False,
    show: Annotated[
        bool,
        typer.Option(
            "--open", help="With `-p`, `--figure` or `--apart`: open the run's page, whatever its claims say."
        ),
    ] = False,
    list_parameters: Annotated[
        bool, typer.Option("--parameters", help="Run nothing: list the notebook's parameters, and how long it takes.")
    ] = False,
) -> None:
    """Run one notebook, with parameters of your own if you like.

    Without `-p` its results become those of the profile, if every claim holds. With `-p` or `--apart`, and of one
    figure with `--figure`, they go to a folder of their own, under `_build/runs/`, whatever its claims say; its page
    there, `index.html`, has them beside what is published.
    What parameters there are, `companion run NOTEBOOK --parameters` lists.
    """
    house = House.here()
    words = [word for word in (notebook, *context.args) if word not in house.notebooks()]
    parameters.require_one_word(parameter or [], words)
    if context.args:
        raise Mistake(f"`companion run` runs one notebook. Got {' '.join((notebook, *context.args))}.")
    house.require_notebook(notebook)
    house.require_profile(profile)
    source = Notebook.named(house, notebook)
    if list_parameters:
        _list_parameters(house, source)
        return
    overrides = parameters.given_once(map(parameters.parse_assignment, parameter or []))
    parameters.check(house, source, parameters.resolve(house, source, profile, overrides))
    if figure:
        source.require_figure(figure)
    if show and not (overrides or figure or apart):
        raise Mistake(
            "`--open` shows a run of your own: give `-p`, `--figure` or `--apart`, or see the book, `companion serve`."
        )
    from companion import runner  # imports what a mistaken parameter should not have to wait for

    console.print(f"{STARTED} {notebook}{f'/{figure}' if figure else ''} ({profile})")
    try:
        report = runner.run(house, notebook, profile, overrides, figure, apart=apart)
    except ClaimsFailed:
        if show:
            _open(runner.own_build(house, notebook, profile, overrides, figure).page)
        raise
    console.print(
        f"[green]{DONE}[/] {notebook}: {len(report.figures)} figures, {report.claims} claims hold, "
        f"{report.seconds:.0f} s. {_plain(report.folder)}",
        soft_wrap=True,
    )
    if report.edited:
        console.print(f"  {notebook} was edited while it ran, and is stale: nothing is published. Run it again.")
    if report.page:
        console.print(f"  beside what is published: {_plain(report.page)}", soft_wrap=True)
        if show:
            _open(report.page)
    if report.replaced:
        console.print(f"  replaced in figures/{notebook}: {', '.join(report.replaced)}", soft_wrap=True)


def _list_parameters(house: House, notebook: Notebook) -> None:
    """What each means and may be, its default and what profiles set; how long the notebook took."""
    profiles = [profile for profile in house.profile_names() if profile != DEFAULT_PROFILE]
    values = {profile: parameters.resolve(house, notebook, profile) for profile in profiles}
    for name, field in parameters.parameters_of(house, notebook.name).model_fields.items():
        default = notebook.defaults.get(name)
        console.print(f"[bold]{name}[/] = {_plain(_shown(default))}", soft_wrap=True)
        meaning = (field.description or "").strip()
        console.print(f"  {_plain(f'{meaning} ({parameters.rule(field)})')}", soft_wrap=True)
        for profile in profiles:
            if (value := values[profile].get(name)) != default:
                console.print(f"  {profile}: {_plain(_shown(value))}", soft_wrap=True)
    origins = {
        profile: provenance.read(house.build(profile).provenance / f"{notebook.name}.json")
        for profile in house.profile_names()
    }
    times = [
        f"{profile} {origin['seconds']:.0f} s on {origin['cores']} cores"
        for profile, origin in origins.items()
        if origin
    ]
    console.print(f"Last time it took: {', '.join(times)}." if times else "It was not run here yet.", soft_wrap=True)


def _open(page: Path) -> None:
    """Show a page in the browser, or say that there is none: its path is printed anyway."""
    import webbrowser

    if not webbrowser.open(page.as_uri()):
        errors.print("No browser was found: open the page yourself.")


@app.command()
@explained
def runs(as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False) -> None:
    """List the runs with `-p` or `--figure`: what you changed, when, how many claims hold, where the page is."""
    from companion.runs import all_runs

    found = [run.in_short() for run in all_runs(House.here())]
    if as_json:
        typer.echo(atomic.dump_json(found), nl=False)
        return
    if not found:
        console.print("There are no runs of your own yet: companion run NOTEBOOK -p NAME=VALUE.")
        return
    for one in found:
        colour = "green" if one["hold"] == one["claims"] else "red"
        console.print(
            f"[bold]{one['name']}[/]  [{colour}]{one['hold']}/{one['claims']} claims hold[/]  "
            f"{one['started'] or 'when is not known'}",
            soft_wrap=True,
        )
        changed = ", ".join(f"{name}: {_shown(old)} → {_shown(new)}" for name, (old, new) in one["changed"].items())
        console.print(f"  {_plain(changed) or 'as published'}", soft_wrap=True)
        console.print(f"  {_plain(one['page'])}", soft_wrap=True)


def _shown(value: Any) -> str:
    """A parameter as it is typed."""
    return json.dumps(value, ensure_ascii=False)


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
    with bars.Progress(*bars.Progress.get_default_columns(), bars.MofNCompleteColumn(), console=console) as bar:
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
    _show_table(table)
    console.print(f"Tables and a picture: {_plain(sweep.folder)}", soft_wrap=True)
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
        str, typer.Argument(metavar="OLD", help="A run, as `companion runs` names it, or a folder: `figures`, …")
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Another.")],
) -> None:
    """Compare two runs or builds figure by figure: columns, rows, every number to its last digit, claims.

    A build is a folder such as `_build/laptop`, or `figures`, whose numbers have six digits. Names the first difference
    of each figure. Exit code 0: equal; 1: not.
    """
    from companion.comparing import differences

    found = differences(_build_named(old), _build_named(new))
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
def verify(
    notebooks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NOTEBOOK]...", help="Which; without, all.", autocompletion=_completed(House.notebooks)
        ),
    ] = None,
    figures: Annotated[
        Path | None, typer.Option("--figures", metavar="FOLDER", help="Published figures from elsewhere.")
    ] = None,
    cores: Annotated[int, typer.Option(min=1, help="How many notebooks run at once.")] = 2,
) -> None:
    """Compute the published figures again, and say whether they are what the code gives.

    Every number is compared as a rebuild compares it, so is every claim, and every picture with its table; how far
    each figure is from the published one is told in units of what is allowed. Nothing is published, nothing computed
    before is used: the book is copied to `_build/verify/` and run there. Without a clone, it is the book that was
    installed with this command, and `figures/` in the working folder.

    Exit code 0: all as published; 1: not; 2: a notebook could not be run.
    """
    from companion.verifying import Verification

    verification = Verification.of(figures)
    home = verification.home
    with atomic.locked(home.generated / ".verify.lock", "Waiting for another verification to end."):
        house = verification.lay_out()
        for name in notebooks or []:
            house.require_notebook(name)
        names = list(dict.fromkeys(notebooks or house.notebooks()))
        progress, faults = Progress(known_seconds(home, DEFAULT_PROFILE, names), cores), {}

        def tell(line: str) -> None:
            console.print(progress.told(line, time.monotonic()), markup=False, soft_wrap=True)

        with closing(verification.run(names, cores, lambda name: tell(f"{STARTED} {name}"))) as ended:
            for name, fault in ended:
                tell(f"{'✗' if fault else DONE} {name}")
                faults |= {name: fault} if fault else {}
        verdicts = [verdict for name in names if name not in faults for verdict in verification.verdicts(house, name)]
        differing = _show_verdicts(verdicts)
        strangers = [] if notebooks else verification.strangers(house)
    for name in strangers:
        console.print(f"{_plain(verification.published / name)} belongs to no notebook.", soft_wrap=True)
    if faults:
        raise Mistake("\n".join(f"{name} could not be run. {fault}" for name, fault in faults.items()))
    if differing or strangers:
        console.print(
            f"{differing} of {len(verdicts)} figures are not what the code gives. Computed again: {_plain(house.runs)}",
            soft_wrap=True,
        )
        raise typer.Exit(1)
    console.print(f"All {len(verdicts)} figures are what the code gives.")


def _show_verdicts(verdicts: "list[Verdict]") -> int:
    """A table of how far each figure is from the published one; how many are too far."""
    table = Table("figure", "furthest", "in tolerances", "published", "here")
    for verdict in verdicts:
        if not verdict.differences:
            table.add_row(f"[green]{DONE}[/] {verdict.figure}", _plain(verdict.name), f"{verdict.furthest:.2g}")
        for place, found in enumerate(verdict.differences):
            table.add_row(
                "" if place else f"[red]✗[/] {verdict.figure}",
                *map(_plain, (found.what, f"{found.by:.3g}", found.published, found.here)),
            )
    _show_table(table)
    return sum(bool(verdict.differences) for verdict in verdicts)


def _build_named(name: str) -> Path:
    """A folder, by its path; else the run of this name."""
    from companion.runs import all_runs

    if Path(name).is_dir():
        return Path(name)
    house = House.here()
    names = [run.name for run in all_runs(house)]
    if name not in names:
        raise Mistake(f"There is no folder and no run {name!r}. {did_you_mean(name, names)}")
    return house.own_build(name).folder


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
        with processes.started(command, cwd=house.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            _follow(process, house.build(profile), Progress(seconds, cores))
    if process.returncode:
        edited = freshness.stamps(house, profile) != stamps
        why = "what it builds was edited meanwhile" if edited else "what went wrong is above"
        raise Mistake(f"The build stopped; {why}. What was built is kept: run it again to go on.")
    if target == "site":
        console.print(f"[green]The site is here:[/] {_plain(house.site(profile) / 'index.html')}", soft_wrap=True)


def _tell_plan(house: House, profile: str, target: str, pieces: bool) -> None:
    """What a build would do, a line a step."""
    from companion import planning

    steps = planning.plan(house, profile, site=target == "site")
    for step in steps:
        console.print(f"{STARTED} {step.verb} {step.what}: {_plain('; '.join(step.why))}", soft_wrap=True)
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
    console.print(f"[green]{DONE}[/] the site: {_plain(site)}", soft_wrap=True)


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
    with _server(site, port) as server:
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


def _server(site: Path, port: int) -> "ThreadingHTTPServer":
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
        console.print(f"[green]+[/] {_plain(path)}", soft_wrap=True)
    inside = f"cd {_plain(book)} && " if book else ""
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


def _plain(text: str | Path) -> str:
    """Square brackets are markup to rich; to us they are citations, and may stand in the name of a folder."""
    return escape(str(text))
