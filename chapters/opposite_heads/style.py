"""Sizes and colours that the figures of this chapter share."""

from companion.figures.style import markers, sequence

SIZE = (8.0, 4.6)


def by_length(lengths: list[int]) -> list[tuple]:
    """Return each length with its colour and its marker."""
    return list(zip(lengths, sequence(len(lengths)), markers(len(lengths)), strict=True))
