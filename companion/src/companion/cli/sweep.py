"""`companion sweep`: run notebooks at several values of parameters."""

import math
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import track
from rich.table import Table

from companion.build.progress import STARTED
from companion.cli.terminal import (
    ONE_NOTEBOOK,
    Profile,
    app,
    completer,
    console,
    counted,
    escaped,
    report_errors,
    show_table,
)
from companion.io.errors import ClaimsFailed, UserError
from companion.project.paths import DEFAULT_PROFILE, Project

if TYPE_CHECKING:
    from pandas import DataFrame

    from companion.runs.sweep import Sweep


@app.command(rich_help_panel=ONE_NOTEBOOK)
@report_errors
def sweep(
    notebooks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NOTEBOOK]...",
            help="Notebooks to run (default: all that have these parameters).",
            autocompletion=completer(Project.notebooks),
        ),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter",
            "-p",
            metavar="NAME=VALUES",
            help="Values of a parameter, `seed=1:10` or `repeats=10,100`; repeatable. The values of a list have "
            "brackets, and the shell needs quotes: `-p 'lengths=[10, 100], [10, 1000]'`.",
        ),
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
    cores: Annotated[int, typer.Option(min=1, help="Number of runs at the same time.")] = 2,
) -> None:
    """Run notebooks for a grid of parameters and count how often each claim holds.

    Every combination of values is a custom run in `_build/runs/`. A sweep that was stopped continues when the same
    command is given again.

    Example:

        companion sweep first_figure -p seed=1:10
    """
    from companion.runs import sweep as sweeping

    project = Project.here()
    project.require_profile(profile)
    sweeps = sweeping.plan(project, notebooks or [], parameter or [], profile)
    missing = [run.spec for planned in sweeps for run in planned.runs if not planned.is_cached(run)]
    total = sum(len(planned.runs) for planned in sweeps)
    console.print(f"{STARTED} Running {len(missing)} of {total} ({total - len(missing)} cached)")
    failed = 0
    for spec, error in track(sweeping.run(project, missing, cores), "Runs", len(missing), console=console):
        if error:
            failed += 1
            console.print(f"[red]✗[/] {spec.notebook} at {escaped(str(spec.parameters))}: {escaped(error)}")
    broken = sum(_show_claims(finished, sweeping.write(finished)) for finished in sweeps)
    if failed:
        raise UserError(f"{counted(failed, 'run')} failed; the errors are above. The results of the others are kept.")
    if broken:
        raise ClaimsFailed(f"{counted(broken, 'failure')} in the table above.")


def _show_claims(sweep: "Sweep", claims: "DataFrame") -> int:
    """Print how often each claim of a sweep holds; return the number of failures."""
    if claims.empty:
        return 0
    title = f"{sweep.name}, {counted(len(sweep.runs), 'run')}"
    table = Table("claim", "holds", "largest deviation", title=title, title_justify="left")
    for claim, outcomes in claims.groupby("claim", sort=False):
        holds = sum(outcomes["holds"])
        colour = "green" if holds == len(outcomes) else "red"
        deviation = float(outcomes["deviation"].to_numpy().max())
        table.add_row(str(claim), f"[{colour}]{holds}/{len(outcomes)}[/]", _in_tolerances(deviation))
    show_table(table)
    console.print(f"Tables and a picture: {escaped(sweep.folder)}")
    return len(claims) - sum(claims["holds"])


def _in_tolerances(deviation: float) -> str:
    """Return a deviation in words; it is infinite, of either sign, for a bound without a tolerance."""
    if math.isinf(deviation):
        return "within its bound" if deviation < 0 else "beyond its bound"
    return f"{deviation:.2f} tolerances"
