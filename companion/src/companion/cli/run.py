"""`companion run`: run one notebook."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from companion.build.progress import DONE, STARTED
from companion.build.run_spec import RunSpec
from companion.cli.terminal import (
    ONE_NOTEBOOK,
    NotebookName,
    Profile,
    app,
    console,
    counted,
    escaped,
    formatted,
    open_page,
    report_errors,
)
from companion.figures.plain_math import WITHHELD, as_plain_text, withheld_because
from companion.io.errors import UserError
from companion.project import parameters
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Project

if TYPE_CHECKING:
    from companion.build.execution import RunResult


@app.command(context_settings={"allow_extra_args": True}, rich_help_panel=ONE_NOTEBOOK)
@report_errors
def run(
    context: typer.Context,
    notebook: NotebookName,
    *,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "--parameter",
            "-p",
            metavar="NAME=VALUE",
            help="Change a parameter; repeatable. A list has brackets, and the shell needs quotes: "
            "`-p 'lengths=[10, 100]'`.",
        ),
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
    figure: Annotated[
        str | None,
        typer.Option("--figure", metavar="FIGURE", help="Run only the cells that this figure needs, as a custom run."),
    ] = None,
    isolated: Annotated[
        bool,
        typer.Option("--isolated", help="Make it a custom run even if no parameter is changed."),
    ] = False,
    show: Annotated[
        bool, typer.Option("--open", help="Open the page of the custom run, even if a claim does not hold.")
    ] = False,
    list_parameters: Annotated[
        bool, typer.Option("--parameters", help="Run nothing; list the notebook's parameters.")
    ] = False,
    list_tasks: Annotated[bool, typer.Option("--tasks", help="Run nothing; list the notebook's tasks.")] = False,
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="Compute only this task and cache its result."),
    ] = None,
) -> None:
    """Run one notebook, with changed parameters if you like.

    Without `-p`, `--figure` and `--isolated`, the results become those of the profile if every claim holds; the default
    profile also replaces published figures that changed. With one of these options the run is a *custom run*: its
    results go to a separate folder in `_build/runs/`, even if a claim does not hold, and its page `index.html` compares
    them with the published ones.

    A *task* is a part of a heavy computation, for example one seed, whose cached result the notebook reads.
    `companion build --tasks` computes all tasks, each in its own process; so does Snakemake on a cluster with
    `--config tasks=1`.

    Example:

        companion run first_figure -p seed=1
    """
    project = Project.here()
    overrides = dict(map(parameters.parse_assignment, parameter or []))
    if context.args:
        raise UserError(f"`companion run` takes one notebook. Got {' '.join((notebook, *context.args))}.")
    if list_parameters:
        project.require_profile(profile)
        _print_parameters(project, Notebook.named(project, notebook))
        return
    if list_tasks or task:
        _tasks(project, RunSpec(notebook, profile), task)
        return
    spec = RunSpec(notebook, profile, overrides, figure, isolated)
    if show and not spec.is_custom:
        raise UserError(
            "`--open` shows the page of a custom run. Add `-p`, `--figure` or `--isolated`, or open the site with "
            "`companion site --open`."
        )
    result = _run(project, spec, show)
    claims = f"{counted(len(result.claims), 'claim')} {'holds' if len(result.claims) == 1 else 'hold'}"
    console.print(
        f"[green]{DONE}[/] {notebook}: {counted(len(result.figures), 'figure')}, {claims}, {result.seconds:.0f} s. "
        f"{escaped(result.build.figures / notebook)}"
    )
    for claim in result.withheld:
        console.print(f"  {WITHHELD} {claim.id}: {escaped(as_plain_text(withheld_because(claim)))}.")
    if result.edited:
        console.print(f"  {notebook} was edited while it ran: it is stale and was not published. Run it again.")
    if spec.is_custom:
        console.print(f"  compared with the published figures: {escaped(result.build.page)}")
    for change in result.published.sentences(f"figures/{notebook}"):
        console.print(f"  {change}")
    for warning in result.warnings:
        console.print(f"  [yellow]Warning:[/] {escaped(warning)}")


def _run(project: Project, spec: RunSpec, show: bool) -> "RunResult":
    """Make the run; for a custom run also write its page, open it if `show`, and require its claims."""
    from companion.build import execution

    console.print(f"{STARTED} {spec}")
    if not spec.is_custom:
        return execution.run(project, spec)
    from companion.runs.run_custom import require_claims, run_custom

    result = run_custom(project, spec)
    if show:
        open_page(result.build.page)
    require_claims(spec.notebook, result.claims, result.build.page)
    return result


def _tasks(project: Project, spec: RunSpec, task: str | None) -> None:
    """Compute a task of a notebook, or list all of them."""
    from companion.build import task_cache

    if task is None:
        files = task_cache.files(project, spec)
        for name, file in files.items():
            console.print(f"[green]{DONE}[/]" if file.is_file() else " ", name)
        console.print(f"{sum(file.is_file() for file in files.values())} of {len(files)} tasks are cached.")
        return
    console.print(f"{STARTED} {spec.notebook}/{task} ({spec.profile})")
    start = time.monotonic()
    task_cache.compute(project, spec, task)
    console.print(f"[green]{DONE}[/] {spec.notebook}/{task}: {time.monotonic() - start:.0f} s")


def _print_parameters(project: Project, notebook: Notebook) -> None:
    """Print the default, meaning and range of each parameter, and its values in profiles."""
    values = {profile: parameters.resolve(project, notebook, profile) for profile in project.profile_names()}
    fields = parameters.parameters_of(project, notebook.name).model_fields
    if not fields:
        console.print(f"{notebook.name} has no parameters.")
    for name, field in fields.items():
        default = notebook.defaults.get(name)
        console.print(f"[bold]{name}[/] = {escaped(formatted(default))}")
        meaning = as_plain_text((field.description or "").strip())
        console.print(f"  {escaped(f'{meaning} ({parameters.rule(field)})')}")
        for profile, changed in values.items():
            if (value := changed.get(name)) != default:
                console.print(f"  {profile}: {escaped(formatted(value))}")
