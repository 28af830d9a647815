"""The command line, one module per command."""

# The import of a module registers its command; `companion --help` lists the commands in this order.
from companion.cli import build, site, list_figures  # noqa: I001
from companion.cli import run, redraw, sweep
from companion.cli import compare, verify
from companion.cli import new, set_url
from companion.cli.terminal import app

__all__ = ["app", "build", "compare", "list_figures", "new", "redraw", "run", "set_url", "site", "sweep", "verify"]
