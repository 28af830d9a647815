"""Commands that hold what was computed against what is published: runs, compare, verify."""

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from companion.build.progress import DONE, STARTED, Progress, known_seconds
from companion.cli.terminal import app, completed, console, explained, plain, show_table, shown
from companion.io import atomic
from companion.io.errors import UserError, did_you_mean
from companion.project.paths import DEFAULT_PROFILE, Project

if TYPE_CHECKING:
    from companion.runs.verify import Verdict


@app.command()
@explained
def runs(as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False) -> None:
    """List the runs with `-p` or `--figure`: what you changed, when, how many claims hold, where the page is."""
    from companion.runs.custom_runs import all_runs

    found = [run.in_short() for run in all_runs(Project.here())]
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
        changed = ", ".join(f"{name}: {shown(old)} → {shown(new)}" for name, (old, new) in one["changed"].items())
        console.print(f"  {plain(changed) or 'as published'}", soft_wrap=True)
        console.print(f"  {plain(one['page'])}", soft_wrap=True)


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


@app.command()
@explained
def verify(
    notebooks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NOTEBOOK]...", help="Which; without, all.", autocompletion=completed(Project.notebooks)
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
    from companion.runs.verify import Verification

    verification = Verification.of(figures)
    home = verification.home
    with atomic.locked(home.generated / ".verify.lock", "Waiting for another verification to end."):
        project = verification.lay_out()
        for name in notebooks or []:
            project.require_notebook(name)
        names = list(dict.fromkeys(notebooks or project.notebooks()))
        progress, faults = Progress(known_seconds(home, DEFAULT_PROFILE, names), cores), {}

        def tell(line: str) -> None:
            console.print(progress.told(line, time.monotonic()), markup=False, soft_wrap=True)

        with closing(verification.run(names, cores, lambda name: tell(f"{STARTED} {name}"))) as ended:
            for name, fault in ended:
                tell(f"{'✗' if fault else DONE} {name}")
                faults |= {name: fault} if fault else {}
        verdicts = [verdict for name in names if name not in faults for verdict in verification.verdicts(project, name)]
        differing = _show_verdicts(verdicts)
        strangers = [] if notebooks else verification.strangers(project)
    for name in strangers:
        console.print(f"{plain(verification.published / name)} belongs to no notebook.", soft_wrap=True)
    if faults:
        raise UserError("\n".join(f"{name} could not be run. {fault}" for name, fault in faults.items()))
    if differing or strangers:
        console.print(
            f"{differing} of {len(verdicts)} figures differ from what the code gives. "
            f"New results: {plain(project.runs)}",
            soft_wrap=True,
        )
        raise typer.Exit(1)
    console.print(f"All {len(verdicts)} figures are what the code gives.")


def _show_verdicts(verdicts: "list[Verdict]") -> int:
    """A table of how far each figure is from the published one; how many are too far."""
    table = Table("figure", "furthest", "in tolerances", "published", "here")
    for verdict in verdicts:
        if not verdict.differences:
            table.add_row(f"[green]{DONE}[/] {verdict.figure}", plain(verdict.name), f"{verdict.furthest:.2g}")
        for place, found in enumerate(verdict.differences):
            table.add_row(
                "" if place else f"[red]✗[/] {verdict.figure}",
                *map(plain, (found.what, f"{found.by:.3g}", found.published, found.here)),
            )
    show_table(table)
    return sum(bool(verdict.differences) for verdict in verdicts)
