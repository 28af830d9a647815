"""`companion new`: create a notebook or a book."""

from pathlib import Path
from typing import Annotated

import typer

from companion.cli.terminal import app, console, explained, plain
from companion.io.errors import UserError
from companion.project.paths import Project


@app.command()
@explained
def new(
    notebook: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Lower case, words joined by underscores.")
    ] = None,
    book: Annotated[
        Path | None, typer.Option("--book", metavar="FOLDER", help="Lay out a whole book there, of one notebook.")
    ] = None,
) -> None:
    """Lay out a new notebook with its chapter, profile entries and table-of-contents row; or a new book."""
    from companion.cli.scaffold import FIRST_NOTEBOOK, lay_out, lay_out_book

    if (notebook is None) == (book is None):
        raise UserError("Name a notebook, `companion new NAME`, or a folder, `companion new --book FOLDER`.")
    for path in lay_out_book(book) if book else lay_out(Project.here(), str(notebook)):
        console.print(f"[green]+[/] {plain(path)}", soft_wrap=True)
    inside = f"cd {plain(book)} && " if book else ""
    console.print(f"It runs as it is: {inside}companion run {notebook or FIRST_NOTEBOOK}", soft_wrap=True)
