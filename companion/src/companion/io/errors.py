"""User errors: shown as one sentence without a traceback. The command line exits with code 2."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """An error that the user can correct; the message describes the correction."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows instead of a traceback."""
        return [str(self)]


class ClaimsFailed(Exception):
    """A notebook ran, and at least one of its claims does not hold. Exit code 3."""


# Longest list of known names that is printed next to a close match.
MOST_NAMES = 40


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `Did you mean …? Known: …` for an unknown `name`."""
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    guess = f"Did you mean {close[0]!r}? " if close else ""
    if guess and len(known) > MOST_NAMES:
        return f"{guess}There are {len(known)}."
    return f"{guess}Known: {', '.join(known) if known else 'none'}."
