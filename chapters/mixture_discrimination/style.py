"""Constants that simulations and drawing code share."""

# [GBB26, Table 1, C1]: the means of the two classes.
PUBLISHED_MEANS = ((1.0, 0.0), (0.0, 1.0))
# The families of minimisers, and distances from them at which flows start, the second that of [GBB26, Figure 1].
GATELESS, CONSTANT = "without gate", "constant gate"
LARGE_SIZE, PUBLISHED_SIZE = 0.1, 1e-6
# The entries of a head that are random when training starts.
STARTS = ("all entries random", "value only")
