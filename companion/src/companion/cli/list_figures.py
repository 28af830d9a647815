"""`companion list`: show the state of every figure, or the custom runs."""

from typing import Annotated

import typer
from rich.table import Table

from companion.cli.terminal import (
    BUILD_AND_READ,
    Profile,
    app,
    console,
    escaped,
    formatted,
    report_errors,
    report_unlisted,
    show_table,
)
from companion.io import atomic
from companion.project.paths import DEFAULT_PROFILE, Project


@app.command("list", rich_help_panel=BUILD_AND_READ)
@report_errors
def list_figures(
    profile: Profile = DEFAULT_PROFILE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")] = False,
    runs: Annotated[
        bool, typer.Option("--runs", help="List custom runs: their changed parameters, claims and pages.")
    ] = False,
) -> None:
    """List all figures with their state, run time and claims, or all custom runs.

    The state of a figure is one of these:

    - **fresh**: computed here from the current sources;
    - **redraw**: its numbers are fresh, its picture is not, so it can be redrawn without running the notebook;
    - **stale**: never computed here, or a source has changed since;
    - **published**: never computed here and shown as it is in `figures/`, as in a fresh clone; later changes of
      library functions are not detected.

    The site is **fresh**, **published** (built by `companion site --published`), **stale** or **not built**. A custom
    run is a run with `-p`, `--figure` or `--isolated`.

    Example:

        companion list --profile smoke
    """
    from companion.build.status import listing

    project = Project.here()
    project.require_profile(profile)
    if runs:
        _list_runs(project, as_json)
        return
    report_unlisted(project)
    states = listing(project, profile)
    if as_json:
        print(atomic.dump_json(states), end="")
        return
    table = Table("notebook", "figure", "state", "seconds", "claims", title=f"Profile {profile}", title_justify="left")
    for row in states["figures"]:
        seconds = "—" if row["seconds"] is None else f"{row['seconds']:.0f}"
        claims = "—" if row["claims"] is None else f"{row['holding']}/{row['claims']}"
        table.add_row(row["notebook"], row["figure"], _coloured(row["state"]), seconds, claims)
    table.add_row("", "the site", _coloured(states["site"]), "", "")
    show_table(table)


def _list_runs(project: Project, as_json: bool) -> None:
    from companion.runs.custom_runs import all_runs

    summaries = [run.summary() for run in all_runs(project)]
    if as_json:
        print(atomic.dump_json(summaries), end="")
        return
    if not summaries:
        console.print("There are no custom runs yet. Start one: companion run NOTEBOOK -p NAME=VALUE")
    for summary in summaries:
        colour = "green" if summary["hold"] == summary["claims"] else "red"
        console.print(
            f"[bold]{summary['name']}[/]  [{colour}]{summary['hold']}/{summary['claims']} claims hold[/]  "
            f"{summary['started'] or 'time unknown'}"
        )
        changes = ", ".join(
            f"{name}: {formatted(published)} → {formatted(value)}"
            for name, (published, value) in summary["changed"].items()
        )
        console.print(f"  {escaped(changes) or 'published parameters'}")
        console.print(f"  {escaped(summary['page'])}")


def _coloured(state: str) -> str:
    return f"[{'green' if state in ('fresh', 'published') else 'yellow'}]{state}[/]"
