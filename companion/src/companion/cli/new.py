"""`companion new`: create a notebook or a book."""

from pathlib import Path
from typing import Annotated

import typer

from companion.cli.terminal import MAKE_A_BOOK, app, console, escaped, report_errors
from companion.io.errors import UserError
from companion.project.paths import Project


@app.command(rich_help_panel=MAKE_A_BOOK)
@report_errors
def new(
    notebook: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Name of the notebook: lower case, words joined by underscores."),
    ] = None,
    book: Annotated[
        Path | None,
        typer.Option("--book", metavar="FOLDER", help="Create a book with one notebook in this new folder."),
    ] = None,
) -> None:
    """Create a notebook with its chapter, or a new book.

    A new notebook has one figure and runs as it is. It is added to the profiles and to the table of contents.

    Example:

        companion new my_notebook
    """
    from companion.cli.scaffold import FIRST_NOTEBOOK, create_book, create_notebook

    if (notebook is None) == (book is None):
        raise UserError(
            "Give either the name of a notebook, `companion new NAME`, or a folder, `companion new --book FOLDER`."
        )
    for path in create_book(book) if book else create_notebook(Project.here(), str(notebook)):
        console.print(f"[green]+[/] {escaped(path)}")
    change_folder = f"cd {escaped(book)} && " if book else ""
    console.print(f"Run it: {change_folder}companion run {notebook or FIRST_NOTEBOOK}")
