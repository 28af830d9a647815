"""What the commands share: the application, two consoles, common arguments and the report of errors."""

import errno
import functools
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from companion.analysis.dependencies import MACHINE
from companion.io import signals
from companion.io.errors import ClaimsFailed, UserError
from companion.project import provenance
from companion.project.paths import SOURCES, Project

# The groups of commands in `companion --help`.
BUILD_AND_READ = "Build and read"
ONE_NOTEBOOK = "One notebook"
COMPARE_AND_VERIFY = "Compare and verify"
MAKE_A_BOOK = "Make a book"

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    # a command has its own context settings and inherits this one
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`companion COMMAND --help` explains a command and shows an example.",
)
console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)

# The errors of a full disk and of an exhausted quota.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
# The errors of a folder that cannot be written: no permission, a read-only file system, a file or a link in its place.
REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)


def completer(names_in: Callable[[Project], list[str]]) -> Callable[[str], list[str]]:
    """Return a shell completion for the names that `names_in` finds in the current book; none outside a book."""

    def complete(incomplete: str) -> list[str]:
        try:
            return [name for name in names_in(Project.here()) if name.startswith(incomplete)]
        except UserError:
            return []

    return complete


Profile = Annotated[
    str,
    typer.Option(
        "--profile",
        help="Size of the computation: `laptop` uses the notebooks' own parameters; a file in profiles/ overrides some "
        "of them (`smoke` is small, for tests; `full` is large, for a cluster or a GPU).",
        autocompletion=completer(Project.profile_names),
    ),
]


NotebookName = Annotated[
    str,
    typer.Argument(
        metavar="NOTEBOOK",
        help="Name of a notebook in book/, without `.ipynb`.",
        autocompletion=completer(Project.notebooks),
    ),
]


def _print_version(requested: bool) -> None:
    if requested:
        print(provenance.version())
        raise typer.Exit


@app.callback()
def main(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Build, rerun and verify a book whose figures are computed by notebooks."""
    report_errors(prepare_environment)()
    report_other_checkout()


def prepare_environment() -> None:
    """Set variables that the packages with which a command, or a process of it, computes and draws depend on.

    Raises:
      UserError: if a variable has a value that only the user can correct.
    """
    os.environ["MPLBACKEND"] = "agg"  # a terminal in Jupyter names a backend that may not be installed here
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # notebooks run side by side, each on one core
    if not (date := os.environ.get("SOURCE_DATE_EPOCH", "0")).isdecimal():
        raise UserError(
            "SOURCE_DATE_EPOCH must be a number of seconds, because IPython, Sphinx and Matplotlib read it. "
            f"Got {date!r}. Correct it, or unset it."
        )
    home = Path(os.path.expanduser("~"))
    if not (home.is_dir() and os.access(home, os.W_OK)):  # a container may run as a user without a name and a home
        os.environ.setdefault("LOGNAME", f"user-{os.getuid()}")
        with suppress(UserError, OSError):  # there is no book here, or it cannot be written either
            home = Project.here().cache / "home"
            home.mkdir(parents=True, exist_ok=True)
            os.environ["HOME"] = str(home)


def report_other_checkout() -> None:
    """Report that this package is not the one in the book: a copied environment runs the code of its origin."""
    try:
        root = Project.here().root.resolve()
    except UserError:
        return
    own = root / SOURCES / MACHINE.name
    if (own / "__init__.py").is_file() and own != MACHINE:
        errors.print(
            f"[yellow]Note:[/] {escaped(MACHINE)} runs, and not {escaped(own)}. If the checkout was "
            "copied or moved, `make` makes its environment again; `. .venv/bin/activate` activates it.",
            soft_wrap=True,
        )


def report_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Print errors of `command` as sentences and exit with a code.

    The code is 2 for a user error, a full disk or a folder that cannot be written, 3 for a failed claim, 128 plus the
    number of a signal.
    """

    @functools.wraps(command)
    def run(*args, **kwargs):
        try:
            command(*args, **kwargs)
        except UserError as error:
            errors.print(f"[bold red]Error:[/] {escaped(str(error))}", soft_wrap=True)
            raise typer.Exit(2) from None
        except ClaimsFailed as failure:
            errors.print(f"[bold red]A claim does not hold.[/] {escaped(str(failure))}", soft_wrap=True)
            raise typer.Exit(3) from None
        except OSError as error:
            if error.errno in NO_SPACE:
                place = f" ({escaped(error.filename)})" if error.filename else ""
                sentence = (
                    f"No space is left on the disk{place}. No file is incomplete: free some space and run the same "
                    "command to continue."
                )
            elif error.errno in REFUSED and error.filename:
                sentence = (
                    f"{escaped(error.filename)} cannot be used: {error.strerror}. Commands write to `_build` in the "
                    "book, which may be a link to a writable folder, and some of them change tracked files."
                )
            else:
                raise
            errors.print(f"[bold red]Error:[/] {sentence}", soft_wrap=True)
            raise typer.Exit(2) from None
        except KeyboardInterrupt as stop:
            errors.print(signals.SENTENCE)
            raise typer.Exit(signals.exit_code(stop)) from None

    return run


def report_unlisted(project: Project) -> None:
    """Report the notebooks that are ignored because they are not in the table of contents."""
    for name in project.unlisted_notebooks():
        errors.print(f"[yellow]Ignored:[/] {escaped(project.why_ignored(name))}", soft_wrap=True)


def show_table(table: Table) -> None:
    """Print a table, folded to the width of a terminal; if the output is not a terminal, never fold a row."""
    for column in table.columns:
        column.overflow = "fold"
    if console.is_terminal:
        console.print(table)
        return
    width = Measurement.get(console, console.options.update(max_width=sys.maxsize), table).maximum
    Console(highlight=False, width=width).print(table)


def open_page(page: Path) -> None:
    """Open a page in the browser, or report that there is no browser."""
    import webbrowser

    if not webbrowser.open(page.as_uri()):
        errors.print("No browser was found. Open the page by its path.")


def escaped(text: str | Path) -> str:
    """Return `text` without rich markup: square brackets are citations here, and a path may contain them."""
    return escape(str(text))


def formatted(value: Any) -> str:
    """Return the value of a parameter as a user types it."""
    return json.dumps(value, ensure_ascii=False)


def counted(number: int, noun: str) -> str:
    """Return `1 figure`, `2 figures`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
