"""The command line: `companion --help` lists what it does."""

# Importing a module of commands adds them to the application, in the order of `companion --help`.
from companion.cli import list_figures, run, sweep, redraw, task, runs, compare, verify  # noqa: I001
from companion.cli import build, site, pdf, serve, new, set_url
from companion.cli.terminal import app

__all__ = [
    "app",
    "build",
    "compare",
    "list_figures",
    "new",
    "pdf",
    "redraw",
    "run",
    "runs",
    "serve",
    "set_url",
    "site",
    "sweep",
    "task",
    "verify",
]
