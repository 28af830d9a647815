"""`companion site`: assemble the site, show it in a browser, or print it."""

import errno
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from companion.build.progress import DONE, STARTED
from companion.cli.terminal import BUILD_AND_READ, Profile, app, console, escaped, report_errors, report_unlisted
from companion.io.errors import UserError
from companion.project.paths import DEFAULT_PROFILE, Project

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer


@app.command(rich_help_panel=BUILD_AND_READ)
@report_errors
def site(
    profile: Profile = DEFAULT_PROFILE,
    *,
    published: Annotated[
        bool,
        typer.Option("--published", help="Use the stored notebooks and the published figures; run nothing."),
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve the built site on this machine, compressed as a web host does.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port, or another one if it is taken; 0 for any free port.")
    ] = 8000,
    open_browser: Annotated[bool, typer.Option("--open", help="Serve the site and open it in a browser.")] = False,
    pdf: Annotated[bool, typer.Option("--pdf", help="Print the built site as one PDF.")] = False,
) -> None:
    """Assemble the site from results that are already computed, or serve or print the built site.

    Every warning of Sphinx is an error. With `--published` the command works in a fresh clone, for example to correct a
    sentence and look at its page: the site then shows `figures/`. The command refuses to show a figure whose code or
    parameters have changed since it was published.

    Other machines cannot reach the server of `--serve`; Ctrl-C stops it. The PDF has all pages in the order of the
    table of contents, with links between them, and figures with their claims; code, data, parameters and provenance are
    only on the site, whose chapters link to the PDF. Chromium prints it: set `$CHROMIUM` to its path, or have it on the
    `PATH`.

    Example:

        companion site --published
    """
    project = Project.here()
    project.require_profile(profile)
    if published + (serve or open_browser) + pdf > 1:
        raise UserError("`--published` builds the site; `--serve` and `--pdf` use the built one. Give one of them.")
    if serve or open_browser:
        _serve(_built(project, profile), port, open_browser)
    elif pdf:
        _print(project, profile)
    else:
        _assemble(project, profile, published)


def _assemble(project: Project, profile: str, published: bool) -> None:
    from companion.site.jupyter_book import build_site

    if published and profile != DEFAULT_PROFILE:
        raise UserError(
            f"`--published` shows the figures of profile {DEFAULT_PROFILE!r}, the only profile that publishes figures. "
            f"Got {profile!r}: leave out `--profile {profile}`."
        )
    if published:  # a build, which calls this command without the option, has reported them
        report_unlisted(project)
    console.print(f"{STARTED} the site")
    folder = build_site(project, profile, published=published)
    console.print(f"[green]{DONE}[/] the site: {escaped(folder)}")


def _built(project: Project, profile: str) -> Path:
    """Return the folder of the site. Raise a `UserError` if it is not built completely."""
    from companion.site.jupyter_book import is_built

    folder, remedy = project.site(profile), f"Build it with `companion build --profile {profile}`."
    if not (folder / "index.html").is_file():
        raise UserError(f"There is no site in {folder} yet. {remedy}")
    if not is_built(project, profile):
        raise UserError(f"The last build of the site in {folder} failed, and pages may be missing. {remedy}")
    return folder


def _print(project: Project, profile: str) -> None:
    from companion.site.jupyter_book import offer_pdf

    _built(project, profile)
    try:
        from companion.site.pdf import print_book
    except ModuleNotFoundError as error:
        raise UserError(f"Printing needs {error.name}, which is not installed: install the extra `pdf`.") from error
    console.print(f"{STARTED} the PDF")
    printed = print_book(project, profile)
    offer_pdf(project, profile, printed)
    console.print(f"[green]{DONE}[/] the PDF: {escaped(printed)}")


def _serve(folder: Path, port: int, open_browser: bool) -> None:
    with listening(folder, port) as server:
        url = f"http://127.0.0.1:{server.server_port}/"
        if open_browser:
            import webbrowser

            # some browsers return only when they are closed
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        try:
            if port not in (0, server.server_port):
                console.print(f"Port {port} is taken.")
            console.print(f"{url} — press Ctrl-C to stop.")
            server.serve_forever()
        except KeyboardInterrupt:
            console.print("Stopped.")


def listening(folder: Path, port: int) -> "ThreadingHTTPServer":
    """Return a server of the files in `folder` on the loopback interface, at `port` or, if it is taken, another one."""
    from companion.site.server import server  # the only slow import of this module

    try:
        return server(folder, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return server(folder, 0)
        raise UserError(f"Port {port} cannot be used: {error.strerror}. Choose a port from 1024 to 65535.") from error
