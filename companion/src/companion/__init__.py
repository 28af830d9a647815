"""Publish executable books: check parameters, run notebooks, publish figures with their data and claims.

The names below are the public API of chapters. A name is imported on first use, so that the command line starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from companion.authoring.publish import begin as begin
    from companion.authoring.tasks import gather as gather
    from companion.figures.claims import Claims as Claims
    from companion.figures.schema import Column as Column
    from companion.figures.schema import Estimate as Estimate
    from companion.figures.schema import Numbers as Numbers
    from companion.figures.schema import Table as Table
    from companion.figures.schematics import no_numbers as no_numbers
    from companion.io.errors import UserError as UserError
    from companion.project.parameters import Parameters as Parameters
    from companion.project.parameters import Seed as Seed
    from companion.runs.rerun import rerun as rerun

_MODULES = {
    "Claims": "figures.claims",
    "Column": "figures.schema",
    "Estimate": "figures.schema",
    "Numbers": "figures.schema",
    "Parameters": "project.parameters",
    "Seed": "project.parameters",
    "Table": "figures.schema",
    "UserError": "io.errors",
    "begin": "authoring.publish",
    "gather": "authoring.tasks",
    "no_numbers": "figures.schematics",
    "rerun": "runs.rerun",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"companion.{_MODULES[name]}"), name)
