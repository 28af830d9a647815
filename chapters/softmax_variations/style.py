"""Constants and style that figures and simulations of this chapter share."""

# The largest signal strength of the published figure.
STRONGEST = 12.0
# The smallest difference between distinct risks.
DISTINCT = 1e-4
BECAUSE_DISTINCT = "risks this far apart are distinct: quadratures and searches are accurate to 10⁻⁶ or better"
TITLES = {"spiked": "spiked model", "max": "max model"}
