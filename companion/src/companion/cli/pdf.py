"""`companion pdf`: print the site as one PDF."""

from companion.build.progress import DONE, STARTED
from companion.cli.terminal import BUILD_AND_READ, Profile, app, console, escaped, report_errors
from companion.io.errors import UserError
from companion.project.paths import DEFAULT_PROFILE, Project


@app.command(rich_help_panel=BUILD_AND_READ)
@report_errors
def pdf(profile: Profile = DEFAULT_PROFILE) -> None:
    """Print the built site as one PDF.

    The PDF has all pages in the order of the table of contents, with links between them. Figures have their claims;
    code, data, parameters and provenance are only on the site, whose chapters link to the PDF. Chromium prints the PDF:
    set `$CHROMIUM` to its path, or have it on the `PATH`.

    Example:

        companion pdf
    """
    from companion.site.jupyter_book import is_built, offer_pdf

    project = Project.here()
    project.require_profile(profile)
    if not is_built(project, profile):
        raise UserError(
            f"The site of profile {profile!r} is not built, or not completely. "
            f"Build it with `companion build --profile {profile}`."
        )
    try:
        from companion.site.pdf import print_book
    except ModuleNotFoundError as error:
        raise UserError(f"Printing needs {error.name}, which is not installed: install the extra `pdf`.") from error
    console.print(f"{STARTED} the PDF")
    printed = print_book(project, profile)
    offer_pdf(project, profile, printed)
    console.print(f"[green]{DONE}[/] the PDF: {escaped(printed)}", soft_wrap=True)
