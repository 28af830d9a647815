"""Tables and claims, as a figure module returns them.

A `Table` describes each column: meaning, unit, and by how much a rebuild may move it. A `Claim` is a statement with the
number that checks it. `Numbers` are the table and the claims of one figure.
"""

# pandas has no complete types.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import pandas as pd

from companion.figures.record import Relation, accepts
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


@dataclass(frozen=True)
class Table:
    """A tidy table: one row per observation, one `Column` per column, or one `Estimate` for two."""

    frame: pd.DataFrame
    columns: Mapping[str, Column]

    def __init__(self, frame: pd.DataFrame, columns: Mapping[str, Column | Estimate]):
        object.__setattr__(self, "frame", frame)
        object.__setattr__(self, "columns", _declared(columns))
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
            if column.moves_with is not None and self.columns[column.moves_with].moves_with is not None:
                raise ValueError(
                    f"`Column(moves_with=...)` of {name!r} must name a column that is compared by itself. Got "
                    f"{column.moves_with!r}."
                )
            if column.std_error is not None and column.moves_with is not None:
                raise ValueError(
                    f"`Column(...)` of {name!r} must not have both `std_error` and `moves_with`: a column with a "
                    "standard error is compared by itself."
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
    where = f"`Table.of(groups, columns)`, group {place}"
    for name in map(str, group):
        if name not in declared:
            raise ValueError(f"{where}: column {name!r} has no description. {did_you_mean(name, declared)}")
    if isinstance(group, pd.DataFrame):
        return group
    values = {name: np.asarray(value) for name, value in group.items()}
    lengths = {name: len(value) for name, value in values.items() if value.ndim == 1}
    if odd := [name for name, value in values.items() if value.ndim > 1]:
        raise ValueError(f"{where}: {odd[0]!r} must be a vector or a scalar. Got shape {values[odd[0]].shape}.")
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{where}: the vectors must have one length. Got {lengths}.")
    rows = next(iter(lengths.values()), 1)
    return pd.DataFrame({name: value if value.ndim else np.repeat(value, rows) for name, value in values.items()})


@dataclass(frozen=True)
class Alternative:
    """A different theory, as text, and the value that the same measurement takes if it holds."""

    theory: str
    measured: float


class About(TypedDict, total=False):
    """Optional keyword arguments of the constructors of a claim.

    `std_error` is the Monte-Carlo standard error of the measured value, `alternative` a theory that the claim rejects,
    `box` the label of the theorem box that states or derives the claim. `comparisons` is the number of comparisons of
    which the largest is measured; a measured frequency has `successes` and `trials`.
    """

    std_error: float | None
    alternative: Alternative | None
    box: str | None
    comparisons: int | None
    successes: int | None
    trials: int | None


@dataclass(frozen=True)
class Claim:
    """A statement with the number that checks it.

    It holds if `measured` `relation` `expected` up to `tolerance` (absolute; for Monte Carlo a quantile times
    `std_error`). The constructors `equal`, `at_most`, `at_least` and `consistent` also record the `reason` for the
    tolerance or bound; use one of them.

    `source` is a citation such as `[BB26, Lemma 2.1]`, or `derived here`; `box` is the label of the theorem box in the
    book that states or derives the claim, if there is one. The claim must fail under its `alternative`. `comparisons`
    is the number of comparisons of which the largest is measured; `successes` of `trials` is a measured frequency.
    """

    id: str
    statement: str
    source: str
    measured: float
    expected: float
    tolerance: float
    alternative: Alternative | None = None
    relation: Relation = "="
    std_error: float | None = None
    box: str | None = None
    reason: str | None = None
    comparisons: int | None = None
    successes: int | None = None
    trials: int | None = None

    def __post_init__(self):
        for name, text in (("id", self.id), ("statement", self.statement), ("source", self.source)):
            if not text.strip():
                raise ValueError(f"`Claim({name}=...)` must not be empty, because the site shows it. Got {self!r}.")
        if self.reason is not None and not self.reason.strip():
            raise ValueError(f"`because` must not be empty: it is the reason for the bound. Got {self!r}.")
        counts = self.successes, self.trials
        if None not in counts and not 0 <= int(self.successes or 0) <= int(self.trials or 0):
            raise ValueError(f"`successes` must be between 0 and `trials`. Got {self.successes} of {self.trials}.")
        if (self.successes is None) != (self.trials is None):
            raise ValueError(f"`successes` and `trials` need each other. Got {self.successes} of {self.trials}.")
        for name, value in (("measured", self.measured), ("expected", self.expected), ("tolerance", self.tolerance)):
            object.__setattr__(self, name, float(value))
        for name, count in (("comparisons", self.comparisons), ("successes", self.successes), ("trials", self.trials)):
            object.__setattr__(self, name, None if count is None else int(count))

    @classmethod
    def equal(
        cls,
        id: str,
        statement: str,
        value: float,
        expected: float,
        *,
        within: float,
        because: str,
        source: str,
        **about: Unpack[About],
    ) -> "Claim":
        """Claim that `value` equals `expected`.

        Args:
          id: identifier, unique in the book.
          statement: the statement, as plain text.
          value: the measured value.
          expected: the value that the statement predicts.
          within: the absolute tolerance, at least 0; for Monte Carlo a quantile times the standard error.
          because: the reason for this tolerance.
          source: a citation such as `[BB26, Lemma 2.1]`, or `derived here`.
          about: standard error, alternative, box and counts, see `About`.
        """
        return cls(id, statement, source, value, expected, _tolerance("equal", within), reason=because, **about)

    @classmethod
    def at_most(
        cls,
        id: str,
        statement: str,
        value: float,
        bound: float,
        *,
        because: str,
        source: str,
        within: float = 0.0,
        **about: Unpack[About],
    ) -> "Claim":
        """Claim that `value` is at most `bound`.

        `because` is the reason for the bound, and for `within`, by which a Monte-Carlo value may exceed it. The other
        arguments are those of `equal`.
        """
        tolerance = _tolerance("at_most", within)
        return cls(id, statement, source, value, bound, tolerance, relation="≤", reason=because, **about)

    @classmethod
    def at_least(
        cls,
        id: str,
        statement: str,
        value: float,
        bound: float,
        *,
        because: str,
        source: str,
        within: float = 0.0,
        **about: Unpack[About],
    ) -> "Claim":
        """Claim that `value` is at least `bound`; the arguments are those of `at_most`."""
        tolerance = _tolerance("at_least", within)
        return cls(id, statement, source, value, bound, tolerance, relation="≥", reason=because, **about)

    @classmethod
    def consistent(
        cls,
        id: str,
        statement: str,
        deviation: float,
        *,
        comparisons: int,
        source: str,
        alternative: Alternative | None = None,
        box: str | None = None,
    ) -> "Claim":
        """Claim that theory and simulation agree in `comparisons` independent comparisons.

        `deviation` is the largest deviation, in standard errors. The tolerance is the 99.9 % quantile of the largest
        of as many standard normal deviations, and the record states this as the reason.
        """
        tolerance = comparison_quantile(comparisons)
        reason = _quantile_in_words(comparisons)
        about = About(alternative=alternative, box=box, comparisons=comparisons)
        return cls(id, statement, source, deviation, 0.0, tolerance, reason=reason, **about)

    @property
    def holds(self) -> bool:
        """Whether the claim holds. A NaN never holds."""
        return self.accepts(self.measured)

    @property
    def catches_alternative(self) -> bool | None:
        """Whether the claim would fail if its alternative were true, as it must; None without an alternative."""
        return None if self.alternative is None else not self.accepts(self.alternative.measured)

    def accepts(self, measured: float) -> bool:
        """Return whether `measured` would satisfy the claim."""
        return accepts(self.relation, self.expected, self.tolerance, measured)

    def withheld(self, because: str) -> "WithheldClaim":
        """Return the claim as one that is not claimed at the parameters of this run, with the reason.

        The condition must follow from the parameters or from the precision of the computation, never from the verdict.
        """
        return WithheldClaim(self.id, self.statement, self.source, because, self.box)


@dataclass(frozen=True)
class WithheldClaim:
    """A statement that is not claimed at the parameters of the run, and the `reason`.

    The site, the notebook and the page of a custom run show it as "not claimed here: REASON". It counts neither as held
    nor as failed. In the default profile a page must not quote it by a role. `Claim.withheld` makes one from a claim;
    use the class itself where the number of the claim cannot be computed.
    """

    id: str
    statement: str
    source: str
    reason: str
    box: str | None = None

    def __post_init__(self):
        for name in ("id", "statement", "source", "reason"):
            if not getattr(self, name).strip():
                raise ValueError(f"`WithheldClaim({name}=...)` must not be empty, because the site shows it. {self!r}.")


def comparison_quantile(comparisons: int, confidence: float = 0.999) -> float:
    """Return the quantile of the largest of `comparisons` independent |standard normal| deviations."""
    if comparisons < 1:
        raise ValueError(f"`comparisons` must be at least 1. Got {comparisons!r}.")
    return -NormalDist().inv_cdf(-math.expm1(math.log(confidence) / comparisons) / 2)


def _quantile_in_words(comparisons: int) -> str:
    if comparisons == 1:
        return "99.9 % quantile of one standard normal deviation"
    return f"99.9 % quantile of the largest of {comparisons} standard normal deviations"


def _tolerance(constructor: str, within: float) -> float:
    if not float(within) >= 0:
        raise ValueError(f"`Claim.{constructor}(within=...)` must be at least 0. Got {within!r}.")
    return float(within)


@dataclass(frozen=True)
class Numbers:
    """The table that a figure draws, and its claims, of which some may be withheld."""

    table: Table
    claims: Sequence[Claim | WithheldClaim] = ()

    @property
    def made(self) -> list[Claim]:
        """The claims that are not withheld."""
        return [claim for claim in self.claims if isinstance(claim, Claim)]

    @property
    def withheld(self) -> list[WithheldClaim]:
        """The claims that are withheld."""
        return [claim for claim in self.claims if isinstance(claim, WithheldClaim)]

    def __post_init__(self):
        ids = [claim.id for claim in self.claims]
        if repeated := {name for name in ids if ids.count(name) > 1}:
            raise ValueError(f"Claim ids must differ, because pages link to them. Repeated: {sorted(repeated)}.")
