"""The publishing machine: parameters checked, notebooks run, figures published with their data and claims.

A table of contents; what is heavy is imported when it is asked for, so that the command line answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from companion.authoring.publish import begin as begin
    from companion.authoring.tasks import gather as gather
    from companion.figures.schema import Alternative as Alternative
    from companion.figures.schema import Claim as Claim
    from companion.figures.schema import Column as Column
    from companion.figures.schema import Estimate as Estimate
    from companion.figures.schema import Numbers as Numbers
    from companion.figures.schema import Table as Table
    from companion.project.parameters import Parameters as Parameters
    from companion.project.parameters import Seed as Seed
    from companion.runs.rerun import rerun as rerun

_HOMES = {
    "Alternative": "figures.schema",
    "Claim": "figures.schema",
    "Column": "figures.schema",
    "Estimate": "figures.schema",
    "Numbers": "figures.schema",
    "Parameters": "project.parameters",
    "Seed": "project.parameters",
    "Table": "figures.schema",
    "begin": "authoring.publish",
    "gather": "authoring.tasks",
    "rerun": "runs.rerun",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = f"companion.{_HOMES[name]}"
    try:
        return getattr(import_module(home), name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(without(error.name, f"`companion.{name}`", "notebook"), name=error.name) from error
    except AttributeError as error:  # which `from companion import …` would take for a name that is not there
        raise ImportError(f"{home} could not be imported: {error}") from error


def without(missing: str | None, what: str, extra: str) -> str:
    """Return the message about a library that is not installed, with the extra that installs it."""
    return f"{what} needs {missing}, which is not installed. The distribution asks for it with its extra `{extra}`."
