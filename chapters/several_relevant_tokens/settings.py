"""Settings that computations and pictures of this chapter share."""

# The number of relevant tokens, and the multiple of the threshold, at which softmax fails on long prompts.
FAILING, BEYOND = 4, 1.5
