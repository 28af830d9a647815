"""Shared style of the figures of this chapter."""

SIZE = (9.0, 4.6)
# Symbols of the two gradients in tables and claims.
SYMBOL = {"value": "∇_V", "bilinear": "∇_U"}
