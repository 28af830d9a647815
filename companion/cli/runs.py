"""`companion runs`: list custom runs."""

from typing import Annotated

import typer

from companion.cli.terminal import app, console, explained, plain, shown
from companion.io import atomic
from companion.project.paths import Project


@app.command()
@explained
def runs(as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False) -> None:
    """List the runs with `-p` or `--figure`: what you changed, when, how many claims hold, where the page is."""
    from companion.runs.custom_runs import all_runs

    found = [run.in_short() for run in all_runs(Project.here())]
    if as_json:
        typer.echo(atomic.dump_json(found), nl=False)
        return
    if not found:
        console.print("There are no runs of your own yet: companion run NOTEBOOK -p NAME=VALUE.")
        return
    for one in found:
        colour = "green" if one["hold"] == one["claims"] else "red"
        console.print(
            f"[bold]{one['name']}[/]  [{colour}]{one['hold']}/{one['claims']} claims hold[/]  "
            f"{one['started'] or 'when is not known'}",
            soft_wrap=True,
        )
        changed = ", ".join(f"{name}: {shown(old)} → {shown(new)}" for name, (old, new) in one["changed"].items())
        console.print(f"  {plain(changed) or 'as published'}", soft_wrap=True)
        console.print(f"  {plain(one['page'])}", soft_wrap=True)
