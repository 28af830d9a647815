"""How the pictures of this chapter draw what they share."""

SIZE = (9.0, 4.6)
# The names of the two gradients, as tables and claims say them.
SYMBOL = {"value": "∇_V", "bilinear": "∇_U"}
