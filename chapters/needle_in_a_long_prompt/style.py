"""Shared style of the figures of this chapter."""

SIZE = (8.5, 4.5)
