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

_HOMES = {
    "Alternative": "records",
    "Claim": "records",
    "Column": "records",
    "Numbers": "records",
    "Parameters": "parameters",
    "Table": "records",
    "begin": "publishing",
    "gather": "pieces",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"companion.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
