"""Sizes and markers that the figures of this chapter share."""

SIZE = (8.0, 4.5)
# Markers of the stochastic descents, by the way their prompts are drawn.
MARKERS = {"collapsed": "o", "plain": "x"}
