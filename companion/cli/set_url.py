"""`companion address`: write the repository's public address."""

from typing import Annotated

import typer

from companion.cli.terminal import app, console, explained
from companion.io.errors import UserError
from companion.project.paths import Project


@app.command()
@explained
def address(
    url: Annotated[
        str | None, typer.Argument(metavar="[URL]", help="https://github.com/<account>/<repository>")
    ] = None,
    unset: Annotated[bool, typer.Option("--unset", help="Take the address back out of every file.")] = False,
) -> None:
    """Write the repository's public address, defined in _config.yml, to every place that needs a copy."""
    from companion.project.repository import public_address, spread

    if url and unset:
        raise UserError("Give an address or --unset, not both.")
    project = Project.here()
    changed = spread(project, "" if unset else url)
    address = public_address(project) or "The address is not set"
    console.print(f"{address}: {', '.join(changed) if changed else 'every copy says so already'}", soft_wrap=True)
