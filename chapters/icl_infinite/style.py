"""Names that the figures of this chapter share."""

# Names of the two kinds of Θ in tables.
RANDOM, AXIS = "random", "first axis"
