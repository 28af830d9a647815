"""`companion verify`: recompute the published figures and compare."""

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from companion.build.progress import DONE, STARTED, Progress, known_seconds
from companion.cli.terminal import app, completed, console, explained, plain, show_table
from companion.io import atomic
from companion.io.errors import UserError
from companion.project.paths import DEFAULT_PROFILE, Project

if TYPE_CHECKING:
    from companion.runs.verify import Verdict


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
