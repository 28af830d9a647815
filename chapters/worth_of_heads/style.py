"""Colours that the figures of this chapter share."""

# Softmax heads, linear attention, and one head for each task.
SOFTMAX, LINEAR, ALLOCATED = "C0", "C1", "C2"
