"""Shared style of the figures of this chapter, and the smallest difference between distinct risks."""

# Risks that differ by this much are distinct: quadratures and searches are accurate to 1e-6 or better.
DISTINCT = 1e-4
TITLES = {"spiked": "spiked model", "max": "max model"}
