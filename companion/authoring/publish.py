"""`begin` and `publish`: the first line of a notebook, and the last line of every cell that shows something.

Run by the builder, `publish` writes the figure's five files where the builder said. Run by hand, it shows the figure
inline, writes the same files to `figures-scratch/`, and shows a failed claim as a cross instead of stopping.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pandas as pd
from pydantic import ValidationError

from companion.analysis import dependencies
from companion.authoring.display import Published
from companion.figures import mathtext_cache, rendering, store, table_io
from companion.figures.record import SCHEMA_VERSION, ClaimRecord, ColumnRecord, RunRecord
from companion.figures.schema import Numbers
from companion.io import atomic
from companion.project import slicing
from companion.project.configuration import Settings
from companion.project.parameters import Parameters, explain
from companion.project.paths import OUT, PROFILE

SCRATCH = "figures-scratch"
P = TypeVar("P", bound=Parameters)


def begin(parameters: type[P], namespace: Mapping[str, Any]) -> tuple[P, "Publisher"]:
    """The values of the parameters cell, checked, and the function that publishes the notebook's figures.

    `namespace` is the notebook's `globals()`. The book's context, such as double precision, holds from here on. Raises
    `ValueError`, naming each parameter, its rule and its meaning, if a value is missing or not allowed.
    """
    package, _, notebook = parameters.__module__.removesuffix(".parameters").partition(".")
    settings = Settings.of_package(package)
    if missing := [name for name in parameters.model_fields if name not in namespace]:
        raise ValueError(
            f"The parameters cell of {notebook!r} must give a value to every parameter: run it first. "
            f"Missing: {', '.join(missing)}."
        )
    if shadowed := [name for name in parameters.model_fields if isinstance(namespace[name], ModuleType)]:
        raise ValueError(
            f"An import after the parameters cell of {notebook!r} has taken the name of a parameter: "
            f"{', '.join(shadowed)}. Give the module another name."
        )
    try:
        values = parameters.model_validate({name: namespace[name] for name in parameters.model_fields})
    except ValidationError as error:
        raise ValueError(explain(notebook, parameters, error)) from None
    settings.open_context()
    return values, Publisher(notebook, values, settings, namespace)


class Publisher:
    """What `begin` hands out as `publish`."""

    def __init__(self, notebook: str, parameters: Parameters, settings: Settings, namespace: Mapping[str, Any]):
        self.notebook, self.parameters, self.settings = notebook, parameters, settings
        self._namespace = namespace

    def __call__(self, figure: ModuleType, *outputs: Any, **named: Any) -> Published:
        """Publish `figure`, a file of the chapter, with `figure.numbers(*outputs, **named)` as its table and claims."""
        made = self._numbers(figure, outputs, named)
        name = figure.__name__.rpartition(".")[2]
        out = os.environ.get(OUT)
        folder = (Path(out) / "figures" if out else Path(SCRATCH)) / self.notebook
        frame, kinds = table_io.plain(made.table.frame, where=figure.__name__)
        library = dependencies.Library.installed(self.settings.science)
        cells = [cell for cell in self._namespace.get("In", []) if isinstance(cell, str)]
        taken = slicing.steps_of(cells, name, self.settings.science)
        values = self.parameters.model_dump(mode="json")
        run = RunRecord(
            schema_version=SCHEMA_VERSION,
            figure=name,
            notebook=self.notebook,
            profile=os.environ.get(PROFILE, "by hand"),
            parameters=values,
            seed=values.get("seed"),
            columns={key: ColumnRecord.of(column, kinds[key]) for key, column in made.table.columns.items()},
            claims=tuple(ClaimRecord.of(claim) for claim in made.claims),
            steps=tuple(taken.lines),
            functions=tuple(library.shown(figure.__name__, taken.functions)),
            sources=tuple(library.files([figure.__name__, *taken.functions])),
        )
        if out:
            self._leave_to_runner(Path(out), run, frame)
        mathtext_cache.parse_once()
        return Published(folder, rendering.write_set(folder, figure, frame, run, library))

    def _numbers(self, figure: ModuleType, outputs: tuple, named: dict[str, Any]) -> Numbers:
        if not isinstance(figure, ModuleType) or not all(hasattr(figure, part) for part in ("numbers", "draw")):
            raise TypeError(
                "`publish(FIGURE, …)` takes a figure file, a module with `numbers` and `draw`, then what its `numbers` "
                f"takes. Got {figure!r}."
            )
        made = figure.numbers(*outputs, **named)
        if not isinstance(made, Numbers):
            raise TypeError(f"`{figure.__name__}.numbers` must return `Numbers(table, claims)`. Got {type(made)}.")
        return made

    def _leave_to_runner(self, out: Path, run: RunRecord, frame: pd.DataFrame) -> None:
        if not out.is_dir():
            raise FileNotFoundError(f"`{out}` is gone, and with it whoever asked for these results.")
        tables = out / "tables" / self.notebook
        tables.mkdir(parents=True, exist_ok=True)
        table_io.write_csv(frame, tables / f"{run.figure}{store.DATA}", table_io.EXACT_DIGITS)
        store.write_record(tables, run)
        atomic.write_text(out / "device.json", json.dumps(self.settings.device_in_words()))
