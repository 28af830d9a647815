"""When a head is near the curve of Gaussian scores: the count and the band in the picture use the same factor."""

# A participation is near the curve if it is within this factor of it.
NEAR = 1.5
