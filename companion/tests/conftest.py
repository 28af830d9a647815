"""The fixtures of `small_books`."""

from small_books import *  # noqa: F403
