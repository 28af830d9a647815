"""`companion verify`: recompute the published figures and compare."""

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from companion.build.progress import DONE, STARTED, Progress, known_seconds
from companion.cli.terminal import (
    COMPARE_AND_VERIFY,
    app,
    completer,
    console,
    escaped,
    report_errors,
    report_unlisted,
    show_table,
)
from companion.io import atomic
from companion.io.errors import UserError
from companion.project.paths import DEFAULT_PROFILE, Project

if TYPE_CHECKING:
    from companion.runs.verify import Verdict


@app.command(rich_help_panel=COMPARE_AND_VERIFY)
@report_errors
def verify(
    notebooks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NOTEBOOK]...",
            help="Notebooks to verify (default: all).",
            autocompletion=completer(Project.notebooks),
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option("--figures", metavar="FOLDER", help="Folder of the figures (default: figures/)."),
    ] = None,
    cores: Annotated[int, typer.Option(min=1, help="Number of notebooks that run at the same time.")] = 2,
) -> None:
    """Recompute the published figures and compare.

    The book is copied to `_build/verify/` and run there; no earlier result is used, and nothing is published. Numbers
    are compared with the tolerances of a rebuild; claims and pictures are compared too. The table shows the largest
    deviation of each figure, in tolerances.

    Exit code: 0 if all figures are reproduced, 1 if not, 2 if a notebook could not be run.

    Example:

        companion verify first_figure
    """
    from companion.runs.verify import Verification

    verification = Verification.of(figures)
    home = verification.home
    with atomic.locked(home.generated / ".verify.lock", "Waiting for another verification to end."):
        project = verification.lay_out()
        for name in notebooks or []:
            project.require_notebook(name)
        report_unlisted(project)
        names = list(dict.fromkeys(notebooks or project.notebooks()))
        progress, failures = Progress(known_seconds(home, DEFAULT_PROFILE, names), cores), {}

        def begun(name: str) -> None:
            progress.start(name, time.monotonic())
            console.print(f"{STARTED} {name}")

        with closing(verification.run(names, cores, begun)) as ended:
            for name, failure in ended:
                console.print(f"{'✗' if failure else DONE} {name} — {progress.end(name, time.monotonic())}")
                failures |= {name: failure} if failure else {}
        verdicts = [
            verdict for name in names if name not in failures for verdict in verification.verdicts(project, name)
        ]
        differing = _show_verdicts(verdicts)
        unclaimed = [] if notebooks else verification.orphaned_folders(project)
    for name in unclaimed:
        console.print(f"{escaped(verification.published / name)} belongs to no notebook.")
    if failures:
        raise UserError("\n".join(f"{name} could not be run. {failure}" for name, failure in failures.items()))
    if differing or unclaimed:
        console.print(
            f"{differing} of {len(verdicts)} figures are not reproduced. New results: {escaped(project.runs)}"
        )
        raise typer.Exit(1)
    console.print(f"All {len(verdicts)} figures are reproduced." if len(verdicts) > 1 else "The figure is reproduced.")


def _show_verdicts(verdicts: "list[Verdict]") -> int:
    """Print a table of the largest deviations; return the number of figures that are not reproduced."""
    from companion.runs.verify import short

    table = Table("figure", "largest deviation", "tolerances", "published", "recomputed")
    for verdict in verdicts:
        if not verdict.differences:
            table.add_row(f"[green]{DONE}[/] {verdict.figure}", escaped(verdict.name), f"{verdict.furthest:.2g}")
        for row, difference in enumerate(verdict.differences):
            table.add_row(
                "" if row else f"[red]✗[/] {verdict.figure}",
                *map(escaped, (difference.what, f"{difference.by:.3g}", short(difference.old), short(difference.new))),
            )
    show_table(table)
    return sum(bool(verdict.differences) for verdict in verdicts)
