"""What the pictures of this chapter share."""

SIZE = (8.0, 4.5)
# Θ of a start, as tables name it.
RANDOM, AXIS = "random", "first axis"
