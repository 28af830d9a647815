"""Read notebooks without a kernel: parameters, code cells, figures, title."""

import ast
import json
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from companion.io.errors import UserError, did_you_mean
from companion.project import slicing
from companion.project.paths import Project

PARAMETERS_TAG = "parameters"
BOOTSTRAP_TAG = "bootstrap"
INJECTED_TAG = "injected-parameters"  # papermill's
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
        card = self._content.get("metadata", {}).get("card")
        if card is None:
            return None
        if not isinstance(card, dict) or not {"figure", "summary"} <= card.keys():
            raise UserError(f"`card` in the metadata of {self.path} needs a `figure` and a `summary`. Got {card!r}.")
        return {name: str(card[name]) for name in ("figure", "summary")}

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The cells, each with its source as one string."""
        return self._content["cells"]

    @cached_property
    def _content(self) -> dict[str, Any]:
        """The content of the file, the source of each cell as one string."""
        try:
            return _parsed(self.path.read_text(encoding="utf-8"))
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{self.path} is not a notebook: {error!r}. Restore it.") from error

    @cached_property
    def parameters_cell(self) -> dict[str, Any] | None:
        """The parameters cell; a notebook that is only a page has none."""
        tagged = [cell for cell in self.cells if _has_tag(cell, PARAMETERS_TAG)]
        if len(tagged) > 1:
            raise UserError(
                f"{self.path.name} needs exactly one cell tagged `{PARAMETERS_TAG}`, because papermill silently keeps "
                f"the notebook's own values otherwise. Got {len(tagged)}."
            )
        return tagged[0] if tagged else None

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The values in the parameters cell, which is the only place for defaults; none without such a cell."""
        if any(_has_tag(cell, INJECTED_TAG) for cell in self.cells):
            raise UserError(
                f"{self.path.name} has a cell tagged `{INJECTED_TAG}`, whose values would replace its parameters "
                "unnoticed: papermill writes such a cell into its output. Remove the cell, or restore the notebook."
            )
        cell = self.parameters_cell
        return dict(map(self._parameter, slicing.parse(cell["source"]).body)) if cell else {}

    def _parameter(self, statement: ast.stmt) -> tuple[str, Any]:
        """Return the name and the value that a statement of the parameters cell assigns."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                with suppress(ValueError):
                    return name, ast.literal_eval(value)
        raise UserError(
            f"The parameters cell of {self.path.name} must contain one `name = value` per line. Each value is plain "
            "(number, string, list), because a profile must be able to write it. Got "
            f"`{ast.unparse(statement)}`."
        )

    @cached_property
    def code(self) -> list[str]:
        """The sources of the code cells, except the parameters cell and the bootstrap cell."""
        return [cell["source"] for cell in self.cells if _computes(cell)]

    @cached_property
    def figures(self) -> list[str]:
        """The figures that the notebook publishes, in the order of its `publish(FIGURE, …)` calls."""
        return slicing.published_figures(self.code)

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
        return {**self._content, "cells": [cell for cell in cells if cell["cell_type"] != "code" or cell["source"]]}

    @cached_property
    def title(self) -> str:
        """The first heading of the notebook."""
        for cell in self.cells:
            if cell["cell_type"] == "markdown" and cell["source"].startswith("# "):
                return cell["source"].splitlines()[0][2:].strip()
        raise UserError(f"{self.path.name} needs a first heading, `# …`, for the table of contents.")


@cache
def _parsed(text: str) -> dict[str, Any]:
    content = json.loads(text)
    cells = [{**cell, "source": "".join(cell["source"])} for cell in content["cells"]]
    return {**content, "cells": cells}


def _has_tag(cell: dict[str, Any], tag: str) -> bool:
    return tag in cell["metadata"].get("tags", [])


def _computes(cell: dict[str, Any]) -> bool:
    """Return whether a cell computes: it is code, and neither the parameters cell nor the bootstrap cell."""
    special = (PARAMETERS_TAG, INJECTED_TAG, BOOTSTRAP_TAG)
    return cell["cell_type"] == "code" and not any(_has_tag(cell, tag) for tag in special)
