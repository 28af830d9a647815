"""The publishing machine: parameters checked, notebooks run, figures published with their data and claims.

A table of contents; what is heavy is imported when it is asked for, so that the command line answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from companion.parameters import Parameters as Parameters
    from companion.pieces import gather as gather
    from companion.publishing import begin as begin
    from companion.records import Alternative as Alternative
    from companion.records import Claim as Claim
    from companion.records import Column as Column
    from companion.records import Numbers as Numbers
    from companion.records import Table as Table
    from companion.rerunning import rerun as rerun

_HOMES = {
    "Alternative": "records",
    "Claim": "records",
    "Column": "records",
    "Numbers": "records",
    "Parameters": "parameters",
    "Table": "records",
    "begin": "publishing",
    "gather": "pieces",
    "rerun": "rerunning",
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
    """The sentence about a library that is not installed, and the extra of the distribution that asks for it."""
    return f"{what} needs {missing}, which is not installed. The distribution asks for it with its extra `{extra}`."
