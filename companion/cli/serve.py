"""`companion serve`: show the built site in a browser."""

import errno
import functools
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from companion.cli.terminal import Profile, app, console, explained
from companion.io.errors import UserError
from companion.project.paths import DEFAULT_PROFILE, Project

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer


# `companion serve` looks for a free port among so many.
PORTS_TRIED = 20


@app.command()
@explained
def serve(
    profile: Profile = DEFAULT_PROFILE,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The next, if it is taken; 0 takes a free one.")] = 8000,
    open_browser: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Show the built site in a browser, from this machine to this machine only. Ctrl-C ends it."""
    from companion.site.jupyter_book import is_built

    project = Project.here()
    project.require_profile(profile)
    site = project.site(profile)
    again = f"Build it with `companion build --profile {profile}`."
    if not (site / "index.html").is_file():
        raise UserError(f"There is no site in {site} yet. {again}")
    if not is_built(project, profile):
        raise UserError(f"The last build of the site in {site} did not end well, and it may lack pages. {again}")
    with listening(site, port) as server:
        place = f"http://127.0.0.1:{server.server_port}/"
        if open_browser:
            import webbrowser

            # some browsers return only when they are closed
            threading.Thread(target=webbrowser.open, args=(place,), daemon=True).start()
        try:
            if port not in (0, server.server_port):
                console.print(f"Port {port} is taken.")
            console.print(f"{place} — Ctrl-C ends it.")
            server.serve_forever()
        except KeyboardInterrupt:
            console.print("Ended.")


def listening(site: Path, port: int) -> "ThreadingHTTPServer":
    """A server of the files in `site` on loopback, at `port` or the first free one of the next few."""
    import http.server  # slow to import, as nothing else here is

    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    ports = range(port, min(port + PORTS_TRIED, 65536))
    for candidate in ports:
        try:
            return http.server.ThreadingHTTPServer(("127.0.0.1", candidate), handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise UserError(f"Port {candidate} cannot be used: {error.strerror}. Name one from 1024 on.") from error
    raise UserError(
        f"Ports {ports[0]} to {ports[-1]} are taken. Name another, or 0 for any: `companion serve --port 0`."
    )
