"""The functions of notebooks: `begin` in the first cell, `publish` at the end of every cell that shows a figure.

In a build, `publish` writes the four files of a figure to the build's folder. In a notebook that a user runs by hand,
it shows the figure inline and writes the same files to `figures-scratch/`; a failed claim is shown as a cross and does
not stop the notebook.
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import pandas as pd
from pydantic import ValidationError

from companion.analysis import dependencies
from companion.authoring import display
from companion.authoring.display import Published
from companion.figures import rendering, store, table_io
from companion.figures.claims import Claims
from companion.figures.record import SCHEMA_VERSION, Claim, ColumnRecord, NotebookClaims, RunRecord, WithheldClaim
from companion.figures.schema import Numbers
from companion.io import atomic
from companion.project import slicing
from companion.project.configuration import Settings
from companion.project.notebooks import Notebook
from companion.project.parameters import Parameters, explain
from companion.project.paths import DRAWN, NOTEBOOK, OUT, PROFILE

SCRATCH = "figures-scratch"
P = TypeVar("P", bound=Parameters)


def begin(parameters: type[P], namespace: Mapping[str, Any]) -> tuple[P, "Publisher"]:
    """Check the values of the parameters cell and open the book's context, such as double precision.

    Args:
      parameters: the class `Parameters` of the chapter.
      namespace: the notebook's `globals()`.

    Returns:
      The parameters, and the function that publishes the notebook's figures.

    Raises:
      ValueError: if a value is missing or not allowed; the message gives each parameter, its rule and its meaning.
    """
    package, _, notebook = parameters.__module__.removesuffix(".parameters").partition(".")
    settings = Settings.of_package(package)
    if missing := [name for name in parameters.model_fields if name not in namespace]:
        raise ValueError(
            f"The parameters cell of {notebook!r} must give a value to every parameter. Run it first. "
            f"Missing: {', '.join(missing)}."
        )
    try:
        values = parameters.model_validate({name: namespace[name] for name in parameters.model_fields})
    except ValidationError as error:
        raise ValueError(explain(notebook, parameters, error)) from None
    settings.open_context()
    return values, Publisher(notebook, values, settings)


class Publisher:
    """The function `publish` of a notebook, which `begin` returns."""

    def __init__(self, notebook: str, parameters: Parameters, settings: Settings):
        self.notebook, self.parameters, self.settings = notebook, parameters, settings
        self._root = Path(str(sys.modules[settings.chapters].__file__)).parents[1]
        self._claims: dict[str, Claim | WithheldClaim] = {}

    def __call__(self, figure: ModuleType, *outputs: Any, **named: Any) -> Published:
        """Publish a figure of the chapter.

        Args:
          figure: the figure module.
          outputs: the positional arguments of `figure.numbers`, which returns the table and the claims.
          named: the keyword arguments of `figure.numbers`.

        Returns:
          The figure, which Jupyter displays.
        """
        numbers = self._numbers(figure, outputs, named)
        name = figure.__name__.rpartition(".")[2]
        out, folder = self._folders()
        frame, kinds = table_io.plain(numbers.table.frame, where=figure.__name__)
        library = dependencies.Library.at(self._root, self.settings.science)
        # a notebook run by hand has another file, if any, and its cells may have run in another order
        cells = Notebook(Path(os.environ[NOTEBOOK])).code if out else []
        steps = slicing.steps_of(cells, name, self.settings.science)
        values = self.parameters.model_dump(mode="json")
        run = RunRecord(
            schema_version=SCHEMA_VERSION,
            figure=name,
            notebook=self.notebook,
            profile=os.environ.get(PROFILE, "by hand"),
            parameters=values,
            seed=values.get("seed"),
            columns={
                key: ColumnRecord(**asdict(column), kind=kinds[key]) for key, column in numbers.table.columns.items()
            },
            claims=tuple(numbers.made),
            withheld=tuple(numbers.withheld),
            steps=tuple(steps.lines),
            functions=tuple(library.shown(figure.__name__, steps.functions)),
            sources=tuple(library.files([figure.__name__, *steps.functions])),
        )
        if out:
            self._write_unrounded(Path(out), run, frame)
        drawn = Path(out) / DRAWN if out else None
        return Published(folder, rendering.write_set(folder, figure, frame, run, library, drawn=drawn))

    def claims(self, claims: Claims) -> None:
        """Publish claims that no figure shows; a notebook may do so in several cells.

        In a notebook run by hand, the verdicts are printed.
        """
        self._claims |= {claim.id: claim for claim in claims}
        out, folder = self._folders()
        made = NotebookClaims(
            schema_version=SCHEMA_VERSION,
            notebook=self.notebook,
            profile=os.environ.get(PROFILE, "by hand"),
            parameters=self.parameters.model_dump(mode="json"),
            claims=tuple(claim for claim in self._claims.values() if isinstance(claim, Claim)),
            withheld=tuple(claim for claim in self._claims.values() if isinstance(claim, WithheldClaim)),
        )
        folder.mkdir(parents=True, exist_ok=True)
        store.write_record(folder, made)
        if not out:
            print("\n".join(map(display.verdict_line, claims)))

    def _folders(self) -> tuple[str | None, Path]:
        """Return the folder of the build, or None in a notebook run by hand, and the folder of its figures."""
        out = os.environ.get(OUT)
        return out, (Path(out) / "figures" if out else Path(SCRATCH)) / self.notebook

    def _numbers(self, figure: ModuleType, outputs: tuple, named: dict[str, Any]) -> Numbers:
        if not isinstance(figure, ModuleType) or not all(hasattr(figure, part) for part in ("numbers", "draw")):
            raise TypeError(
                "`publish(FIGURE, …)` needs a figure module (with `numbers` and `draw`), then the arguments of its "
                f"`numbers`. Got {figure!r}."
            )
        numbers = figure.numbers(*outputs, **named)
        if not isinstance(numbers, Numbers):
            raise TypeError(f"`{figure.__name__}.numbers` must return `Numbers(table, claims)`. Got {type(numbers)}.")
        return numbers

    def _write_unrounded(self, out: Path, run: RunRecord, frame: pd.DataFrame) -> None:
        """Write the unrounded table, its record and the device to the folder of the build."""
        tables = out / "tables" / self.notebook
        tables.mkdir(parents=True, exist_ok=True)
        table_io.write_csv(frame, tables / f"{run.figure}{store.DATA}", table_io.EXACT_DIGITS)
        store.write_record(tables, run)
        atomic.write_text(out / "device.json", json.dumps(self.settings.device_in_words()))
