"""`companion sweep`: run notebooks at several values of parameters."""

import math
from typing import TYPE_CHECKING, Annotated

import typer
from rich import progress as bars
from rich.table import Table

from companion.build.progress import STARTED
from companion.cli.terminal import Profile, app, console, explained, plain, show_table
from companion.io.errors import ClaimsFailed, UserError
from companion.project.paths import DEFAULT_PROFILE, Project

if TYPE_CHECKING:
    from pandas import DataFrame

    from companion.runs.sweep import Sweep


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
