"""`companion redraw`: redraw figures from their stored tables."""

from typing import Annotated

import typer

from companion.build import cache_keys
from companion.build.progress import DONE
from companion.cli.terminal import ONE_NOTEBOOK, Profile, app, console, report_errors
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Project


@app.command(rich_help_panel=ONE_NOTEBOOK)
@report_errors
def redraw(
    figures: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIGURE]...",
            help="Figures to redraw: FIGURE, NOTEBOOK/FIGURE, or NOTEBOOK for all its figures (default: all whose "
            "picture is out of date).",
        ),
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
) -> None:
    """Redraw figures from their stored tables, without running a notebook.

    The command uses the current function `draw`, docstring and style of each figure. In a fresh clone, where no
    notebook was run, it draws the published tables.

    Example:

        companion redraw first_figure/first_figure_error
    """
    from companion.build import redraw as redrawing

    project = Project.here()
    project.require_profile(profile)
    targets = redrawing.named(project, figures) if figures else _out_of_date(project, profile)
    if not targets:
        console.print("All pictures are up to date.")
    for name, figure in targets:
        replaced = redrawing.draw(project, name, figure, profile)
        place = f"; replaced in figures/{name}: {', '.join(replaced)}" if replaced else ""
        console.print(f"[green]{DONE}[/] {name}/{figure} redrawn{place}", soft_wrap=True)


def _out_of_date(project: Project, profile: str) -> list[tuple[str, str]]:
    """Return notebook and name of the figures whose numbers are fresh and whose picture is not."""
    stamps = cache_keys.stamps(project, profile)
    return [
        (name, figure)
        for name in project.notebooks()
        if cache_keys.intact(project, stamps[name])
        for figure in Notebook.named(project, name).figures
        if not cache_keys.intact(project, stamps[cache_keys.picture_target(name, figure)])
    ]
