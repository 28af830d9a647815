"""Phrases that the claims of several chapters share."""

from collections.abc import Iterable
from math import log10


def listing(items: Iterable[str]) -> str:
    """Return the items as a phrase, such as `20 and 100` or `1, 2 and 4`."""
    *items, last = items
    return f"{', '.join(items)} and {last}" if items else last


def power(number: int) -> str:
    """Return a power of ten as plain text, such as 10⁶, and another number with commas."""
    exponent = round(log10(number))
    if number != 10**exponent:
        return f"{number:,}"
    return "10" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
