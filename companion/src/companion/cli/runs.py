"""`companion runs`: list custom runs."""

from typing import Annotated

import typer

from companion.cli.terminal import ONE_NOTEBOOK, app, console, escaped, formatted, report_errors
from companion.io import atomic
from companion.project.paths import Project


@app.command(rich_help_panel=ONE_NOTEBOOK)
@report_errors
def runs(as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")] = False) -> None:
    """List the custom runs with their changed parameters, claims and pages.

    A custom run is a run with `-p`, `--figure` or `--isolated`.

    Example:

        companion runs --json
    """
    from companion.runs.custom_runs import all_runs

    summaries = [run.summary() for run in all_runs(Project.here())]
    if as_json:
        typer.echo(atomic.dump_json(summaries), nl=False)
        return
    if not summaries:
        console.print("There are no custom runs yet. Start one: companion run NOTEBOOK -p NAME=VALUE")
        return
    for summary in summaries:
        colour = "green" if summary["hold"] == summary["claims"] else "red"
        console.print(
            f"[bold]{summary['name']}[/]  [{colour}]{summary['hold']}/{summary['claims']} claims hold[/]  "
            f"{summary['started'] or 'time unknown'}",
            soft_wrap=True,
        )
        changes = ", ".join(
            f"{name}: {formatted(published)} → {formatted(value)}"
            for name, (published, value) in summary["changed"].items()
        )
        console.print(f"  {escaped(changes) or 'published parameters'}", soft_wrap=True)
        console.print(f"  {escaped(summary['page'])}", soft_wrap=True)
