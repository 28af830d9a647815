"""`companion compare`: compare two runs or builds."""

from pathlib import Path
from typing import Annotated

import typer

from companion.cli.terminal import COMPARE_AND_VERIFY, app, console, report_errors
from companion.io.errors import UserError, did_you_mean
from companion.project.paths import Project


@app.command(rich_help_panel=COMPARE_AND_VERIFY)
@report_errors
def compare(
    old: Annotated[
        str,
        typer.Argument(metavar="OLD", help="A custom run, by its name in `companion list --runs`, or a folder."),
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The run or folder to compare it with.")],
) -> None:
    """Compare two runs or builds figure by figure.

    The command compares columns, rows, every digit of every number, and claims; it prints the first difference of each
    figure. A folder is that of a build, for example `_build/laptop`, or `figures`, whose numbers have six digits. With
    a custom run, only the figures of its notebook are compared. The largest difference of a number is also given in
    units of the tolerance with which `companion verify` compares.

    Exit code: 0 if all figures are equal, 1 if not.

    Example:

        companion compare figures _build/laptop
    """
    from companion.runs.compare_builds import differences

    (old_folder, old_notebook), (new_folder, new_notebook) = _folder_of(old), _folder_of(new)
    figures = differences(old_folder, new_folder, old_notebook or new_notebook)
    for name, difference in figures.items():
        console.print(f"{'[yellow]≠[/]' if difference else '[green]=[/]'} {name}")
        if difference:
            console.print(f"  {difference}", markup=False)
    equal = sum(not difference for difference in figures.values())
    console.print(f"{equal} of {len(figures)} figures are equal.")
    if equal < len(figures):
        raise typer.Exit(1)


def _folder_of(name: str) -> tuple[Path, str | None]:
    """Return the folder with this path, otherwise the folder and the notebook of the custom run with this name."""
    from companion.runs.custom_runs import all_runs

    if Path(name).is_dir():
        return Path(name), None
    project = Project.here()
    notebooks = {run.name: run.spec.notebook for run in all_runs(project)}
    if name not in notebooks:
        raise UserError(f"There is no folder and no custom run {name!r}. {did_you_mean(name, notebooks)}")
    return project.custom_build(name).folder, notebooks[name]
