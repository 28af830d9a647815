"""Shared style of the figures of this chapter."""

SIZE = (8.0, 4.5)
