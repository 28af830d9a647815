"""The builder of claims: one call per claim.

`Claims` collects the claims of a figure, or of a notebook, in their order. What they have in common is given once.
"""

import math
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from companion.figures.record import Claim, Relation, WithheldClaim

# A number, or a scalar of NumPy, JAX or pandas, which have no type in common.
Scalar = Any


class Options(TypedDict, total=False):
    """The keyword arguments that all forms of a claim accept, see `Claims`."""

    rejects: tuple[str, Any] | None
    count: tuple[Scalar, Scalar] | None
    std_error: Scalar | None
    comparisons: int | None
    source: str
    box: str | None
    requires: tuple[Any, str] | None


class Claims:
    """The claims of a figure or of a notebook, in their order.

    ```python
    claim = Claims("walks", source="derived here", box="spread")
    claim.at_most("spread", "The spread is below $√n$ (largest ratio).", ratio.max(), 1, because="the lemma")
    claim.agree("mean", "Simulated and exact means agree", (mean - exact) / std_error,
                rejects=("walkers never turn", (mean - straight) / std_error))
    return Numbers(table, claim)
    ```

    Every method adds one claim. Its first arguments are the identifier, to which `PREFIX-` is added, and the statement,
    as plain text. All but `withheld` accept these keyword arguments:

    - `rejects`: a theory that the claim must reject, and the value that the same measurement takes if it holds.
    - `count`: successes and trials of a measured frequency, which the role `{claim-count}` prints as `k of n`.
    - `std_error`: the Monte-Carlo standard error of the value.
    - `comparisons`: the number of comparisons of which the value is the largest or the smallest.
    - `source`, `box`: in place of those of all claims.
    - `requires`: a condition, and the reason why the claim is withheld if it is false. The condition must follow from
      the parameters or from the precision of the computation, never from the verdict.

    Args:
      prefix: the beginning of all identifiers, usually the name of the chapter with hyphens.
      source: a citation such as `[BB26, Lemma 2.1]`, or `derived here`.
      box: the label of the theorem box in the book that states or derives the claims, if there is one.
    """

    def __init__(self, prefix: str, *, source: str = "", box: str | None = None):
        self.prefix, self.source, self.box = prefix, source, box
        self._claims: list[Claim | WithheldClaim] = []

    def __iter__(self) -> Iterator[Claim | WithheldClaim]:
        """Yield the claims, of which some may be withheld."""
        return iter(self._claims)

    def equal(
        self,
        id: str,
        statement: str,
        value: Scalar,
        expected: Scalar,
        *,
        within: Scalar | None = None,
        because: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        """Claim that `value` equals `expected`.

        Args:
          id: the rest of the identifier.
          statement: the statement.
          value: the measured value.
          expected: the value that the statement predicts.
          within: the absolute tolerance, at least 0. Without it, the value is an estimate with `std_error`: the
            tolerance is the 99.9 % quantile of the largest of `comparisons` (default: 1) deviations, times `std_error`.
          because: the reason for the tolerance `within`.
          options: see `Claims`.
        """
        if within is None:
            error, comparisons = options.get("std_error"), options.get("comparisons") or 1
            if error is None:
                raise ValueError(f"Claim {id!r}: `equal(...)` needs the tolerance `within`, or `std_error`.")
            within = comparison_quantile(comparisons) * error
            because = because or f"{quantile_in_words(comparisons)}, times the standard error"
        self._add(id, statement, options, because, compare=("=", value, expected, within))

    def at_most(
        self,
        id: str,
        statement: str,
        value: Scalar,
        bound: Scalar,
        *,
        because: str,
        within: Scalar = 0.0,
        **options: Unpack[Options],
    ) -> None:
        """Claim that `value` is at most `bound`.

        Args:
          id: the rest of the identifier.
          statement: the statement.
          value: the measured value.
          bound: the bound; 0 for the distance from an exact value, which is 0 except for errors below `within`.
          because: the reason for the bound, and for `within`.
          within: the amount by which the value may exceed the bound, at least 0.
          options: see `Claims`.
        """
        self._add(id, statement, options, because, compare=("≤", value, bound, within))

    def at_least(
        self,
        id: str,
        statement: str,
        value: Scalar,
        bound: Scalar,
        *,
        because: str,
        within: Scalar = 0.0,
        **options: Unpack[Options],
    ) -> None:
        """Claim that `value` is at least `bound`; the arguments are those of `at_most`."""
        self._add(id, statement, options, because, compare=("≥", value, bound, within))

    def agree(
        self,
        id: str,
        statement: str,
        deviations: npt.ArrayLike,
        *,
        within: Scalar | None = None,
        because: str | None = None,
        **options: Unpack[Options],
    ) -> None:
        """Claim that theory and simulation agree.

        Args:
          id: the rest of the identifier.
          statement: the statement without a full stop, such as `Exact and simulated errors agree`. The test follows in
            brackets: `(largest of 80 deviations 2.3 standard errors, allowed 4.2).`
          deviations: all deviations, in standard errors, in an array of any shape.
          within: the allowed deviation. Without it, the 99.9 % quantile of the largest of as many standard normal
            deviations, which the record states as the reason.
          because: the reason for `within`.
          options: see `Claims`; `rejects` takes the deviations from the other theory, or the largest of them.
        """
        sizes = np.abs(np.asarray(deviations, dtype=float))
        comparisons = options.get("comparisons") or sizes.size
        quantile = comparison_quantile(comparisons)
        if rejects := options.get("rejects"):
            options["rejects"] = rejects[0], np.max(np.abs(np.asarray(rejects[1], dtype=float)))
        options["comparisons"] = comparisons
        allowed, because = (quantile, quantile_in_words(comparisons)) if within is None else (within, because)
        self._add(id, statement, options, because, compare=("≤", np.max(sizes), 0.0, allowed), names_test=True)

    def count(
        self,
        id: str,
        statement: str,
        successes: Scalar,
        trials: Scalar,
        *,
        at_least: Scalar | None = None,
        at_most: Scalar | None = None,
        because: str = "counts are exact",
        **options: Unpack[Options],
    ) -> None:
        """Claim the number of successes: all trials, or at least or at most a number of them.

        For a fraction, use `at_least` or `at_most` of `Claims` with the option `count`.

        Args:
          id: the rest of the identifier.
          statement: the statement.
          successes: the measured number.
          trials: the number of trials.
          at_least: the least number of successes.
          at_most: the largest number of successes.
          because: the reason for the number.
          options: see `Claims`.
        """
        if at_least is not None and at_most is not None:
            raise ValueError(f"`count` of {id!r} takes `at_least` or `at_most`, not both.")
        options["count"] = successes, trials
        bounds: list[tuple[Relation, Scalar]] = [("≥", at_least), ("≤", at_most), ("=", trials)]
        relation, bound = next(case for case in bounds if case[1] is not None)
        self._add(id, statement, options, because, compare=(relation, successes, bound, 0.0))

    def withheld(
        self, id: str, statement: str, *, because: str, source: str | None = None, box: str | None = None
    ) -> None:
        """Do not claim a statement whose number cannot be computed at the parameters of this run.

        Args:
          id: the rest of the identifier.
          statement: the statement.
          because: the reason. It follows from the parameters, and completes `not claimed here:`.
          source: the source, in place of that of all claims.
          box: the label of the box, in place of that of all claims.
        """
        parts = self._words(id, statement, source or self.source)
        _required(id, because=because)
        self._claims.append(WithheldClaim(**parts, reason=because, box=box or self.box))

    def _words(self, id: str, statement: str, source: str) -> dict[str, str]:
        _required(id, id=id, statement=statement, source=source)
        return {"id": f"{self.prefix}-{id}", "statement": statement, "source": source}

    def _add(
        self,
        id: str,
        statement: str,
        options: Options,
        because: str | None,
        *,
        compare: tuple[Relation, Scalar, Scalar, Scalar],
        names_test: bool = False,
    ) -> None:
        """Add a claim, or the statement alone if it is withheld."""
        words = self._words(id, statement, options.get("source", self.source))
        box = options.get("box", self.box)
        _required(id, because=because or "")
        relation, value, expected, tolerance = compare
        if not float(tolerance) >= 0:
            raise ValueError(f"Claim {id!r}: `within` must be at least 0. Got {tolerance!r}.")
        rejects, std_error, comparisons = (options.get(name) for name in ("rejects", "std_error", "comparisons"))
        successes, trials = (None, None) if (count := options.get("count")) is None else map(int, count)
        claim = Claim.judged(
            relation=relation,
            measured=float(value),
            expected=float(expected),
            tolerance=float(tolerance),
            alternative=rejects and (rejects[0], float(rejects[1])),
            std_error=None if std_error is None else float(std_error),
            **words,
            reason=because,
            comparisons=None if comparisons is None else int(comparisons),
            successes=successes,
            trials=trials,
            box=box,
        )
        if names_test:
            claim = claim.model_copy(update={"statement": f"{statement} ({claim.agreement})."})
        condition, reason = options.get("requires") or (True, "")
        if condition:
            self._claims.append(claim)
        else:
            _required(id, requires=reason)
            short = f"{statement}." if names_test else statement
            self._claims.append(WithheldClaim(**{**words, "statement": short}, reason=reason, box=box))


def comparison_quantile(comparisons: int, confidence: float = 0.999) -> float:
    """Return the quantile of the largest of `comparisons` independent |standard normal| deviations."""
    if comparisons < 1:
        raise ValueError(f"`comparisons` must be at least 1. Got {comparisons!r}.")
    return -NormalDist().inv_cdf(-math.expm1(math.log(confidence) / comparisons) / 2)


def quantile_in_words(comparisons: int) -> str:
    """Return the name of `comparison_quantile`, as the reason of a bound."""
    if comparisons == 1:
        return "99.9 % quantile of one standard normal deviation"
    return f"99.9 % quantile of the largest of {comparisons} standard normal deviations"


def _required(claim: str, **texts: str) -> None:
    for name, text in texts.items():
        if not text.strip():
            raise ValueError(f"Claim {claim!r}: `{name}` must not be empty, because the site shows it.")
