"""`companion run`: run one notebook."""

from typing import Annotated

import typer

from companion.build.progress import DONE, STARTED
from companion.cli.terminal import NotebookName, Profile, app, console, explained, open_page, plain, shown
from companion.io.errors import ClaimsFailed, UserError
from companion.project import parameters, provenance
from companion.project.notebooks import Notebook
from companion.project.paths import DEFAULT_PROFILE, Project


@app.command(context_settings={"allow_extra_args": True})
@explained
def run(
    context: typer.Context,
    notebook: NotebookName,
    *,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="A parameter; repeatable."),
    ] = None,
    profile: Profile = DEFAULT_PROFILE,
    figure: Annotated[
        str | None,
        typer.Option("--figure", metavar="FIGURE", help="Run only the steps that lead to this figure, for yourself."),
    ] = None,
    apart: Annotated[
        bool, typer.Option("--apart", help="Run as published, and keep the results to yourself, as with `-p`.")
    ] = False,
    show: Annotated[
        bool,
        typer.Option(
            "--open", help="With `-p`, `--figure` or `--apart`: open the run's page, whatever its claims say."
        ),
    ] = False,
    list_parameters: Annotated[
        bool, typer.Option("--parameters", help="Run nothing: list the notebook's parameters, and how long it takes.")
    ] = False,
) -> None:
    """Run one notebook, with parameters of your own if you like.

    Without `-p` its results become those of the profile, if every claim holds. With `-p` or `--apart`, and of one
    figure with `--figure`, they go to a folder of their own, under `_build/runs/`, whatever its claims say; its page
    there, `index.html`, has them beside what is published.
    What parameters there are, `companion run NOTEBOOK --parameters` lists.
    """
    project = Project.here()
    words = [word for word in (notebook, *context.args) if word not in project.notebooks()]
    parameters.require_one_word(parameter or [], words)
    if context.args:
        raise UserError(f"`companion run` runs one notebook. Got {' '.join((notebook, *context.args))}.")
    project.require_notebook(notebook)
    project.require_profile(profile)
    source = Notebook.named(project, notebook)
    if list_parameters:
        _list_parameters(project, source)
        return
    overrides = parameters.given_once(map(parameters.parse_assignment, parameter or []))
    parameters.check(project, source, parameters.resolve(project, source, profile, overrides))
    if figure:
        source.require_figure(figure)
    if show and not (overrides or figure or apart):
        raise UserError(
            "`--open` shows a run of your own: give `-p`, `--figure` or `--apart`, or see the book, `companion serve`."
        )
    from companion.build import execution

    console.print(f"{STARTED} {notebook}{f'/{figure}' if figure else ''} ({profile})")
    try:
        report = execution.run(project, notebook, profile, overrides, figure, apart=apart)
    except ClaimsFailed:
        if show:
            open_page(execution.own_build(project, notebook, profile, overrides, figure).page)
        raise
    console.print(
        f"[green]{DONE}[/] {notebook}: {len(report.figures)} figures, {report.claims} claims hold, "
        f"{report.seconds:.0f} s. {plain(report.folder)}",
        soft_wrap=True,
    )
    if report.edited:
        console.print(f"  {notebook} was edited while it ran, and is stale: nothing is published. Run it again.")
    if report.page:
        console.print(f"  beside what is published: {plain(report.page)}", soft_wrap=True)
        if show:
            open_page(report.page)
    if report.replaced:
        console.print(f"  replaced in figures/{notebook}: {', '.join(report.replaced)}", soft_wrap=True)


def _list_parameters(project: Project, notebook: Notebook) -> None:
    """What each means and may be, its default and what profiles set; how long the notebook took."""
    profiles = [profile for profile in project.profile_names() if profile != DEFAULT_PROFILE]
    values = {profile: parameters.resolve(project, notebook, profile) for profile in profiles}
    for name, field in parameters.parameters_of(project, notebook.name).model_fields.items():
        default = notebook.defaults.get(name)
        console.print(f"[bold]{name}[/] = {plain(shown(default))}", soft_wrap=True)
        meaning = (field.description or "").strip()
        console.print(f"  {plain(f'{meaning} ({parameters.rule(field)})')}", soft_wrap=True)
        for profile in profiles:
            if (value := values[profile].get(name)) != default:
                console.print(f"  {profile}: {plain(shown(value))}", soft_wrap=True)
    origins = {
        profile: provenance.read(project.build(profile).provenance / f"{notebook.name}.json")
        for profile in project.profile_names()
    }
    times = [
        f"{profile} {origin['seconds']:.0f} s on {origin['cores']} cores"
        for profile, origin in origins.items()
        if origin
    ]
    console.print(f"Last time it took: {', '.join(times)}." if times else "It was not run here yet.", soft_wrap=True)
