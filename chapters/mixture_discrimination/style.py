"""The sizes that the figures of this chapter share."""

SIZE, WIDE = (8.0, 4.5), (10.0, 4.5)
