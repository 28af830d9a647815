"""Compare two versions of a figure: `compare`, which publication, `verify`, `compare` and custom runs report.

Distances are in tolerances of a rebuild: a number of a table that moved by more than 1 makes a rebuild replace the
figure, and so do words and bounds of claims that changed. The tolerance of a Monte-Carlo column is five
standard errors; that of an exact column is 1e-6 of the value plus `absolute`. Published numbers are rounded to six
digits, so half a unit of the sixth digit is added. A column that moves with another only needs finite values in the
same rows.
"""

# pandas has no complete types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from companion.figures.record import SIGNIFICANT_DIGITS, Claim, ColumnRecord, FigureRecord, NotebookClaims, rounded


@dataclass(frozen=True)
class ColumnMovement:
    """The largest movement `by` of the numbers of one column, in tolerances, and the row where it occurs.

    `by` is infinite if a number is finite in only one of the tables, or if a text changed. `row` counts from 1; `old`
    and `new` are the published and the new value in this row. `first` is the first row whose values differ in any
    digit, with both values.
    """

    name: str
    by: float
    row: int
    old: float | str
    new: float | str
    first: tuple[int, float | str, float | str] | None = None


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


def movement(published: Path, unrounded: Path, columns: Mapping[str, ColumnRecord]) -> Movement:
    """Return the movement of a table.

    Numbers are compared row by row, which needs the same rows: the same number of rows, the same texts, and the same
    values in the first column, which identifies a row.

    Args:
      published: path of the published CSV.
      unrounded: path of the CSV with the new, unrounded numbers.
      columns: the columns of the new record.
    """
    old, new = _read(published), _read(unrounded)
    if list(old.columns) != list(new.columns):
        return Movement(other_rows=f"its columns are {', '.join(new.columns)}; published: {', '.join(old.columns)}")
    if len(old) != len(new):
        return Movement(other_rows=f"it has {len(new)} rows; published: {len(old)}")
    movements = [_column(old, new, name, column) for name, column in columns.items()]
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
    pairs = zip(old_values, new_values, strict=True)
    # NaN differs from itself
    differing = ((i, a, b) for i, (a, b) in enumerate(pairs, 1) if a != b and not (a != a and b != b))  # noqa: PLR0124
    return ColumnMovement(name, float(by[row]), row + 1, old_values[row], new_values[row], next(differing, None))


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
    same = np.array([rounded(value) for value in rebuilt]) == published
    compared = both & ~same
    distance = np.abs(np.where(compared, rebuilt, 0.0) - np.where(compared, published, 0.0))
    with np.errstate(divide="ignore"):
        return np.where(distance == 0, by, distance / np.where(distance == 0, 1.0, allowed))


@dataclass(frozen=True)
class Difference:
    """A part of a figure in both versions, and their distance `by`, infinite where no difference is allowed.

    `bound` is the distance because of which a rebuild replaces the figure; the measured numbers of a claim have none.
    """

    what: str
    by: float
    old: Any
    new: Any
    bound: float = 0.0


@dataclass(frozen=True)
class Comparison:
    """The comparison of two versions of a figure: words that differ, the table, and all numbers of common claims."""

    words: tuple[Difference, ...]
    table: Movement
    claims: tuple[Difference, ...]

    @property
    def reproduces(self) -> bool:
        """Whether a rebuild would keep the published figure."""
        return not self.words and self.table.reproduces and all(claim.bound <= 1 for claim in self.claims)

    def all(self) -> Iterator[Difference]:
        """Yield everything that was compared, whether or not it moved."""
        yield from self.words
        if self.table.other_rows:
            yield Difference("the table", math.inf, "", self.table.other_rows)
        for column in self.table.columns:
            yield Difference(f"{column.name}, row {column.row}", column.by, column.old, column.new)
        yield from self.claims


def compare(
    old: FigureRecord, new: FigureRecord, tables: tuple[Path, Path], *, identical_tables: bool = False
) -> Comparison:
    """Return the comparison of a published figure with a new version.

    Args:
      old: the published record.
      new: the new record.
      tables: the published CSV, and that with the new, unrounded numbers.
      identical_tables: whether the rounded tables are identical; the measured numbers of claims must then agree except
        for rounding. Otherwise they may move by five of their standard errors, like the numbers of a table.
    """
    claims = _claims_moved(old, new, identical_tables=identical_tables)
    return Comparison(tuple(_words_moved(old, new)), movement(*tables, new.columns), tuple(claims))


def compare_claims(old: NotebookClaims, new: NotebookClaims) -> list[Difference]:
    """Return the differences of the claims that a notebook published and of those that it publishes now."""
    return [*_words_moved(old, new), *_claims_moved(old, new, identical_tables=False)]


