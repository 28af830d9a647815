"""`companion compare`: compare two runs or builds."""

from pathlib import Path
from typing import Annotated

import typer

from companion.cli.terminal import app, console, explained
from companion.io.errors import UserError, did_you_mean
from companion.project.paths import Project


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
    from companion.figures.comparison import differences

    found = differences(_build_named(old), _build_named(new))
    for name, difference in found.items():
        console.print(f"{'[yellow]≠[/]' if difference else '[green]=[/]'} {name}", soft_wrap=True)
        if difference:
            console.print(f"  {difference}", markup=False, soft_wrap=True)
    differing = sum(map(bool, found.values()))
    console.print(f"{len(found) - differing} figures are equal, {differing} differ.")
    if differing:
        raise typer.Exit(1)


def _build_named(name: str) -> Path:
    """A folder, by its path; else the run of this name."""
    from companion.runs.custom_runs import all_runs

    if Path(name).is_dir():
        return Path(name)
    project = Project.here()
    names = [run.name for run in all_runs(project)]
    if name not in names:
        raise UserError(f"There is no folder and no run {name!r}. {did_you_mean(name, names)}")
    return project.own_build(name).folder
