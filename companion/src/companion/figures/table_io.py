"""Write and read the table of a figure as CSV."""

# pandas has no complete types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from companion.figures.record import ColumnRecord, Kind

EXACT_DIGITS = 17
# How the texts of a CSV become values, and the types of the columns.
READERS: dict[Kind, Callable[[str], object]] = {
    "flag": lambda text: text == "True",
    "integer": int,
    "number": lambda text: float(text or "nan"),
    "text": lambda text: text or None,
}
TYPES: dict[Kind, Any] = {"flag": bool, "integer": np.int64, "number": np.float64, "text": object}


def plain(frame: pd.DataFrame, where: str) -> tuple[pd.DataFrame, dict[str, Kind]]:
    """Return `frame` as it is read back from a CSV with full precision, and the kind of each column.

    Args:
      frame: the table.
      where: the origin of the table, for errors.

    Raises:
      TypeError: if a column contains other values than numbers, whole numbers, flags or text.
    """
    kinds: dict[str, Kind] = {str(name): _kind(column, f"{where}: column {name!r}") for name, column in frame.items()}
    text = frame.to_csv(index=False, float_format=f"%.{EXACT_DIGITS}g", lineterminator="\n")
    return _parse(io.StringIO(text), kinds), kinds


def read_csv(path: Path, columns: Mapping[str, ColumnRecord]) -> pd.DataFrame:
    """Return the table in `path` with every digit; the columns have the kinds in the figure's record."""
    return _parse(path, {name: column.kind for name, column in columns.items()})


def _kind(column: pd.Series, where: str) -> Kind:
    if pd.api.types.is_bool_dtype(column):
        return "flag"
    if pd.api.types.is_integer_dtype(column):
        return "integer"
    if pd.api.types.is_float_dtype(column):
        return "number"
    odd = [
        value for value in column if not (isinstance(value, str) or (pd.api.types.is_scalar(value) and pd.isna(value)))
    ]
    if odd:
        raise TypeError(
            f"{where} must hold numbers, whole numbers, flags or text, because it is published as CSV. Got {odd[0]!r}."
        )
    return "text"


def _parse(source: Any, kinds: Mapping[str, Kind]) -> pd.DataFrame:
    if not kinds:  # the table of a schematic
        return pd.DataFrame()
    texts = pd.read_csv(source, dtype=str, keep_default_na=False)
    cells: dict[str, list[str]] = {name: list(texts[name]) for name in kinds}
    return pd.DataFrame(
        {name: pd.Series(list(map(READERS[kind], cells[name])), dtype=TYPES[kind]) for name, kind in kinds.items()}
    )


def write_csv(frame: pd.DataFrame, path: Path, digits: int) -> None:
    """Write `frame` with `digits` significant digits; the same numbers give the same bytes."""
    frame.to_csv(path, index=False, float_format=f"%.{digits}g", lineterminator="\n")