def _claims_moved(
    old: FigureRecord | NotebookClaims, new: FigureRecord | NotebookClaims, *, identical_tables: bool
) -> Iterator[Difference]:
    published = {claim.id: claim for claim in old.claims}
    for claim in new.claims:
        if claim.id in published:
            yield from claim_moved(published[claim.id], claim, identical_tables=identical_tables)


def claim_moved(old: Claim, new: Claim, *, identical_tables: bool) -> Iterator[Difference]:
    """Yield the distance of every number of a claim from the published one."""
    error = 0.0
    if new.std_error is not None and math.isfinite(new.std_error) and not identical_tables:
        error = 5 * new.std_error
    # a claim with zero tolerance still allows the round-off of an exact zero
    floor = min(1e-6, new.tolerance or 1e-12) if math.isfinite(new.tolerance) else 1e-6
    # digits of a number far below the bound that judges it are those of round-off
    below = min(1e-6, 1e-3 * abs(new.expected)) if new.relation == "≤" else 0.0
    allowed = max(floor, below, error)
    old_alternative, new_alternative = (
        claim.alternative.measured if claim.alternative else None for claim in (old, new)
    )
    scale = 1.0
    if new_alternative is not None and math.isfinite(new_alternative) and math.isfinite(new.measured):
        scale = max(1.0, abs(new_alternative / (new.measured or 1.0)))
    expected, tolerance, std_error = _bounds_moved(old, new)
    # the published verdicts must follow from the published numbers
    holds = 0.0 if old.holds == old.accepts(old.measured) else math.inf
    must_catch = None if old_alternative is None else not old.accepts(old_alternative)
    catches = 0.0 if old.catches_alternative == must_catch else math.inf
    alternative = distance(old_alternative, new_alternative, max(floor, scale * error))
    errors = distance(old.std_error, new.std_error) if identical_tables else 0.0
    for part, by, old_value, new_value, bound in (
        ("measured", distance(old.measured, new.measured, allowed), old.measured, new.measured, 0.0),
        ("expected", distance(old.expected, new.expected, allowed), old.expected, new.expected, expected),
        ("alternative", alternative, old_alternative, new_alternative, 0.0),
        ("std_error", errors, old.std_error, new.std_error, std_error),
        ("tolerance", 0.0, old.tolerance, new.tolerance, tolerance),
        ("holds", holds, old.holds, new.holds, 0.0),
        ("catches_alternative", catches, old.catches_alternative, new.catches_alternative, 0.0),
    ):
        yield Difference(f"claim {new.id}: {part}", max(by, bound), old_value, new_value, bound)


def _bounds_moved(old: Claim, new: Claim) -> tuple[float, float, float]:
    """Return how far the expected value, the tolerance and the standard error moved as bounds of a claim.

    The tolerance is in standard errors where the claim has one. Some bounds are themselves measured, so the rounding of
    another machine is allowed.
    """
    if (old.std_error is None) != (new.std_error is None):
        return 0.0, 0.0, math.inf
    if old.std_error and new.std_error:  # the expected value may be measured, too
        return 0.0, distance(old.tolerance / old.std_error, new.tolerance / new.std_error), 0.0
    return distance(old.expected, new.expected), distance(old.tolerance, new.tolerance), 0.0


def distance(first: float | None, second: float | None, allowed: float = 1e-12) -> float:
    """Return the distance of two numbers of a claim in units of a thousandth of the larger, or of `allowed` if larger.

    It is infinite if only one of the two is a finite number.
    """
    if first == second:
        return 0.0
    if first is None or second is None:
        return math.inf
    if math.isnan(first) and math.isnan(second):
        return 0.0
    if not (math.isfinite(first) and math.isfinite(second)):
        return math.inf
    return abs(first - second) / max(1e-3 * max(abs(first), abs(second)), allowed)


def _words_moved(old: FigureRecord | NotebookClaims, new: FigureRecord | NotebookClaims) -> Iterator[Difference]:
    """Yield the parts of two records that differ in more than computed numbers; claims by their identifiers."""
    old_words, new_words = old.without_numbers(), new.without_numbers()
    for part, old_value, new_value in old_words.differences(new_words):
        if old_value and new_value and old_words.claims != new_words.claims and part == "claims":
            claims = (*old_words.claims, *new_words.claims)
            names = {claim.id for claim in claims if (claim in old_words.claims) != (claim in new_words.claims)}
            what = f"claims: {', '.join(sorted(names)) or 'their order'}"
            yield Difference(what, math.inf, "different words", "", math.inf)
        else:
            yield Difference(part, math.inf, old_value, new_value, math.inf)
