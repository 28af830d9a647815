"""Errors a person can act on: shown as one sentence, without a traceback; the command line exits with code 2."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user can put right; the message says how."""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows of it."""
        return [str(self)]


class ClaimsFailed(Exception):
    """A notebook ran, and a sentence it claims is not true of its numbers. Exit code 3."""


# With a guess at hand, a longer list than this only buries it.
MANY = 40


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`Did you mean …? Known: …`, for an unknown `name`; the list only if it is short or there is no guess."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    guess = f"Did you mean {close[0]!r}? " if close else ""
    if guess and len(known) > MANY:
        return f"{guess}There are {len(known)}."
    return f"{guess}Known: {', '.join(known) if known else 'none'}."
