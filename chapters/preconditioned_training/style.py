"""Sizes that the figures of this chapter share."""

SIZE = (8.0, 4.6)
