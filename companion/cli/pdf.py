"""`companion pdf`: print the site as one PDF."""

from companion.build.progress import DONE, STARTED
from companion.cli.terminal import Profile, app, console, explained, plain
from companion.io.errors import UserError
from companion.project.paths import DEFAULT_PROFILE, Project


@app.command()
@explained
def pdf(profile: Profile = DEFAULT_PROFILE) -> None:
    """Print the built site as one PDF, with Chromium: every page, in the order of the contents, links within.

    Under figures are their claims; code, data, parameters and origin are left to the site. Chromium is the one that
    `$CHROMIUM` names, else one on the `PATH`.
    """
    from companion.site.jupyter_book import is_built

    project = Project.here()
    project.require_profile(profile)
    if not is_built(project, profile):
        raise UserError(f"There is no whole site to print. Build it with `companion build --profile {profile}`.")
    try:
        from companion.site.pdf import print_book
    except ModuleNotFoundError as missing:
        raise UserError(f"Printing needs {missing.name}: install the extra `pdf` of this book.") from missing
    console.print(f"{STARTED} the PDF")
    console.print(f"[green]{DONE}[/] the PDF: {plain(print_book(project, profile))}", soft_wrap=True)
