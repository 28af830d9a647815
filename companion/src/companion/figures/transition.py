"""The earlier constructors of claims, until every figure module uses the builder `companion.figures.claims.Claims`."""

# pyright: basic
# ruff: noqa: PLR0917, D102

from typing import Any

from companion.figures import record
from companion.figures.claims import comparison_quantile, quantile_in_words


class Alternative(record.Alternative):
    """A theory that a claim rejects."""

    def __init__(self, theory: str, measured: Any):
        super().__init__(theory=theory, measured=float(measured))


class WithheldClaim(record.WithheldClaim):
    """A statement that is not claimed."""

    def __init__(self, id: str, statement: str, source: str, reason: str, box: str | None = None):
        super().__init__(id=id, statement=statement, source=source, reason=reason, box=box)


class Claim(record.Claim):
    """A claim, from its fields in their earlier order."""

    def __init__(
        self,
        id: str,
        statement: str,
        source: str,
        measured: Any,
        expected: Any,
        tolerance: Any,
        alternative: Alternative | None = None,
        relation: record.Relation = "=",
        std_error: Any = None,
        box: str | None = None,
        reason: str | None = None,
        comparisons: Any = None,
        successes: Any = None,
        trials: Any = None,
    ):
        claim = record.Claim.judged(
            relation=relation,
            measured=float(measured),
            expected=float(expected),
            tolerance=float(tolerance),
            alternative=alternative and (alternative.theory, alternative.measured),
            std_error=None if std_error is None else float(std_error),
            **{"id": id, "statement": statement, "source": source, "box": box, "reason": reason},
            **{
                name: None if count is None else int(count)
                for name, count in (("comparisons", comparisons), ("successes", successes), ("trials", trials))
            },
        )
        super().__init__(**dict(claim))

    @classmethod
    def equal(cls, id: str, statement: str, value: Any, expected: Any, *, within: Any, because: str, **about: Any):
        return cls(
            id=id, statement=statement, measured=value, expected=expected, tolerance=within, reason=because, **about
        )

    @classmethod
    def at_most(cls, id: str, statement: str, value: Any, bound: Any, *, because: str, within: Any = 0.0, **about: Any):
        return cls.equal(id, statement, value, bound, within=within, because=because, relation="≤", **about)

    @classmethod
    def at_least(
        cls, id: str, statement: str, value: Any, bound: Any, *, because: str, within: Any = 0.0, **about: Any
    ):
        return cls.equal(id, statement, value, bound, within=within, because=because, relation="≥", **about)

    @classmethod
    def consistent(cls, id: str, statement: str, deviation: Any, *, comparisons: int, **about: Any):
        tolerance, reason = comparison_quantile(comparisons), quantile_in_words(comparisons)
        return cls.equal(
            id, statement, deviation, 0.0, within=tolerance, because=reason, comparisons=comparisons, **about
        )

    def withheld(self, because: str) -> WithheldClaim:
        return WithheldClaim(self.id, self.statement, self.source, because, self.box)
