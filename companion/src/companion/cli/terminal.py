"""What the commands share: the application, two consoles, common arguments and the report of errors."""

import errno
import functools
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from companion.analysis.dependencies import MACHINE
from companion.io import signals
from companion.io.errors import ClaimsFailed, UserError
from companion.project import provenance
from companion.project.paths import SOURCES, Project

# More characters than any row of a table has.
UNFOLDED = 10_000
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
# a terminal, not rich, breaks long lines, so that a path can be copied
console = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)

# The errors of a place that cannot be written: a full disk, an exhausted quota, no permission, a read-only file system,
# and a file or a link in place of a folder.
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)


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
    os.environ["MPLBACKEND"] = "agg"  # a terminal in Jupyter names a backend that may not be installed here
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # notebooks run side by side, each on one core
    make_home()
    report_other_checkout()


def make_home() -> None:
    """Give a user of a container, who may have neither a name nor a home that can be written, both within the book."""
    home = Path(os.path.expanduser("~"))
    if home.is_dir() and os.access(home, os.W_OK):
        return
    os.environ.setdefault("LOGNAME", f"user-{os.getuid()}")
    with suppress(UserError, OSError):  # there is no book here, or it cannot be written either
        home = Project.here().cache / "home"
        home.mkdir(parents=True, exist_ok=True)
        os.environ["HOME"] = str(home)


def report_other_checkout() -> None:
    """Report that this package is not the one in the book: a copied environment runs the code of its origin."""
    with suppress(UserError):
        own = Project.here().root.resolve() / SOURCES / MACHINE.name
        if (own / "__init__.py").is_file() and own != MACHINE:
            errors.print(
                f"[yellow]Note:[/] {escaped(MACHINE)} runs, and not {escaped(own)}. If the checkout was copied or "
                "moved, `make` makes its environment again; `. .venv/bin/activate` activates it."
            )


def report_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Print errors of `command` as sentences and exit with a code.

    The code is 2 for a user error or a place that cannot be written, 3 for a failed claim, 128 plus the number of a
    signal.
    """

    @functools.wraps(command)
    def run(*args, **kwargs):
        try:
            command(*args, **kwargs)
        except UserError as error:
            errors.print(f"[bold red]Error:[/] {escaped(str(error))}")
            raise typer.Exit(2) from None
        except ClaimsFailed as failure:
            errors.print(f"[bold red]A claim does not hold.[/] {escaped(str(failure))}")
            raise typer.Exit(3) from None
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            errors.print(
                f"[bold red]Error:[/] {escaped(str(error))}. Commands write to `_build` in the book, which may be a "
                "link to a folder with space, and some of them change tracked files. No file is incomplete: run the "
                "same command to continue."
            )
            raise typer.Exit(2) from None
        except KeyboardInterrupt as stop:
            errors.print(signals.SENTENCE)
            raise typer.Exit(signals.exit_code(stop)) from None

    return run


def report_unlisted(project: Project) -> None:
    """Report the notebooks that are ignored because they are not in the table of contents."""
    for name in project.unlisted_notebooks():
        errors.print(f"[yellow]Ignored:[/] {escaped(project.why_ignored(name))}")


def show_table(table: Table) -> None:
    """Print a table, folded to the width of a terminal; if the output is not a terminal, never fold a row."""
    for column in table.columns:
        column.overflow = "fold"
    output = console if console.is_terminal else Console(highlight=False, width=UNFOLDED)
    output.print(table, soft_wrap=False)


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
