"""`companion draw`: redraw figures from their stored tables."""

from typing import Annotated

import typer

from companion.build import cache_keys
from companion.build.progress import DONE
from companion.cli.terminal import Profile, app, console, explained
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Project


@app.command()
@explained
def draw(
    figures: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FIGURE]...", help="`notebook/figure`, a figure, or a notebook for all of its own."),
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
) -> None:
    """Redraw figures from their stored tables, without a kernel; without names, those whose picture is out of date.

    What is read again is `draw` and the docstring of the figure's file, and the style. In a fresh clone, where nothing
    was run yet, the published tables are drawn.
    """
    from companion.build import redraw

    project = Project.here()
    project.require_profile(profile)
    pairs = redraw.named(project, figures) if figures else _outdated(project, profile)
    if not pairs:
        console.print("Every picture of numbers that are fresh is up to date.")
    for name, figure in pairs:
        replaced = redraw.draw(project, name, figure, profile)
        place = f"; replaced in figures/{name}: {', '.join(replaced)}" if replaced else ""
        console.print(f"[green]{DONE}[/] {name}/{figure} drawn{place}", soft_wrap=True)


def _outdated(project: Project, profile: str) -> list[tuple[str, str]]:
    stamps = cache_keys.stamps(project, profile)
    return [
        (name, figure)
        for name in project.notebooks()
        if cache_keys.intact(project, stamps[name])
        for figure in Notebook.named(project, name).figures
        if not cache_keys.intact(project, stamps[cache_keys.picture_target(name, figure)])
    ]
