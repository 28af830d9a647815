"""Phrases that the claims of several chapters share."""

from collections.abc import Iterable


def listing(items: Iterable[str]) -> str:
    """Return the items as a phrase, such as `20 and 100` or `1, 2 and 4`."""
    *items, last = items
    return f"{', '.join(items)} and {last}" if items else last
