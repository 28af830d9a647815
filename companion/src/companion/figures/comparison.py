"""Compare a figure's numbers with the published ones, in units of the publication tolerance.

A number that moved by more than 1 makes a rebuild replace the figure. The tolerance of a Monte-Carlo column is five
standard errors; that of an exact column is 1e-6 of the value plus `absolute`. Published numbers are rounded to six
digits, so half a unit of the sixth digit is added. A column that moves with another only needs finite values in the
same rows.
"""

# pandas has no complete types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from companion.figures.record import SIGNIFICANT_DIGITS, ColumnRecord


@dataclass(frozen=True)
class ColumnMovement:
    """The largest movement `by` of the numbers of one column, in tolerances, and the row where it occurs.

    `by` is infinite if a number is finite in only one of the tables, or if a text changed. `row` counts from 1; `old`
    and `new` are the published and the new value in this row.
    """

    name: str
    by: float
    row: int
    old: float | str
    new: float | str


@dataclass(frozen=True)
class Movement:
    """The movement of one table: its columns, the largest first, or the reason why the rows cannot be compared."""

    columns: tuple[ColumnMovement, ...] = ()
    other_rows: str | None = None

    @property
    def by(self) -> float:
        """The largest movement of any column."""
        return self.columns[0].by if self.columns else 0.0

    @property
    def reproduces(self) -> bool:
        """Whether a rebuild would keep the published numbers."""
        return self.other_rows is None and self.by <= 1


def moved_columns(published: Path, unrounded: Path, columns: Mapping[str, ColumnRecord]) -> list[str]:
    """Return the columns that moved beyond their tolerance.

    Args:
      published: path of the published CSV.
      unrounded: path of the CSV with the new, unrounded numbers.
      columns: the columns of the new record.
    """
    old, new = _read(published), _read(unrounded)
    if list(old.columns) != list(new.columns) or len(old) != len(new):
        return ["the shape of the table"]
    return [column.name for column in _columns(old, new, columns) if column.by > 1]


def movement(published: Path, unrounded: Path, columns: Mapping[str, ColumnRecord]) -> Movement:
    """Return the movement of a table; the arguments are those of `moved_columns`.

    Numbers are compared row by row, which needs the same rows: the same number of rows, the same texts, and the same
    values in the first column, which identifies a row.
    """
    old, new = _read(published), _read(unrounded)
    if list(old.columns) != list(new.columns):
        return Movement(other_rows=f"its columns are {', '.join(new.columns)}; published: {', '.join(old.columns)}")
    if len(old) != len(new):
        return Movement(other_rows=f"it has {len(new)} rows; published: {len(old)}")
    movements = _columns(old, new, columns)
    for index, column in enumerate(movements):
        if column.by > 1 and (index == 0 or isinstance(column.old, str)):
            return Movement(
                other_rows=f"its rows differ: {column.name} of row {column.row} is {column.new}; published: "
                f"{column.old}"
            )
    return Movement(tuple(sorted(movements, key=lambda column: -column.by)))


def _read(table: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(table)
    except pd.errors.EmptyDataError:  # the table of a schematic
        return pd.DataFrame()


def _columns(old: pd.DataFrame, new: pd.DataFrame, columns: Mapping[str, ColumnRecord]) -> list[ColumnMovement]:
    return [_column(old, new, name, column) for name, column in columns.items()]


def _column(old: pd.DataFrame, new: pd.DataFrame, name: str, column: ColumnRecord) -> ColumnMovement:
    numeric = all(pd.api.types.is_numeric_dtype(frame[name]) for frame in (old, new))
    kind = float if numeric else str
    old_values, new_values = ([kind(value) for value in frame[name].tolist()] for frame in (old, new))
    if numeric:
        by = _in_tolerances(old, new, name, column)
    else:
        by = np.where(np.array(old_values) == np.array(new_values), 0.0, math.inf)
    if not len(by):
        return ColumnMovement(name, 0.0, 0, kind(), kind())
    row = int(by.argmax())
    return ColumnMovement(name, float(by[row]), row + 1, old_values[row], new_values[row])


def _in_tolerances(old: pd.DataFrame, new: pd.DataFrame, name: str, column: ColumnRecord) -> np.ndarray:
    """Return the distance of the numbers in each row, in units of the row's tolerance."""
    published, rebuilt = old[name].to_numpy(float), new[name].to_numpy(float)
    both = np.isfinite(published) & np.isfinite(rebuilt)
    by = np.where(both | (published == rebuilt) | (np.isnan(published) & np.isnan(rebuilt)), 0.0, math.inf)
    if column.moves_with is not None:
        return by
    size = np.abs(np.where(both & (published != 0), published, 1.0))
    rounding = 0.5 * 10.0 ** (np.floor(np.log10(size)) - SIGNIFICANT_DIGITS + 1)
    allowed = column.absolute + 1e-6 * np.abs(np.where(both, rebuilt, 0.0)) + np.where(published == 0, 0.0, rounding)
    if column.std_error is not None:
        errors = [frame[column.std_error].to_numpy(float) for frame in (old, new)]
        allowed = np.maximum(allowed, 5 * np.nan_to_num(np.maximum(*errors)))
    same = np.array([float(f"{value:.{SIGNIFICANT_DIGITS}g}") for value in rebuilt]) == published
    compared = both & ~same
    distance = np.abs(np.where(compared, rebuilt, 0.0) - np.where(compared, published, 0.0))
    with np.errstate(divide="ignore"):
        return np.where(distance == 0, by, distance / np.where(distance == 0, 1.0, allowed))
