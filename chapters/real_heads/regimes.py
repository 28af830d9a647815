"""Bounds between the regimes of a head, in units of freezing, τ̂/√(2 ln L), and the distance that counts as near."""

# The spread of a head is small below the first bound; a head is frozen from the second on.
LINEAR, FROZEN = 0.5, 1.0
# A participation is near the curve of Gaussian scores if it is within this factor of it.
NEAR = 1.5
