"""Tables, and the numbers of a figure, as a figure module returns them.

A `Table` describes each column: meaning, unit, and by how much a rebuild may move it. `Numbers` are the table and the
claims of one figure.
"""

# pandas has no complete types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from companion.figures.record import Claim, WithheldClaim
from companion.io.errors import did_you_mean


@dataclass(frozen=True)
class Column:
    """The description of one column of a table.

    `std_error` names the column with the Monte-Carlo standard error of this one: a rebuild may move it by five of
    them. `moves_with` names a column of the same draws, for a column (a spread, a quantile, a fitted constant, a
    standard error) that has no standard error itself: it may move whenever that column does, and is not compared.
    Without either, the column is exact: a rebuild may move it by 1e-6 of its value, plus `absolute` for columns
    whose exact value is zero up to rounding.
    """

    meaning: str
    unit: str = "1"
    std_error: str | None = None
    absolute: float = 0.0
    moves_with: str | None = None


@dataclass(frozen=True)
class Estimate:
    """Two columns: a Monte-Carlo estimate and, after it, its standard error.

    `{"mean": Estimate("Mean output")}` declares the columns `mean` and `mean_std_error`; `std_error` names the second
    column if it is called otherwise.
    """

    meaning: str
    unit: str = "1"
    std_error: str | None = None

    def columns(self, name: str) -> dict[str, Column]:
        """Return the two columns of the estimate `name`."""
        error = self.std_error or f"{name}_std_error"
        return {
            name: Column(self.meaning, self.unit, std_error=error),
            error: Column(f"Standard error of {name}", self.unit, moves_with=name),
        }


class Table:
    """A tidy table: one row per observation, one `Column` per column, or one `Estimate` for two."""

    def __init__(self, frame: pd.DataFrame, columns: Mapping[str, Column | Estimate]):
        self.frame, self.columns = frame, _declared(columns)
        self._check()

    @classmethod
    def of(
        cls,
        groups: Iterable[Mapping[str, npt.ArrayLike] | pd.DataFrame],
        columns: Mapping[str, Column | Estimate],
    ) -> "Table":
        """Return the table of several groups of rows, one below the other, with the columns in the declared order.

        Args:
          groups: for each group, the values of its columns by name: vectors of one length, and scalars, which all
            rows of the group share. A group of scalars is one row. A column that a group lacks is empty there.
          columns: the description of every column.

        Raises:
          ValueError: if a group has a column without a description, or vectors of different lengths; if a column is
            in no group; if there is no group.
        """
        declared = _declared(columns)
        frames = [_rows(group, declared, place) for place, group in enumerate(groups)]
        if not frames:
            raise ValueError("`Table.of(groups, columns)` needs at least one group of rows. Got none.")
        for name in declared:
            if all(name not in frame for frame in frames):
                raise ValueError(f"`Table.of(groups, columns)`: no group has the column {name!r}.")
        return cls(pd.concat(frames, ignore_index=True).reindex(columns=list(declared)), declared)

    def _check(self) -> None:
        if list(self.frame.columns) != list(self.columns):
            raise ValueError(
                "`Table(frame, columns)` needs a meaning for every column, in order, because the published CSV "
                f"is read without the code. Got columns {list(self.frame.columns)}, meanings for {list(self.columns)}."
            )
        for name, column in self.columns.items():
            for role, other in (("std_error", column.std_error), ("moves_with", column.moves_with)):
                if other is not None and other not in self.columns:
                    raise ValueError(
                        f"`Column({role}=...)` of {name!r} must name a column of the table. Got {other!r}."
                    )
            if column.moves_with and (column.std_error or self.columns[column.moves_with].moves_with):
                raise ValueError(
                    f"`Column(moves_with=...)` of {name!r} must name a column that is compared by itself, and needs no "
                    f"`std_error`. Got {column}."
                )


def _declared(columns: Mapping[str, Column | Estimate]) -> dict[str, Column]:
    """Return the description of each column, estimates as two."""
    declared: dict[str, Column] = {}
    for name, column in columns.items():
        for part, description in (column.columns(name) if isinstance(column, Estimate) else {name: column}).items():
            if part in declared:
                raise ValueError(f"Column {part!r} is declared twice: by itself, and by an `Estimate`.")
            declared[part] = description
    return declared


def _rows(
    group: Mapping[str, npt.ArrayLike] | pd.DataFrame, declared: Mapping[str, Column], place: int
) -> pd.DataFrame:
    """Return one group of rows as a data frame, scalars repeated."""
    for name in map(str, group):
        if name not in declared:
            raise ValueError(
                f"`Table.of(groups, columns)`, group {place}: column {name!r} has no description. "
                f"{did_you_mean(name, declared)}"
            )
    if isinstance(group, pd.DataFrame):
        return group
    values = {name: np.asarray(value) for name, value in group.items()}
    rows = next((len(value) for value in values.values() if value.ndim), 1)
    return pd.DataFrame({name: value if value.ndim else np.repeat(value, rows) for name, value in values.items()})


class Numbers:
    """The table that a figure draws, and its claims, of which some may be withheld."""

    def __init__(self, table: Table, claims: Iterable[Claim | WithheldClaim] = ()):
        self.table, self.claims = table, tuple(claims)
        ids = [claim.id for claim in self.claims]
        if repeated := {name for name in ids if ids.count(name) > 1}:
            raise ValueError(f"Claim ids must differ, because pages link to them. Repeated: {sorted(repeated)}.")

    @property
    def made(self) -> list[Claim]:
        """The claims that are not withheld."""
        return [claim for claim in self.claims if isinstance(claim, Claim)]

    @property
    def withheld(self) -> list[WithheldClaim]:
        """The claims that are withheld."""
        return [claim for claim in self.claims if isinstance(claim, WithheldClaim)]
