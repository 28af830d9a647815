"""Markers that the figures of this chapter share."""

# Markers of the stochastic descents, by the way their prompts are drawn.
MARKERS = {"collapsed": "o", "plain": "x"}
