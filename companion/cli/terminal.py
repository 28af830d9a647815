"""What all commands share: the application, two consoles, common arguments, and how faults are told."""

import errno
import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from companion.io import signals
from companion.io.errors import ClaimsFailed, UserError
from companion.project import provenance
from companion.project.paths import Project

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    epilog="`make book` is `companion build` in a fresh environment; `make test` runs every test.",
)
console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

# How a disk, or a person's share of one, says that it is full.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def completed(known: Callable[[Project], list[str]]) -> Callable[[str], list[str]]:
    """What a shell offers for a word that was begun; outside a book nothing, and no fault."""

    def offered(begun: str) -> list[str]:
        try:
            return [name for name in known(Project.here()) if name.startswith(begun)]
        except UserError:
            return []

    return offered


Profile = Annotated[
    str,
    typer.Option(
        "--profile",
        help="`laptop` is the notebooks' own parameters; the files in profiles/ override some: `smoke` is small, "
        "`full` is for a cluster or a GPU.",
        autocompletion=completed(Project.profile_names),
    ),
]


NotebookName = Annotated[
    str,
    typer.Argument(
        metavar="NOTEBOOK",
        help="A notebook of book/, without the ending.",
        autocompletion=completed(Project.notebooks),
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
        except UserError as mistake:
            errors.print(f"[bold red]Error:[/] {plain(str(mistake))}", soft_wrap=True)
            raise typer.Exit(2) from None
        except ClaimsFailed as failure:
            errors.print(f"[bold red]A claim does not hold.[/] {plain(str(failure))}", soft_wrap=True)
            raise typer.Exit(3) from None
        except OSError as fault:
            if fault.errno not in NO_SPACE:
                raise
            place = f" ({plain(fault.filename)})" if fault.filename else ""
            errors.print(
                f"[bold red]Error:[/] No space is left on the disk{place}. Nothing is half-written: make room, and "
                "run the same command to continue.",
                soft_wrap=True,
            )
            raise typer.Exit(2) from None
        except KeyboardInterrupt as stop:
            errors.print(signals.SENTENCE)
            raise typer.Exit(signals.exit_code(stop)) from None

    return run


def show_table(table: Table) -> None:
    """Print a table: within the width of a terminal, names folded; elsewhere as wide as it is, whole in every line."""
    for column in table.columns:
        column.overflow = "fold"
    if console.is_terminal:
        console.print(table)
        return
    widest = Measurement.get(console, console.options.update(max_width=sys.maxsize), table).maximum
    Console(highlight=False, width=widest).print(table)


def open_page(page: Path) -> None:
    """Show a page in the browser, or say that there is none: its path is printed anyway."""
    import webbrowser

    if not webbrowser.open(page.as_uri()):
        errors.print("No browser was found: open the page yourself.")


def plain(text: str | Path) -> str:
    """Square brackets are markup to rich; to us they are citations, and may stand in the name of a folder."""
    return escape(str(text))


def shown(value: Any) -> str:
    """A parameter as it is typed."""
    return json.dumps(value, ensure_ascii=False)
