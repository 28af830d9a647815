"""The fixtures of `small_books`."""

from small_books import (
    _isolated_imports,
    clone,
    in_tasks,
    omissions,
    pristine,
    ran,
    ran_clone,
    split_clone,
    unpublished,
    walked,
)

__all__ = [
    "_isolated_imports",
    "clone",
    "in_tasks",
    "omissions",
    "pristine",
    "ran",
    "ran_clone",
    "split_clone",
    "unpublished",
    "walked",
]
