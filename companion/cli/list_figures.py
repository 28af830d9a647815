"""`companion list`: show the state of every figure."""

from typing import Annotated

import typer
from rich.table import Table

from companion.cli.terminal import Profile, app, explained, show_table
from companion.io import atomic
from companion.project.paths import DEFAULT_PROFILE, Project


@app.command("list")
@explained
def list_figures(
    profile: Profile = DEFAULT_PROFILE,
    as_json: Annotated[bool, typer.Option("--json", help="The same for other programs.")] = False,
) -> None:
    """Show every figure: its state, how long its notebook took, how many of its claims hold.

    **fresh**: built here from what is there now. **redraw**: its numbers are fresh, its picture is not; no kernel is
    needed. **stale**: what it is made of has changed, or it was not computed yet. **published**: never computed here,
    and shown as it is in `figures/`, as in a fresh clone; a function of the library that has changed since is not seen.
    The site is **fresh**, **published** (`companion book --published`), **stale** or **not built**.
    """
    from companion.build.status import Listing

    project = Project.here()
    project.require_profile(profile)
    listing = Listing.of(project, profile)
    if as_json:
        print(atomic.dump_json(listing.as_json()), end="")
        return
    table = Table("notebook", "figure", "state", "seconds", "claims", title=f"Profile {profile}", title_justify="left")
    for row in listing.rows:
        table.add_row(
            row.notebook,
            row.figure,
            _in_colour(row.state),
            "—" if row.seconds is None else f"{row.seconds:.0f}",
            "—" if row.claims is None else f"{row.holding}/{row.claims}",
        )
    table.add_row("", "the site", _in_colour(listing.site), "", "")
    show_table(table)


def _in_colour(state: str) -> str:
    return f"[{'green' if state in ('fresh', 'published') else 'yellow'}]{state}[/]"
