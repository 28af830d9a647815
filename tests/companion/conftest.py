"""The fixtures of `small_books`, for the tests of the tool with this book."""

from small_books import *  # noqa: F403
