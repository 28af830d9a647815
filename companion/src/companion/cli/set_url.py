"""`companion set-url`: set the public address of the repository."""

from typing import Annotated

import typer

from companion.cli.terminal import MAKE_A_BOOK, app, console, report_errors
from companion.io.errors import UserError
from companion.project.paths import Project


@app.command("set-url", rich_help_panel=MAKE_A_BOOK)
@report_errors
def set_url(
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="[URL]",
            help="Address of the repository, https://github.com/ACCOUNT/REPOSITORY (default: the one in _config.yml).",
        ),
    ] = None,
    unset: Annotated[bool, typer.Option("--unset", help="Remove the address from every file.")] = False,
) -> None:
    """Set the public address of the repository.

    The address is defined in `_config.yml`. This command also copies it to every file that needs it, for example the
    first cell of each notebook. Without arguments it updates the copies.

    Example:

        companion set-url https://github.com/ACCOUNT/REPOSITORY
    """
    from companion.project.repository import public_address, write_copies

    if url and unset:
        raise UserError("Give either an address or `--unset`, not both.")
    project = Project.here()
    changed = write_copies(project, "" if unset else url)
    console.print(f"Address: {public_address(project) or 'none'}")
    console.print(f"Changed: {', '.join(changed) or 'no file'}")
