"""Sizes and colours that the figures of this chapter share."""

SIZE = (8.0, 4.6)
# Softmax heads, linear attention, and one head for each task.
SOFTMAX, LINEAR, ALLOCATED = "C0", "C1", "C2"
