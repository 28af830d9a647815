"""Shared style of the figures of this chapter, and the smallest difference between distinct risks."""

DISTINCT = 1e-4
BECAUSE_DISTINCT = "risks this far apart are distinct: quadratures and searches are accurate to 10⁻⁶ or better"
TITLES = {"spiked": "spiked model", "max": "max model"}
