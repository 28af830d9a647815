"""Distance of a figure's numbers from the published ones, in units of the publication tolerance.

What is beyond 1 has moved: a rebuild replaces the figure for it. A Monte-Carlo column may move by five of its standard
errors, an exact one by 1e-6 of its value and by what the column says of zeros. Published numbers are rounded to six
digits, so half a unit of the sixth is allowed on top. A column that moves with another is only compared for where it is
finite.
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
    """One column: the largest movement of its numbers, and the row where it occurs.

    `by` is infinite where a number was finite in one table alone, or a text is another. `row` counts from 1; `old` and
    `new` are the published number and the new one there.
    """

    name: str
    by: float
    row: int
    old: float | str
    new: float | str


@dataclass(frozen=True)
class Movement:
    """The movement of one table: its columns, the largest first, or why its rows differ from the published ones."""

    columns: tuple[ColumnMovement, ...] = ()
    other_rows: str | None = None

    @property
    def by(self) -> float:
        """The largest movement of any column."""
        return self.columns[0].by if self.columns else 0.0

    @property
    def reproduces(self) -> bool:
        """Whether a rebuild would leave the published numbers where they are."""
        return self.other_rows is None and self.by <= 1


def moved(published: Path, unrounded: Path, columns: Mapping[str, ColumnRecord]) -> list[str]:
    """The columns in which the table in `unrounded` is further from the one in `published` than a rebuild may be."""
    old, new = pd.read_csv(published), pd.read_csv(unrounded)
    if list(old.columns) != list(new.columns) or len(old) != len(new):
        return ["the shape of the table"]
    return [column.name for column in _columns(old, new, columns) if column.by > 1]


def movement(published: Path, unrounded: Path, columns: Mapping[str, ColumnRecord]) -> Movement:
    """Return how far the table in `unrounded` moved from the one in `published`; `columns` are those of the new record.

    Numbers are compared row by row, which needs the same rows: as many, with the same texts, and in the first column,
    which says what a row is about, the same values.
    """
    old, new = pd.read_csv(published), pd.read_csv(unrounded)
    if list(old.columns) != list(new.columns):
        return Movement(other_rows=f"its columns are {', '.join(new.columns)}; published: {', '.join(old.columns)}")
    if len(old) != len(new):
        return Movement(other_rows=f"it has {len(new)} rows; published: {len(old)}")
    found = _columns(old, new, columns)
    for place, moved in enumerate(found):
        if moved.by > 1 and (place == 0 or isinstance(moved.old, str)):
            return Movement(
                other_rows=f"its rows are others: {moved.name} of row {moved.row} is {moved.new}; published: "
                f"{moved.old}"
            )
    return Movement(tuple(sorted(found, key=lambda moved: -moved.by)))


def _columns(old: pd.DataFrame, new: pd.DataFrame, columns: Mapping[str, ColumnRecord]) -> list[ColumnMovement]:
    return [_column(old, new, name, column) for name, column in columns.items()]


def _column(old: pd.DataFrame, new: pd.DataFrame, name: str, column: ColumnRecord) -> ColumnMovement:
    numeric = all(pd.api.types.is_numeric_dtype(frame[name]) for frame in (old, new))
    kind = float if numeric else str
    one, other = ([kind(value) for value in frame[name].tolist()] for frame in (old, new))
    by = _by(old, new, name, column) if numeric else np.where(np.array(one) == np.array(other), 0.0, math.inf)
    if not len(by):
        return ColumnMovement(name, 0.0, 0, kind(), kind())
    row = int(by.argmax())
    return ColumnMovement(name, float(by[row]), row + 1, one[row], other[row])


def _by(old: pd.DataFrame, new: pd.DataFrame, name: str, column: ColumnRecord) -> np.ndarray:
    """Return the distance in each row in units of the tolerance there."""
    one, other = old[name].to_numpy(float), new[name].to_numpy(float)
    both = np.isfinite(one) & np.isfinite(other)
    by = np.where(both | (one == other) | (np.isnan(one) & np.isnan(other)), 0.0, math.inf)
    if column.moves_with is not None:
        return by
    size = np.abs(np.where(both & (one != 0), one, 1.0))
    rounding = 0.5 * 10.0 ** (np.floor(np.log10(size)) - SIGNIFICANT_DIGITS + 1)
    allowed = column.absolute + 1e-6 * np.abs(np.where(both, other, 0.0)) + np.where(one == 0, 0.0, rounding)
    if column.std_error is not None:
        errors = [frame[column.std_error].to_numpy(float) for frame in (old, new)]
        allowed = np.maximum(allowed, 5 * np.nan_to_num(np.maximum(*errors)))
    same = np.array([float(f"{value:.{SIGNIFICANT_DIGITS}g}") for value in other]) == one
    compared = both & ~same
    distance = np.abs(np.where(compared, other, 0.0) - np.where(compared, one, 0.0))
    with np.errstate(divide="ignore"):
        return np.where(distance == 0, by, distance / np.where(distance == 0, 1.0, allowed))
