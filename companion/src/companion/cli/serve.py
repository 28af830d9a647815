"""`companion serve`: show the built site in a browser."""

import errno
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from companion.cli.terminal import BUILD_AND_READ, Profile, app, console, report_errors
from companion.io.errors import UserError
from companion.project.paths import DEFAULT_PROFILE, Project

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer


# The number of consecutive ports that `companion serve` tries.
PORTS_TRIED = 20


@app.command(rich_help_panel=BUILD_AND_READ)
@report_errors
def serve(
    profile: Profile = DEFAULT_PROFILE,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port, or the next free one if it is taken; 0 for any free port.")
    ] = 8000,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the site in a browser.")] = False,
) -> None:
    """Serve the built site on this machine, compressed as a web host does.

    Other machines cannot reach the server. Ctrl-C stops it.

    Example:

        companion serve --open
    """
    from companion.site.jupyter_book import is_built

    project = Project.here()
    project.require_profile(profile)
    site = project.site(profile)
    remedy = f"Build it with `companion build --profile {profile}`."
    if not (site / "index.html").is_file():
        raise UserError(f"There is no site in {site} yet. {remedy}")
    if not is_built(project, profile):
        raise UserError(f"The last build of the site in {site} failed, and pages may be missing. {remedy}")
    with listening(site, port) as server:
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


def listening(site: Path, port: int) -> "ThreadingHTTPServer":
    """Return a server of the files in `site` on the loopback interface, at `port` or the next free port."""
    from companion.site.server import server  # the only slow import of this module

    ports = range(port, min(port + PORTS_TRIED, 65536))
    for candidate in ports:
        try:
            return server(site, candidate)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise UserError(
                    f"Port {candidate} cannot be used: {error.strerror}. Choose a port from 1024 to 65535."
                ) from error
    raise UserError(
        f"Ports {ports[0]} to {ports[-1]} are taken. Choose another port, or any free one: `companion serve --port 0`."
    )
