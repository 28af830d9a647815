"""Read notebooks without a kernel: parameters, code cells, figures, title."""

import ast
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from companion.io.errors import UserError, did_you_mean
from companion.project import slicing
from companion.project.paths import Project

PARAMETERS_TAG = "parameters"
BOOTSTRAP_TAG = "bootstrap"
INJECTED_TAG = "injected-parameters"  # papermill's
NBFORMAT = 4  # the newest format of notebooks that Jupyter reads
BY_HAND_TAG = "by-hand"  # on a cell that computes one number in a few lines; the site shows its code unfolded
TECHNICAL_TAG = "technical"  # on a cell whose figures the site folds


@dataclass(frozen=True)
class Notebook:
    """A parametrised notebook; its chapter and its folder of figures have the same name."""

    path: Path

    @classmethod
    def named(cls, project: Project, name: str) -> "Notebook":
        """Return the notebook `name`; a `UserError` for an unknown name lists the known ones."""
        project.require_notebook(name)
        return cls(project.notebook(name))

    @property
    def name(self) -> str:
        """The file name without its suffix."""
        return self.path.stem

    @cached_property
    def card(self) -> dict[str, str] | None:
        """The `figure` and the `summary` with which other pages show the chapter, or None."""
        metadata = self._content.get("metadata")
        card = metadata.get("card") if isinstance(metadata, dict) else None
        if card is None:
            return None
        if not isinstance(card, dict) or not {"figure", "summary"} <= card.keys():
            raise UserError(f"`card` in the metadata of {self.path} needs a `figure` and a `summary`. Got {card!r}.")
        return {name: str(card[name]) for name in ("figure", "summary")}

    @cached_property
    def cells(self) -> list[dict[str, Any]]:
        """The cells, each with its source as one string."""
        try:
            return [self._read_cell(number, cell) for number, cell in enumerate(self._content["cells"], start=1)]
        except (AttributeError, ValueError, KeyError, TypeError) as error:
            raise self._not_a_notebook(error) from error

    @cached_property
    def _content(self) -> dict[str, Any]:
        """The content of the file, in a format of notebooks that this version of Jupyter reads."""
        try:
            text = self.path.read_text(encoding="utf-8")
            if text.startswith("\ufeff"):
                raise UserError(f"{self.path} begins with a byte-order mark. Save it as UTF-8 without one.")
            content = json.loads(text)
            if (version := content.get("nbformat", NBFORMAT)) > NBFORMAT:
                raise UserError(
                    f"{self.path} has format {version} of notebooks, and this version of Jupyter reads format "
                    f"{NBFORMAT}. Save it in that format."
                )
            if "worksheets" in content:
                raise UserError(
                    f"{self.path} has the format of notebooks before 2015 (nbformat {content.get('nbformat')}). Open "
                    "it in JupyterLab and save it, which converts it."
                )
        except (AttributeError, ValueError, KeyError, TypeError) as error:
            raise self._not_a_notebook(error) from error
        return content

    def _not_a_notebook(self, error: Exception) -> UserError:
        return UserError(f"{self.path} is not a notebook: {error!r}. Restore it.")

    def _read_cell(self, number: int, cell: dict[str, Any]) -> dict[str, Any]:
        """Return a cell with its source as one string.

        Raises:
          UserError: if its metadata or its tags have another form than Jupyter and papermill expect.
          KeyError, TypeError, ValueError: if a part is missing, or the source is no text that UTF-8 can hold.
        """
        source, metadata = "".join(cell["source"]), cell["metadata"]
        source.encode()
        if not isinstance(metadata, dict) or not isinstance(metadata.get("tags", []), list):
            raise UserError(
                f"The metadata of cell {number} of {self.path} must be a mapping, and its `tags` a list. Got "
                f"{json.dumps(metadata)}."
            )
        return {**cell, "cell_type": cell["cell_type"], "source": source}

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The values in the parameters cell, which is the only place for defaults; none without such a cell."""
        tagged = self._tagged
        if any(INJECTED_TAG in cell["metadata"].get("tags", []) for cell in self.cells):
            raise UserError(
                f"{self.path.name} has a cell tagged `{INJECTED_TAG}`, whose values would replace its parameters "
                "unnoticed: papermill writes such a cell into its output. Remove the cell, or restore the notebook."
            )
        if not tagged:
            return {}
        if len(tagged) > 1:
            raise self._needs_one_cell()
        values: dict[str, Any] = {}
        last_line = 0
        for statement in self._python(tagged[0]["source"]).body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if statement.lineno > last_line:
                    last_line = statement.end_lineno or statement.lineno
                    values[name] = self._literal(name, value)
                case _:
                    raise UserError(
                        f"The parameters cell of {self.path.name} must contain one `name = value` per line. "
                        f"Got `{ast.unparse(statement)}`."
                    )
        return values

    def require_parameters_cell(self) -> None:
        """Raise a `UserError` if no cell is tagged as the parameters cell, or more than one."""
        if len(self._tagged) != 1:
            raise self._needs_one_cell()

    @property
    def has_parameters_cell(self) -> bool:
        """Whether a cell is tagged as the parameters cell. A notebook that is only a page has none."""
        return bool(self._tagged)

    @property
    def _tagged(self) -> list[dict[str, Any]]:
        return [cell for cell in self.cells if PARAMETERS_TAG in cell["metadata"].get("tags", [])]

    def _needs_one_cell(self) -> UserError:
        return UserError(
            f"{self.path.name} needs exactly one cell tagged `{PARAMETERS_TAG}`, because papermill silently keeps "
            f"the notebook's own values otherwise. Got {len(self._tagged)}."
        )

    def _python(self, source: str) -> ast.Module:
        try:
            return ast.parse(source)
        except SyntaxError as error:
            raise UserError(f"A cell of {self.path.name} is not plain Python ({error}):\n{source}") from error

    def _literal(self, name: str, value: ast.expr) -> Any:
        try:
            return ast.literal_eval(value)
        except ValueError as error:
            raise UserError(
                f"Parameter `{name}` of {self.path.name} must be a plain value (number, string, list), because a "
                f"profile must be able to write it. Got `{ast.unparse(value)}`."
            ) from error

    @cached_property
    def code(self) -> list[str]:
        """The sources of the code cells, except the parameters cell and the bootstrap cell."""
        return [cell["source"] for cell in self.cells if _computes(cell)]

    @cached_property
    def figures(self) -> list[str]:
        """The figures that the notebook publishes, in the order of its `publish(FIGURE, …)` calls."""
        try:
            return slicing.published_figures(self.code)
        except SyntaxError as error:
            raise UserError(f"A cell of {self.path.name} is not plain Python: {error}.") from error

    def require_figure(self, figure: str) -> None:
        """Raise a `UserError` that lists the notebook's figures if `figure` is not one of them."""
        if figure not in self.figures:
            raise UserError(f"Notebook {self.name!r} has no figure {figure!r}. {did_you_mean(figure, self.figures)}")

    def only(self, figure: str) -> dict[str, Any]:
        """Return the JSON content of the notebook with all prose but only the code that leads to `figure`."""
        self.require_figure(figure)
        # a by-hand cell leads to no figure
        code = ["" if _has_tag(cell, BY_HAND_TAG) else cell["source"] for cell in self.cells if _computes(cell)]
        sources = iter(slicing.reduced_cells(code, figure))
        cells = [{**cell, "source": next(sources)} if _computes(cell) else cell for cell in self.cells]
        content = json.loads(self.path.read_text(encoding="utf-8"))
        return {**content, "cells": [cell for cell in cells if cell["cell_type"] != "code" or cell["source"]]}

    @cached_property
    def title(self) -> str:
        """The first heading of the notebook."""
        for cell in self.cells:
            if cell["cell_type"] == "markdown" and cell["source"].startswith("# "):
                return cell["source"].splitlines()[0][2:].strip()
        raise UserError(f"{self.path.name} needs a first heading, `# …`, for the table of contents.")


def _has_tag(cell: dict[str, Any], tag: str) -> bool:
    return tag in cell["metadata"].get("tags", [])


def _computes(cell: dict[str, Any]) -> bool:
    """Return whether a cell computes: it is code, and neither the parameters cell nor the bootstrap cell."""
    special = {PARAMETERS_TAG, INJECTED_TAG, BOOTSTRAP_TAG}
    return cell["cell_type"] == "code" and not special & set(cell["metadata"].get("tags", []))
