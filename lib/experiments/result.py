"""What an experiment hands over: tidy tables, and claims that can fail.

Numbers only. A `Table` says what each column means, in which unit, and how far a rebuild may move it; a `Claim`
says which number would have to change for a sentence of the paper to be wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Column:
    """The meaning of one column of a table.

    `std_error` names the column that holds this one's Monte-Carlo standard error: a rebuild may move it by five
    of them. Without, the column is exact: a rebuild may move it by 1e-6 of its value, plus `absolute`, for
    columns whose exact value is zero up to rounding.
    """

    meaning: str
    unit: str = "1"
    std_error: str | None = None
    absolute: float = 0.0


@dataclass(frozen=True)
class Table:
    """A tidy table: one observation a row, one `Column` a column. Drawn by the plot of the same name."""

    frame: pd.DataFrame
    columns: Mapping[str, Column]

    def __post_init__(self):
        if list(self.frame.columns) != list(self.columns):
            raise ValueError(
                "`Table(frame, columns)` needs a meaning for every column, in order, because the published CSV "
                f"is read without the code. Got columns {list(self.frame.columns)}, meanings for {list(self.columns)}."
            )
        for name, column in self.columns.items():
            if column.std_error is not None and column.std_error not in self.columns:
                raise ValueError(
                    f"`Column(std_error=...)` of {name!r} must name a column of the table. Got {column.std_error!r}."
                )


@dataclass(frozen=True)
class Alternative:
    """A way for a claim to be wrong, and the value the same measurement takes then."""

    says: str
    measured: float


@dataclass(frozen=True)
class Claim:
    """A sentence turned into a number that can fail.

    It holds if `measured` `relation` `expected` up to `tolerance` (absolute; for Monte Carlo a quantile times
    `std_error`). `source` is a citation such as `[BB26, Lemma 2.1]`, or `derived here`; `figure` is the picture
    that shows it. The claim must fail under its `alternative`.
    """

    id: str
    statement: str
    source: str
    figure: str
    measured: float
    expected: float
    tolerance: float
    alternative: Alternative
    relation: Literal["=", "≤", "≥"] = "="
    std_error: float | None = None

    def __post_init__(self):
        for name in ("id", "statement", "source", "figure"):
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
        excess = measured - self.expected
        match self.relation:
            case "=":
                return bool(abs(excess) <= self.tolerance)
            case "≤":
                return bool(excess <= self.tolerance)
            case "≥":
                return bool(excess >= -self.tolerance)


@dataclass(frozen=True)
class Result:
    """All numbers of one experiment: its name and parameters, its tables by figure, its claims."""

    tables: Mapping[str, Table]
    claims: tuple[Claim, ...]
    experiment: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        ids = [claim.id for claim in self.claims]
        if repeated := {name for name in ids if ids.count(name) > 1}:
            raise ValueError(f"Claim ids must differ, because pages link to them. Repeated: {sorted(repeated)}.")
        if homeless := [claim.id for claim in self.claims if claim.figure not in self.tables]:
            raise ValueError(
                f"Every claim names the figure (a table of the result) that shows it. Got none for {homeless}; "
                f"the figures are {sorted(self.tables)}."
            )

    def of(self, figure: str) -> "Result":
        """The part of the result that one figure draws: its table and its claims, nothing else."""
        if figure not in self.tables:
            raise KeyError(
                f"`{self.experiment}` has no table {figure!r}: a plot draws the table that bears its own name. "
                f"It has {sorted(self.tables)}."
            )
        mine = tuple(claim for claim in self.claims if claim.figure == figure)
        return Result({figure: self.tables[figure]}, mine, self.experiment, self.parameters)


def comparison_quantile(comparisons: int, confidence: float = 0.999) -> float:
    """How many standard errors the worst of `comparisons` independent normal errors reaches with 0.1 % chance.

    The bound of every Monte-Carlo claim: with N comparisons, each |z| must stay below it.
    """
    from scipy.stats import norm  # scipy.stats takes a second to import, and most users need no claim

    return float(norm.isf((1 - confidence ** (1 / comparisons)) / 2))


def standard_error(samples: np.ndarray, axis: int = 0) -> np.ndarray:
    """Of the mean along `axis`."""
    samples = np.asarray(samples)
    return np.asarray(samples.std(axis=axis, ddof=1) / np.sqrt(samples.shape[axis]))
