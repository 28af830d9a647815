"""`companion book`: assemble the site."""

from typing import Annotated

import typer

from companion.build.progress import DONE, STARTED
from companion.cli.terminal import Profile, app, console, explained, plain
from companion.io import atomic
from companion.io.errors import UserError
from companion.project.paths import DEFAULT_PROFILE, Project


@app.command()
@explained
def book(
    profile: Profile = DEFAULT_PROFILE,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="From notebooks as stored and the tracked figures alone: nothing need be run."
        ),
    ] = False,
) -> None:
    """Assemble the site from results that are there, every warning an error.

    With `--published` a fresh clone will do, to fix a sentence and look at its page: the site shows `figures/`. It is
    refused if a figure there is known to be of other code or other parameters than today's.
    """
    from companion.site.jupyter_book import build_published_site, build_site

    project = Project.here()
    project.require_profile(profile)
    if published and profile != DEFAULT_PROFILE:
        raise UserError(f"Only figures of profile {DEFAULT_PROFILE!r} are published: leave out `--profile {profile}`.")
    console.print(f"{STARTED} the site")
    with atomic.announced(project.build(profile).running / "the site"):
        site = build_published_site(project) if published else build_site(project, profile)
    console.print(f"[green]{DONE}[/] the site: {plain(site)}", soft_wrap=True)
