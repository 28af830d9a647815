"""The words in which a figure hands over its numbers: tidy tables, and claims that can fail.

A `Table` says what each column means, in which unit, and how far a rebuild may move it; a `Claim` says which number
would have to change for a sentence to be wrong; `Numbers` are the two together, all of one figure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from companion.figures.record import Relation, accepts


@dataclass(frozen=True)
class Column:
    """The meaning of one column of a table.

    `std_error` names the column that holds this one's own Monte-Carlo standard error: a rebuild may move it by five
    of them. `moves_with` names a column of the same draws, where this one (a spread, a quantile, a fitted constant, a
    standard error) has no standard error of its own: it moves when that one does, and is not compared by itself.
    Without either, the column is exact: a rebuild may move it by 1e-6 of its value, plus `absolute`, for columns
    whose exact value is zero up to rounding.
    """

    meaning: str
    unit: str = "1"
    std_error: str | None = None
    absolute: float = 0.0
    moves_with: str | None = None


@dataclass(frozen=True)
class Table:
    """A tidy table: one observation a row, one `Column` a column."""

    frame: pd.DataFrame
    columns: Mapping[str, Column]

    def __post_init__(self):
        if list(self.frame.columns) != list(self.columns):
            raise ValueError(
                "`Table(frame, columns)` needs a meaning for every column, in order, because the published CSV "
                f"is read without the code. Got columns {list(self.frame.columns)}, meanings for {list(self.columns)}."
            )
        for name, column in self.columns.items():
            for role in ("std_error", "moves_with"):
                if (other := getattr(column, role)) is not None and other not in self.columns:
                    raise ValueError(
                        f"`Column({role}=...)` of {name!r} must name a column of the table. Got {other!r}."
                    )
            if column.moves_with is not None and self.columns[column.moves_with].moves_with is not None:
                raise ValueError(
                    f"`Column(moves_with=...)` of {name!r} must name a column that is compared by itself. Got "
                    f"{column.moves_with!r}."
                )
            if column.std_error is not None and column.moves_with is not None:
                raise ValueError(
                    f"Column {name!r} has a standard error of its own, or moves with another column: not both."
                )


@dataclass(frozen=True)
class Alternative:
    """A different theory, as text, and the value that the same measurement takes if it holds."""

    theory: str
    measured: float


@dataclass(frozen=True)
class Claim:
    """A sentence turned into a number that can fail.

    It holds if `measured` `relation` `expected` up to `tolerance` (absolute; for Monte Carlo a quantile times
    `std_error`). `source` is a citation such as `[BB26, Lemma 2.1]`, or `derived here`; `box` is the label of the
    theorem box in the book that states or derives it, if there is one. The claim must fail under its `alternative`.
    """

    id: str
    statement: str
    source: str
    measured: float
    expected: float
    tolerance: float
    alternative: Alternative
    relation: Relation = "="
    std_error: float | None = None
    box: str | None = None
    reason: str | None = None
    comparisons: int | None = None
    successes: int | None = None
    trials: int | None = None

    def __post_init__(self):
        for name in ("id", "statement", "source"):
            if not getattr(self, name).strip():
                raise ValueError(f"`Claim({name}=...)` must not be empty: a reader asks for it. Claim: {self!r}.")
        for name in ("measured", "expected", "tolerance"):
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def holds(self) -> bool:
        """The verdict. A NaN never holds."""
        return self.accepts(self.measured)

    @property
    def catches_alternative(self) -> bool:
        """Whether the claim would fail if its alternative were true, as it must."""
        return not self.accepts(self.alternative.measured)

    def accepts(self, measured: float) -> bool:
        """Whether `measured` would satisfy the claim."""
        return accepts(self.relation, self.expected, self.tolerance, measured)


@dataclass(frozen=True)
class Numbers:
    """All that one figure says: the table it draws, and its claims."""

    table: Table
    claims: Sequence[Claim] = ()

    def __post_init__(self):
        ids = [claim.id for claim in self.claims]
        if repeated := {name for name in ids if ids.count(name) > 1}:
            raise ValueError(f"Claim ids must differ, because pages link to them. Repeated: {sorted(repeated)}.")
