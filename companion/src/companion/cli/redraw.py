"""`companion redraw`: redraw figures from their stored tables."""

from typing import Annotated

import typer

from companion.build.progress import DONE
from companion.build.run_spec import Target
from companion.cli.terminal import ONE_NOTEBOOK, Profile, app, console, report_errors
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
    from companion.build.status import REDRAW, listing

    project = Project.here()
    project.require_profile(profile)
    if figures:
        targets = redrawing.figures_named(project, figures)
    else:
        rows = [row for row in listing(project, profile)["figures"] if row["state"] == REDRAW]
        targets = [Target(row["notebook"], row["figure"]) for row in rows]
    if not targets:
        console.print("All pictures are up to date.")
    for target in targets:
        replaced = redrawing.redraw(project, target, profile)
        place = f"; replaced in figures/{target.notebook}: {', '.join(replaced)}" if replaced else ""
        console.print(f"[green]{DONE}[/] {target} redrawn{place}")
