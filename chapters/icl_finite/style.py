"""What the pictures of this chapter share."""

SIZE = (8.0, 4.5)
# Stochastic descents, by how their prompts are drawn.
MARKERS = {"collapsed": "o", "plain": "x"}
