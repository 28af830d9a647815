"""`companion site`: assemble the site."""

from typing import Annotated

import typer

from companion.build.progress import DONE, STARTED
from companion.cli.terminal import BUILD_AND_READ, Profile, app, console, escaped, report_errors, report_unlisted
from companion.io import atomic
from companion.io.errors import UserError
from companion.project.paths import DEFAULT_PROFILE, Project


@app.command(rich_help_panel=BUILD_AND_READ)
@report_errors
def site(
    profile: Profile = DEFAULT_PROFILE,
    published: Annotated[
        bool,
        typer.Option("--published", help="Use the stored notebooks and the published figures; run nothing."),
    ] = False,
) -> None:
    """Assemble the site from results that are already computed.

    Every warning of Sphinx is an error. With `--published` the command works in a fresh clone, for example to correct a
    sentence and look at its page: the site then shows `figures/`. The command refuses to show a figure whose code or
    parameters have changed since it was published.

    Example:

        companion site --published
    """
    from companion.site.jupyter_book import build_published_site, build_site

    project = Project.here()
    project.require_profile(profile)
    if published and profile != DEFAULT_PROFILE:
        raise UserError(
            f"`--published` shows the figures of profile {DEFAULT_PROFILE!r}, the only profile that publishes figures. "
            f"Got {profile!r}: leave out `--profile {profile}`."
        )
    if published:  # a build, which calls this command without the option, has reported them
        report_unlisted(project)
    console.print(f"{STARTED} the site")
    with atomic.announced(project.build(profile).running / "the site"):
        folder = build_published_site(project) if published else build_site(project, profile)
    console.print(f"[green]{DONE}[/] the site: {escaped(folder)}", soft_wrap=True)
