"""Shared style of the figures of this chapter, and names in their tables."""

# Factors on the scores: none, and powers of ln L'/ln L.
FIXED, ROOT, LOGARITHM = "1", "√ln L", "ln L"
# Heads, by their activation.
SOFTMAX, SIGMOID, LINEAR = "softmax", "sigmoid", "linear"
# Colour of each factor.
COLOURS = {FIXED: "C0", ROOT: "C2", LOGARITHM: "C1"}
