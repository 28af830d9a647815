"""Sizes and names that the figures of this chapter share."""

SIZE = (8.0, 4.5)
# Names of the two kinds of Θ in tables.
RANDOM, AXIS = "random", "first axis"
