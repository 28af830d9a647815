"""Colours and names of columns that the figures of this chapter share."""

from companion.figures.style import markers, sequence

# Columns that identify a training in tables.
RUN = ["start", "step_size", "seed"]


def by_length(lengths: list[int]) -> list[tuple]:
    """Return each length with its colour and its marker."""
    return list(zip(lengths, sequence(len(lengths)), markers(len(lengths)), strict=True))
