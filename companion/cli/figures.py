"""Commands that compute: list, run, sweep, draw, piece."""

import math
import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich import progress as bars
from rich.table import Table

from companion.build import cache_keys
from companion.build.progress import DONE, STARTED
from companion.cli.terminal import NotebookName, Profile, app, console, explained, open_page, plain, show_table, shown
from companion.io import atomic
from companion.io.errors import ClaimsFailed, UserError
from companion.project import parameters, provenance
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Project

if TYPE_CHECKING:
    from pandas import DataFrame

    from companion.runs.sweep import Sweep


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
    from companion.build.status import Listing

    project = Project.here()
    project.require_profile(profile)
    listing = Listing.of(project, profile)
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
    show_table(table)


def _in_colour(state: str) -> str:
    return f"[{'green' if state in ('fresh', 'published') else 'yellow'}]{state}[/]"


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
    project = Project.here()
    words = [word for word in (notebook, *context.args) if word not in project.notebooks()]
    parameters.require_one_word(parameter or [], words)
    if context.args:
        raise UserError(f"`companion run` runs one notebook. Got {' '.join((notebook, *context.args))}.")
    project.require_notebook(notebook)
    project.require_profile(profile)
    source = Notebook.named(project, notebook)
    if list_parameters:
        _list_parameters(project, source)
        return
    overrides = parameters.given_once(map(parameters.parse_assignment, parameter or []))
    parameters.check(project, source, parameters.resolve(project, source, profile, overrides))
    if figure:
        source.require_figure(figure)
    if show and not (overrides or figure or apart):
        raise UserError(
            "`--open` shows a run of your own: give `-p`, `--figure` or `--apart`, or see the book, `companion serve`."
        )
    from companion.build import execution

    console.print(f"{STARTED} {notebook}{f'/{figure}' if figure else ''} ({profile})")
    try:
        report = execution.run(project, notebook, profile, overrides, figure, apart=apart)
    except ClaimsFailed:
        if show:
            open_page(execution.own_build(project, notebook, profile, overrides, figure).page)
        raise
    console.print(
        f"[green]{DONE}[/] {notebook}: {len(report.figures)} figures, {report.claims} claims hold, "
        f"{report.seconds:.0f} s. {plain(report.folder)}",
        soft_wrap=True,
    )
    if report.edited:
        console.print(f"  {notebook} was edited while it ran, and is stale: nothing is published. Run it again.")
    if report.page:
        console.print(f"  beside what is published: {plain(report.page)}", soft_wrap=True)
        if show:
            open_page(report.page)
    if report.replaced:
        console.print(f"  replaced in figures/{notebook}: {', '.join(report.replaced)}", soft_wrap=True)


def _list_parameters(project: Project, notebook: Notebook) -> None:
    """What each means and may be, its default and what profiles set; how long the notebook took."""
    profiles = [profile for profile in project.profile_names() if profile != DEFAULT_PROFILE]
    values = {profile: parameters.resolve(project, notebook, profile) for profile in profiles}
    for name, field in parameters.parameters_of(project, notebook.name).model_fields.items():
        default = notebook.defaults.get(name)
        console.print(f"[bold]{name}[/] = {plain(shown(default))}", soft_wrap=True)
        meaning = (field.description or "").strip()
        console.print(f"  {plain(f'{meaning} ({parameters.rule(field)})')}", soft_wrap=True)
        for profile in profiles:
            if (value := values[profile].get(name)) != default:
                console.print(f"  {profile}: {plain(shown(value))}", soft_wrap=True)
    origins = {
        profile: provenance.read(project.build(profile).provenance / f"{notebook.name}.json")
        for profile in project.profile_names()
    }
    times = [
        f"{profile} {origin['seconds']:.0f} s on {origin['cores']} cores"
        for profile, origin in origins.items()
        if origin
    ]
    console.print(f"Last time it took: {', '.join(times)}." if times else "It was not run here yet.", soft_wrap=True)


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
    from companion.runs import sweep as sweeping

    project = Project.here()
    project.require_profile(profile)
    sweeps = sweeping.plan(project, notebooks or [], parameter or [], profile)
    missing = [(one, point) for one in sweeps for point in one.points if not one.is_there(point)]
    console.print(f"{STARTED} {len(missing)} runs of {sum(len(one.points) for one in sweeps)}; the others are there")
    failed = 0
    with bars.Progress(*bars.Progress.get_default_columns(), bars.MofNCompleteColumn(), console=console) as bar:
        task = bar.add_task("Runs", total=len(missing))
        for one, point, fault in sweeping.run(missing, cores):
            bar.advance(task)
            if fault:
                failed += 1
                console.print(f"[red]✗[/] {one.name} at {point}: {plain(fault)}", soft_wrap=True)
    broken = sum(_show_sweep(one, sweeping.write(one)) for one in sweeps)
    if failed:
        raise UserError(f"{failed} runs left no results; why is above. The others are kept.")
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
            str(claim), f"[{colour}]{holds}/{len(outcomes)}[/]", _how_far(float(outcomes["deviation"].to_numpy().max()))
        )
    show_table(table)
    console.print(f"Tables and a picture: {plain(sweep.folder)}", soft_wrap=True)
    return len(claims) - sum(claims["holds"])


def _how_far(deviation: float) -> str:
    """In tolerances; a bound that has none is kept or broken."""
    if math.isinf(deviation):
        return "inside its bound" if deviation < 0 else "beyond its bound"
    return f"{deviation:.2f} tolerances"


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
    from companion.build import redraw

    project = Project.here()
    project.require_profile(profile)
    pairs = redraw.named(project, figures) if figures else _outdated(project, profile)
    if not pairs:
        console.print("Every picture of numbers that are fresh is up to date.")
    for name, figure in pairs:
        replaced = redraw.draw(project, name, figure, profile)
        place = f"; replaced in figures/{name}: {', '.join(replaced)}" if replaced else ""
        console.print(f"[green]{DONE}[/] {name}/{figure} drawn{place}", soft_wrap=True)


def _outdated(project: Project, profile: str) -> list[tuple[str, str]]:
    stamps = cache_keys.stamps(project, profile)
    return [
        (name, figure)
        for name in project.notebooks()
        if cache_keys.intact(project, stamps[name])
        for figure in Notebook.named(project, name).figures
        if not cache_keys.intact(project, stamps[cache_keys.picture_target(name, figure)])
    ]


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
